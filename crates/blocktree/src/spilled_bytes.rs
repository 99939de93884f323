//! Byte string within a memory limit. Its first bytes are in memory, the others in a temporary
//! file.
use crate::sort::TempFiles;

/// Number of bytes that are read at a time.
const CHUNK: usize = 4096;

/// Byte string that grows at its end and spills to a temporary file.
pub struct SpilledBytes<F: TempFiles> {
    in_memory: Vec<u8>,
    /// Maximum number of bytes in `in_memory`.
    max_bytes: usize,
    /// File with the bytes behind `in_memory`. `None` if all bytes are in memory.
    file: Option<F::File>,
    bytes_in_file: u64,
}

impl<F: TempFiles> SpilledBytes<F> {
    /// Creates an empty string that takes at most `memory` bytes of memory.
    pub fn new(memory: usize) -> Self {
        SpilledBytes {
            in_memory: Vec::new(),
            // A growing vector may temporarily take twice its memory.
            max_bytes: memory / 2,
            file: None,
            bytes_in_file: 0,
        }
    }

    /// Returns the number of bytes in the string.
    pub fn len(&self) -> u64 {
        self.in_memory.len() as u64 + self.bytes_in_file
    }

    /// Returns whether the string has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends bytes to the string.
    pub fn push(&mut self, files: &mut F, bytes: &[u8]) {
        if self.file.is_none() && self.in_memory.len() + bytes.len() <= self.max_bytes {
            if self.in_memory.try_reserve(bytes.len()).is_err() {
                files.out_of_memory();
            }
            self.in_memory.extend_from_slice(bytes);
            return;
        }
        let file = self.file.get_or_insert_with(|| files.create());
        files.seek(file, self.bytes_in_file);
        files.write(file, bytes);
        self.bytes_in_file += bytes.len() as u64;
    }

    /// Fills `bytes` with the bytes of the string from an offset on. The string must have that many
    /// bytes there.
    pub fn read(&mut self, files: &mut F, offset: u64, bytes: &mut [u8]) {
        let in_memory = self.in_memory.len() as u64;
        let split = in_memory.saturating_sub(offset).min(bytes.len() as u64) as usize;
        let (first, rest) = bytes.split_at_mut(split);
        if !first.is_empty() {
            first.copy_from_slice(&self.in_memory[offset as usize..][..split]);
        }
        if !rest.is_empty() {
            let file = self.file.as_mut().expect("bytes beyond memory");
            files.seek(file, offset + split as u64 - in_memory);
            files.read(file, rest);
        }
    }

    /// Compares `other` with the bytes of the string from `offset` on. Returns the number of bytes
    /// before the first difference or the end of either.
    pub fn common_prefix(&mut self, files: &mut F, offset: u64, other: &[u8]) -> usize {
        let mut chunk = [0; CHUNK];
        let mut equal = 0;
        for other in other.chunks(CHUNK) {
            files.check_interrupts();
            let left = self.len().saturating_sub(offset + equal as u64);
            let chunk = &mut chunk[..(other.len() as u64).min(left) as usize];
            self.read(files, offset + equal as u64, chunk);
            let same = chunk.iter().zip(other).take_while(|(a, b)| a == b).count();
            equal += same;
            if same < CHUNK {
                break;
            }
        }
        equal
    }
}
