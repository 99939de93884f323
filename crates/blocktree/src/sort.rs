//! Rows on their way into a new tree: kept in memory as long as there is enough of it, in
//! temporary files beyond, and given back permutation by permutation in the order of the tree.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::block_layout::Permutation;
use crate::key::{Key, Tid};

/// A key, or a fingerprint, with its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry<const N: usize> {
    /// The key or fingerprint.
    pub key: Key<N>,
    /// The row, packed ([`Tid::packed`]).
    pub tid: u64,
}

/// Temporary files. Failures unwind; a file is deleted when it is dropped.
pub trait TempFiles {
    /// A file, written from its start to its end and read likewise, as often as wanted.
    type File;

    /// A new file.
    fn create(&mut self) -> Self::File;
    /// Appends to a file.
    fn write(&mut self, file: &mut Self::File, bytes: &[u8]);
    /// Goes back to the start of a file, for reading.
    fn rewind(&mut self, file: &mut Self::File);
    /// Reads the next bytes. Callers never read more than was written.
    fn read(&mut self, file: &mut Self::File, bytes: &mut [u8]);
    /// Seeks to a byte offset within a file, or to its end, for reading or writing.
    fn seek(&mut self, file: &mut Self::File, offset: u64);
    /// Called now and then by what runs long: may unwind to cancel.
    fn check_interrupts(&mut self);
    /// Ends the operation, for want of memory, by unwinding.
    fn out_of_memory(&mut self) -> ! {
        panic!("out of memory")
    }
}

/// Leading bits by which entries are dealt out before each heap of them is sorted in the cache.
const DEAL_BITS: u32 = 11;

/// Entries of a run that are read, or written, at a time.
const CHUNK: usize = 4096;
/// The most runs that are merged at once: each takes a buffer of its own, and so does its file.
const MOST_RUNS: usize = 64;

const fn entry_size<const N: usize>() -> usize {
    8 * N + 8
}

/// Rows collected for a build.
pub struct ExternalSort<F: TempFiles, const N: usize> {
    in_memory: Vec<Entry<N>>,
    /// Rows that fit into memory together with the space to sort them in.
    limit: usize,
    spooled: Option<Spool<F::File>>,
}

struct Spool<File> {
    file: File,
    entries: u64,
}

impl<F: TempFiles, const N: usize> ExternalSort<F, N> {
    /// No rows yet. `memory` is in bytes; a small minimum is taken in any case.
    pub fn new(memory: usize) -> Self {
        let limit = (memory / (2 * entry_size::<N>())).max(CHUNK);
        ExternalSort {
            in_memory: Vec::new(),
            limit,
            spooled: None,
        }
    }

    /// Rows so far.
    pub fn len(&self) -> u64 {
        self.in_memory.len() as u64 + self.spooled.as_ref().map_or(0, |spool| spool.entries)
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a row.
    #[inline]
    pub fn push(&mut self, files: &mut F, fingerprint: Key<N>, tid: Tid) {
        if self.in_memory.len() == self.limit {
            self.spool(files);
        }
        if self.in_memory.try_reserve(1).is_err() {
            files.out_of_memory();
        }
        let (key, tid) = (fingerprint, tid.packed());
        self.in_memory.push(Entry { key, tid });
    }

    fn spool(&mut self, files: &mut F) {
        let spool = self.spooled.get_or_insert_with(|| Spool {
            file: files.create(),
            entries: 0,
        });
        write_entries(files, &mut spool.file, &self.in_memory);
        spool.entries += self.in_memory.len() as u64;
        self.in_memory.clear();
    }

    /// Gives all rows in the order of a permutation: each with its key there, by key, then by row.
    /// `None` takes the fingerprints as they are.
    pub fn in_order(
        &mut self,
        files: &mut F,
        permutation: Option<&Permutation<N>>,
        mut each: impl FnMut(&mut F, Entry<N>),
    ) {
        if self.spooled.is_none() {
            let mut sorted = Vec::new();
            sort(files, permutation, &self.in_memory, &mut sorted);
            // Measured: an eighth less time for a build than by `Sorted::next`.
            for entries in sorted.chunks(1 << 16) {
                files.check_interrupts();
                entries.iter().for_each(|&entry| each(files, entry));
            }
            return;
        }
        let mut sorted = self.sorted(files, permutation);
        while let Some(entry) = sorted.next(files) {
            each(files, entry);
        }
    }

    /// Gives all rows in the order in which they were added.
    pub fn as_added(&mut self, files: &mut F, mut each: impl FnMut(&mut F, Entry<N>)) {
        if let Some(spool) = &mut self.spooled {
            files.rewind(&mut spool.file);
            let (mut left, mut chunk) = (spool.entries, Vec::new());
            while left > 0 {
                let count = left.min(CHUNK as u64) as usize;
                read_entries(files, &mut spool.file, &mut chunk, count);
                chunk.iter().for_each(|&entry| each(files, entry));
                left -= count as u64;
            }
            // More may be added behind.
            let end = spool.entries * entry_size::<N>() as u64;
            files.seek(&mut spool.file, end);
        }
        for &entry in &self.in_memory {
            each(files, entry);
        }
    }

    /// All rows in the order of a permutation, as [`ExternalSort::in_order`] gives them, one at a
    /// time.
    pub fn sorted(&mut self, files: &mut F, permutation: Option<&Permutation<N>>) -> Sorted<F, N> {
        let mut sorted = Vec::new();
        if self.spooled.is_none() {
            sort(files, permutation, &self.in_memory, &mut sorted);
            return Sorted {
                in_memory: sorted.into_iter(),
                ..Sorted::merge(files, Vec::new(), 0)
            };
        }
        if !self.in_memory.is_empty() {
            self.spool(files);
        }
        let mut runs = Vec::new();
        let Some(spool) = &mut self.spooled else {
            return Sorted::merge(files, runs, self.limit);
        };
        files.rewind(&mut spool.file);
        let mut left = spool.entries;
        while left > 0 {
            let count = left.min(self.limit as u64) as usize;
            read_entries(files, &mut spool.file, &mut self.in_memory, count);
            left -= count as u64;
            sort(files, permutation, &self.in_memory, &mut sorted);
            let mut file = files.create();
            write_entries(files, &mut file, &sorted);
            runs.push(SortedRun::new(files, file, count as u64));
        }
        self.in_memory = Vec::new();
        drop(sorted);
        while runs.len() > MOST_RUNS {
            let rest = runs.split_off(MOST_RUNS);
            let merged = merge_to_file(files, runs, self.limit);
            runs = rest;
            runs.push(merged);
        }
        Sorted::merge(files, runs, self.limit)
    }
}

/// Merges runs into one.
fn merge_to_file<F: TempFiles, const N: usize>(
    files: &mut F,
    runs: Vec<SortedRun<F::File, N>>,
    limit: usize,
) -> SortedRun<F::File, N> {
    let mut sorted = Sorted::merge(files, runs, limit);
    let (mut file, mut count) = (files.create(), 0);
    let mut entries = Vec::with_capacity(CHUNK);
    loop {
        entries.clear();
        entries.extend(std::iter::from_fn(|| sorted.next(files)).take(CHUNK));
        if entries.is_empty() {
            return SortedRun::new(files, file, count);
        }
        count += entries.len() as u64;
        write_entries(files, &mut file, &entries);
    }
}

/// Deals out and sorts: from `source`, through a permutation, into `sorted`.
fn sort<F: TempFiles, const N: usize>(
    files: &mut F,
    permutation: Option<&Permutation<N>>,
    source: &[Entry<N>],
    sorted: &mut Vec<Entry<N>>,
) {
    let permuted = |entry: &Entry<N>| Entry {
        key: permutation.map_or(entry.key, |permutation| permutation.permute(&entry.key)),
        tid: entry.tid,
    };
    let heap_of = |key: &Key<N>| (key[0] >> (64 - DEAL_BITS)) as usize;
    let mut ends = vec![0usize; 1 << DEAL_BITS];
    for entry in source {
        ends[heap_of(&permuted(entry).key)] += 1;
    }
    let mut start = 0;
    for end in &mut ends {
        let count = *end;
        *end = start;
        start += count;
    }
    sorted.clear();
    if sorted.try_reserve_exact(source.len()).is_err() {
        files.out_of_memory();
    }
    let (key, tid) = ([0; N], 0);
    sorted.resize(source.len(), Entry { key, tid });
    for entry in source {
        let entry = permuted(entry);
        let slot = &mut ends[heap_of(&entry.key)];
        sorted[*slot] = entry;
        *slot += 1;
    }
    let mut start = 0;
    for end in ends {
        if start < end {
            files.check_interrupts();
            sorted[start..end].sort_unstable();
        }
        start = end;
    }
}

/// A sorted run in a file.
struct SortedRun<File, const N: usize> {
    file: File,
    /// Entries that have not been read yet.
    left: u64,
    chunk: Vec<Entry<N>>,
    at: usize,
}

impl<File, const N: usize> SortedRun<File, N> {
    /// A run of `left` entries in a file that has been written.
    fn new<F: TempFiles<File = File>>(files: &mut F, mut file: File, left: u64) -> Self {
        files.rewind(&mut file);
        SortedRun {
            file,
            left,
            chunk: Vec::new(),
            at: 0,
        }
    }

    fn next<F: TempFiles<File = File>>(&mut self, files: &mut F, chunk: usize) -> Option<Entry<N>> {
        if self.at == self.chunk.len() {
            let count = self.left.min(chunk as u64) as usize;
            read_entries(files, &mut self.file, &mut self.chunk, count);
            self.left -= count as u64;
            self.at = 0;
        }
        let entry = self.chunk.get(self.at).copied();
        self.at += 1;
        entry
    }
}

/// Rows in order, from memory or from runs in files.
pub struct Sorted<F: TempFiles, const N: usize> {
    in_memory: std::vec::IntoIter<Entry<N>>,
    runs: Vec<SortedRun<F::File, N>>,
    /// The next entry of each run, the lowest on top.
    heads: BinaryHeap<Reverse<(Entry<N>, usize)>>,
    /// Entries that are read of a run at a time.
    chunk: usize,
    emitted: u64,
}

impl<F: TempFiles, const N: usize> Sorted<F, N> {
    /// Merges runs with about `limit` entries in memory.
    fn merge(files: &mut F, mut runs: Vec<SortedRun<F::File, N>>, limit: usize) -> Self {
        let chunk = (limit / (runs.len() + 1)).clamp(CHUNK / 16, CHUNK * 16);
        let mut heads = BinaryHeap::new();
        for (i, run) in runs.iter_mut().enumerate() {
            heads.extend(run.next(files, chunk).map(|entry| Reverse((entry, i))));
        }
        Sorted {
            in_memory: Vec::new().into_iter(),
            runs,
            heads,
            chunk,
            emitted: 0,
        }
    }

    /// The next row; `None` after the last.
    #[inline]
    pub fn next(&mut self, files: &mut F) -> Option<Entry<N>> {
        self.emitted += 1;
        if self.emitted.is_multiple_of(1 << 16) {
            files.check_interrupts();
        }
        if self.runs.is_empty() {
            return self.in_memory.next();
        }
        let mut head = self.heads.peek_mut()?;
        let Reverse((entry, i)) = *head;
        match self.runs[i].next(files, self.chunk) {
            Some(next) => *head = Reverse((next, i)),
            None => {
                PeekMut::pop(head);
            }
        }
        Some(entry)
    }
}

fn write_entries<F: TempFiles, const N: usize>(
    files: &mut F,
    file: &mut F::File,
    entries: &[Entry<N>],
) {
    let mut bytes = Vec::with_capacity(CHUNK * entry_size::<N>());
    for chunk in entries.chunks(CHUNK) {
        bytes.clear();
        for entry in chunk {
            for word in entry.key.iter().chain([&entry.tid]) {
                bytes.extend_from_slice(&word.to_ne_bytes());
            }
        }
        files.write(file, &bytes);
        files.check_interrupts();
    }
}

fn read_entries<F: TempFiles, const N: usize>(
    files: &mut F,
    file: &mut F::File,
    entries: &mut Vec<Entry<N>>,
    count: usize,
) {
    entries.clear();
    let mut bytes = vec![0; CHUNK * entry_size::<N>()];
    while entries.len() < count {
        let chunk = (count - entries.len()).min(CHUNK);
        let bytes = &mut bytes[..chunk * entry_size::<N>()];
        files.read(file, bytes);
        files.check_interrupts();
        entries.extend(bytes.chunks_exact(entry_size::<N>()).map(|entry| Entry {
            key: crate::key::key_at(entry, 0),
            tid: crate::key::word_at(entry, 8 * N),
        }));
    }
}
