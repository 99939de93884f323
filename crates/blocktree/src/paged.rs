//! An array of numbers within a limit of memory: the pages used last are in memory, the
//! others in a temporary file.

use crate::sort::TempFiles;

/// Numbers of a page.
const NUMBERS: usize = 2048;
/// Bytes of a page.
const BYTES: usize = 4 * NUMBERS;
/// The page has no frame, or no position in the file.
const NONE: u32 = u32::MAX;

/// A page in memory.
struct Frame {
    page: u32,
    /// It was used since the clock hand passed.
    used: bool,
    dirty: bool,
    numbers: Box<[u32; NUMBERS]>,
}

/// Location of a page.
#[derive(Clone, Copy)]
struct PageLocation {
    frame: u32,
    /// Position in the file, in pages.
    in_file: u32,
}

/// The array. Each element has its initial value until it is set.
pub struct Paged<F: TempFiles> {
    locations: Vec<PageLocation>,
    frames: Vec<Frame>,
    /// The most frames.
    most: usize,
    /// Clock hand: the frame that is tried next when one is needed.
    hand: usize,
    file: Option<F::File>,
    pages_in_file: u32,
    initial: fn(u32) -> u32,
}

impl<F: TempFiles> Paged<F> {
    /// An array of `length` numbers, each as `initial` says, that takes `memory` bytes of memory,
    /// or a few pages.
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

    /// Makes room for `length` numbers, if there are fewer.
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

    /// Returns the number at an index.
    #[inline]
    pub fn get(&mut self, files: &mut F, at: u32) -> u32 {
        self.frame(files, at).numbers[at as usize % NUMBERS]
    }

    /// Sets the number at an index.
    #[inline]
    pub fn set(&mut self, files: &mut F, at: u32, number: u32) {
        let frame = self.frame(files, at);
        frame.dirty = true;
        frame.numbers[at as usize % NUMBERS] = number;
    }

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

    /// A frame that holds no page: a new one, or the first that was not used since the hand passed.
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
