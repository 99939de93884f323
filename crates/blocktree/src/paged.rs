//! Array of `u32` numbers within a memory limit. The array is divided into pages. Recently used
//! pages are in memory, in frames, and the others are in a temporary file. If all frames have a
//! page, a clock hand moves from frame to frame and frees the first one that was not used since the
//! hand last passed it.

use crate::sort::TempFiles;

/// Number of array elements on a page.
const NUMBERS: usize = 2048;
/// Size of a page in bytes.
const BYTES: usize = 4 * NUMBERS;
/// Number that marks a page that is in no frame, or that has no position in the file.
const NONE: u32 = u32::MAX;

/// Slot in memory for a page of the array.
struct Frame {
    /// Number of the page that is in this frame, or [`NONE`] if the frame has no page.
    page: u32,
    /// True if the page was used since the clock hand last passed this frame.
    used: bool,
    /// True if the page was changed since it was loaded or last written to the file.
    dirty: bool,
    numbers: Box<[u32; NUMBERS]>,
}

/// Location of a page: its frame in memory, its position in the file, or both.
#[derive(Clone, Copy)]
struct PageLocation {
    /// Number of the frame, or [`NONE`].
    frame: u32,
    /// Position in the file, counted in pages, or [`NONE`].
    in_file: u32,
}

/// Array of `u32` numbers, most of which may be in a temporary file. An element has its initial
/// value until it is set.
pub struct Paged<F: TempFiles> {
    /// Location of each page, by page number.
    locations: Vec<PageLocation>,
    frames: Vec<Frame>,
    /// Maximum number of frames. At this number, loading a page first removes another page from its
    /// frame.
    most: usize,
    /// Clock hand: number of the frame that is checked next when a frame must be freed.
    hand: usize,
    file: Option<F::File>,
    pages_in_file: u32,
    /// Returns the initial value of the element at an index.
    initial: fn(u32) -> u32,
}

impl<F: TempFiles> Paged<F> {
    /// Creates an array of `length` numbers. `initial` returns the initial value of the number at
    /// an index. The array takes about `memory` bytes of memory, or four pages if that is more.
    pub fn new(files: &mut F, length: usize, memory: usize, initial: fn(u32) -> u32) -> Self {
        let mut paged = Paged {
            locations: Vec::new(),
            frames: Vec::new(),
            most: (memory / BYTES).max(4),
            hand: 0,
            file: None,
            pages_in_file: 0,
            initial,
        };
        paged.grow(files, length);
        paged
    }

    /// Extends the array to at least `length` numbers. Never shortens it.
    pub fn grow(&mut self, files: &mut F, length: usize) {
        let pages = length.div_ceil(NUMBERS);
        let more = pages.saturating_sub(self.locations.len());
        if self.locations.try_reserve(more).is_err() {
            files.out_of_memory();
        }
        let nowhere = PageLocation {
            frame: NONE,
            in_file: NONE,
        };
        self.locations.resize(self.locations.len() + more, nowhere);
    }

    /// Returns the number at index `at`.
    #[inline]
    pub fn get(&mut self, files: &mut F, at: u32) -> u32 {
        self.frame(files, at).numbers[at as usize % NUMBERS]
    }

    /// Sets the number at index `at`.
    #[inline]
    pub fn set(&mut self, files: &mut F, at: u32, number: u32) {
        let frame = self.frame(files, at);
        frame.dirty = true;
        frame.numbers[at as usize % NUMBERS] = number;
    }

    /// Returns the frame that contains the element at index `at`. Loads its page if needed.
    #[inline]
    fn frame(&mut self, files: &mut F, at: u32) -> &mut Frame {
        let page = at as usize / NUMBERS;
        let mut frame = self.locations[page].frame;
        if frame == NONE {
            frame = self.load(files, page as u32);
        }
        let frame = &mut self.frames[frame as usize];
        frame.used = true;
        frame
    }

    /// Loads a page into a frame and returns the number of the frame. Reads the page from the file,
    /// or fills it with initial values if the file does not have it.
    #[cold]
    fn load(&mut self, files: &mut F, page: u32) -> u32 {
        let free = self.free_frame(files);
        let frame = &mut self.frames[free];
        (frame.page, frame.dirty) = (page, false);
        match (self.locations[page as usize].in_file, &mut self.file) {
            (NONE, _) | (_, None) => {
                let first = page * NUMBERS as u32;
                for (i, number) in (0..).zip(frame.numbers.iter_mut()) {
                    *number = (self.initial)(first.wrapping_add(i));
                }
            }
            (in_file, Some(file)) => {
                let mut bytes = [0; BYTES];
                files.seek(file, u64::from(in_file) * BYTES as u64);
                files.read(file, &mut bytes);
                for (number, bytes) in frame.numbers.iter_mut().zip(bytes.chunks_exact(4)) {
                    *number = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                }
            }
        }
        self.locations[page as usize].frame = free as u32;
        free as u32
    }

    /// Returns the number of a frame without a page. If the number of frames is below the limit,
    /// this is a new frame. Otherwise the clock hand moves on to the first frame that was not used
    /// since the hand last passed it. The function then removes the page from this frame. If the
    /// page was changed, it is first written to the file.
    fn free_frame(&mut self, files: &mut F) -> usize {
        if self.frames.len() < self.most {
            if self.frames.try_reserve(1).is_err() {
                files.out_of_memory();
            }
            self.frames.push(Frame {
                page: NONE,
                used: false,
                dirty: false,
                numbers: Box::new([0; NUMBERS]),
            });
            return self.frames.len() - 1;
        }
        files.check_interrupts();
        while std::mem::take(&mut self.frames[self.hand].used) {
            self.hand = (self.hand + 1) % self.most;
        }
        let free = self.hand;
        self.hand = (self.hand + 1) % self.most;
        let frame = &self.frames[free];
        let location = &mut self.locations[frame.page as usize];
        location.frame = NONE;
        if frame.dirty {
            if location.in_file == NONE {
                location.in_file = self.pages_in_file;
                self.pages_in_file += 1;
            }
            let file = self.file.get_or_insert_with(|| files.create());
            let mut bytes = [0; BYTES];
            for (bytes, number) in bytes.chunks_exact_mut(4).zip(frame.numbers.iter()) {
                bytes.copy_from_slice(&number.to_ne_bytes());
            }
            files.seek(file, u64::from(location.in_file) * BYTES as u64);
            files.write(file, &bytes);
        }
        free
    }
}
