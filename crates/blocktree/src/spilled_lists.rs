//! Collection of lists of 64-bit words within a memory limit. The lists added first are in memory,
//! later ones in a temporary file. Each list is read by its offset.
use crate::sort::TempFiles;

/// Size of a word in bytes.
const WORD: usize = 8;

/// Collection of lists of words that spills to a temporary file. Stored lists cannot be changed.
pub struct SpilledLists<F: TempFiles> {
    /// The first lists, each as its length followed by its words.
    in_memory: Vec<u64>,
    /// Maximum number of words in `in_memory`.
    max_words: usize,
    /// File with the other lists, in the same form. `None` if all lists are in memory.
    file: Option<F::File>,
    /// Number of words in the file.
    words_in_file: u64,
    /// Buffer for the bytes of one list, for reading and writing the file.
    bytes: Vec<u8>,
}

impl<F: TempFiles> SpilledLists<F> {
    /// Creates an empty collection that takes at most `memory` bytes, plus a buffer for one list.
    pub fn new(memory: usize) -> Self {
        SpilledLists {
            in_memory: Vec::new(),
            // A growing vector may temporarily take twice its memory.
            max_words: memory / (2 * WORD),
            file: None,
            words_in_file: 0,
            bytes: Vec::new(),
        }
    }

    /// Adds a list and returns its offset, in words, for [`SpilledLists::read`].
    pub fn push(&mut self, files: &mut F, list: &[u64]) -> u64 {
        let needed = list.len() + 1;
        if self.file.is_none() && self.in_memory.len() + needed <= self.max_words {
            if self.in_memory.try_reserve(needed).is_err() {
                files.out_of_memory();
            }
            let offset = self.in_memory.len() as u64;
            self.in_memory.push(list.len() as u64);
            self.in_memory.extend_from_slice(list);
            return offset;
        }
        if self.file.is_none() {
            self.file = Some(files.create());
        }
        self.bytes.clear();
        if self.bytes.try_reserve(needed * WORD).is_err() {
            files.out_of_memory();
        }
        for word in [&[list.len() as u64], list].concat() {
            self.bytes.extend_from_slice(&word.to_ne_bytes());
        }
        let offset = self.in_memory.len() as u64 + self.words_in_file;
        let file = self.file.as_mut().expect("the file was created");
        files.seek(file, self.words_in_file * WORD as u64);
        files.write(file, &self.bytes);
        self.words_in_file += needed as u64;
        offset
    }

    /// Replaces the contents of `list` by a stored list. `offset` is the offset that
    /// [`SpilledLists::push`] returned for the list.
    pub fn read(&mut self, files: &mut F, offset: u64, list: &mut Vec<u64>) {
        list.clear();
        let in_memory = self.in_memory.len() as u64;
        if offset < in_memory {
            let start = offset as usize + 1;
            let length = self.in_memory[start - 1] as usize;
            if list.try_reserve(length).is_err() {
                files.out_of_memory();
            }
            list.extend_from_slice(&self.in_memory[start..start + length]);
            return;
        }
        let file = self.file.as_mut().expect("a list beyond memory");
        files.seek(file, (offset - in_memory) * WORD as u64);
        let mut length = [0; WORD];
        files.read(file, &mut length);
        let length = u64::from_ne_bytes(length) as usize;
        self.bytes.clear();
        if self.bytes.try_reserve(length * WORD).is_err() || list.try_reserve(length).is_err() {
            files.out_of_memory();
        }
        self.bytes.resize(length * WORD, 0);
        files.read(file, &mut self.bytes);
        let words = self.bytes.as_chunks::<WORD>().0.iter();
        list.extend(words.map(|word| u64::from_ne_bytes(*word)));
    }
}
