//! Passages that earlier documents contain, for all documents of a corpus. A document is a sequence
//! of tokens. A window is a sequence of consecutive tokens of a document. All windows have the same
//! number of tokens. A window is repeated if an equal window begins in an earlier document, or
//! earlier in the same document without sharing a token with it. A position is a byte offset in the
//! tokens of the whole corpus.
//!
//! Each window has a hash and a position in the tokens of the corpus. A sort by hash, then by
//! position, finds the first window with each hash. The other windows with the hash are candidates.
//! They are sorted by position, and are then compared with the first window, token by token. Both
//! sorts, and the tokens, are in temporary files if they do not fit in memory.
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::ops::Range;

use crate::key::Tid;
use crate::paged::Paged;
use crate::sort::{Entry, ExternalSort, Sorted, TempFiles};
use crate::spilled_bytes::SpilledBytes;

/// Byte that follows the tokens of each document in the corpus. UTF-8 does not contain it, so a
/// comparison of tokens ends at the end of the document.
const END_OF_DOCUMENT: u8 = 0xFF;
/// Hashes of windows are computed modulo this prime.
const PRIME: u64 = (1 << 61) - 1;
/// Number of bits of a hash. Each hash is less than [`PRIME`].
const HASH_BITS: u32 = 61;
/// Number of bytes that [`RepeatedPassages::first_occurrence`] reads at a time, in addition to
/// twice the length of the window.
const SEARCHED_BYTES: usize = 1 << 16;
/// Number of windows that are hashed between two checks for interrupts.
const WINDOWS_PER_CHECK: usize = 1 << 14;

/// Tokens of one document, in order.
#[derive(Clone, Copy)]
pub struct DocumentTokens<'a> {
    /// Bytes of the tokens. Each token is followed by a separator byte, unless tokens are
    /// characters.
    pub bytes: &'a [u8],
    /// Offset in `bytes` of the start of each token, and finally the length of `bytes`.
    pub starts: &'a [usize],
}

impl DocumentTokens<'_> {
    fn len(self) -> usize {
        self.starts.len() - 1
    }
}

/// Run of tokens of a document that an earlier document, or an earlier part of the same document,
/// contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepeatedRun {
    /// Range of the indexes of the run's tokens in its document.
    pub tokens: Range<usize>,
    /// Number of the first document that contains the first window of the run. It may be the run's
    /// own document.
    pub original: u32,
}

/// First stage of the search for repeated passages: collects the windows of all documents of a
/// corpus. [`PassageWindows::candidates`] begins the second stage.
pub struct PassageWindows<F: TempFiles> {
    /// Number of tokens in a window.
    length: usize,
    /// Memory limit of the list of candidates (windows with the hash of an earlier window), in
    /// bytes.
    candidate_memory: usize,
    corpus: Corpus<F>,
    hasher: WindowHasher,
    /// Hash and position of each window.
    windows: ExternalSort<F, 1>,
    /// Buffer for the hashes of the tokens of a document.
    hashes: Vec<u64>,
}

impl<F: TempFiles> PassageWindows<F> {
    /// Creates an empty collection of windows of `length` tokens. It takes about `memory` bytes,
    /// plus the tokens of one document. `separator` is the byte after each token, or `None` if
    /// tokens are characters.
    pub fn new(files: &mut F, length: usize, separator: Option<u8>, memory: usize) -> Self {
        Self::with_hash_bits(files, length, separator, memory, HASH_BITS)
    }

    /// Like [`PassageWindows::new`], with hashes of only `bits` bits. Tests use it, because
    /// different windows then have equal hashes.
    #[doc(hidden)]
    pub fn with_hash_bits(
        files: &mut F,
        length: usize,
        separator: Option<u8>,
        memory: usize,
        bits: u32,
    ) -> Self {
        let share = memory / 8;
        PassageWindows {
            length,
            candidate_memory: 2 * share,
            corpus: Corpus {
                separator,
                tokens: SpilledBytes::new(share),
                starts: [(); 2].map(|()| Paged::new(files, 0, share / 2, |_| 0)),
                documents: 0,
            },
            hasher: WindowHasher::new(length, bits),
            windows: ExternalSort::new(4 * share),
            hashes: Vec::new(),
        }
    }

    /// Returns the number of documents added so far.
    pub fn documents(&self) -> u32 {
        self.corpus.documents
    }

    /// Returns the number of windows added so far.
    pub fn windows(&self) -> u64 {
        self.windows.len()
    }

    /// Adds the next document. Documents are numbered from 0 in the order in which they are added.
    /// The caller must not add more than `u32::MAX` documents.
    pub fn push(&mut self, files: &mut F, document: DocumentTokens) {
        let start = self.corpus.push(files, document.bytes);
        self.hashes.clear();
        if self.hashes.try_reserve(document.len()).is_err() {
            files.out_of_memory();
        }
        let tokens = document.starts.windows(2);
        let tokens = tokens.map(|token| &document.bytes[token[0]..token[1]]);
        self.hashes
            .extend(tokens.map(|token| self.hasher.token(token)));
        let mut hash = 0;
        for (end, &token) in self.hashes.iter().enumerate() {
            if end.is_multiple_of(WINDOWS_PER_CHECK) {
                files.check_interrupts();
            }
            let first = end.checked_sub(self.length).map(|first| self.hashes[first]);
            hash = self.hasher.shifted(hash, first.unwrap_or(0), token);
            if let Some(first) = (end + 1).checked_sub(self.length) {
                let position = start + document.starts[first] as u64;
                let key = [self.hasher.key(hash)];
                self.windows.push(files, key, Tid::from_packed(position));
            }
        }
    }

    /// Ends the first stage: finds the candidates, which are the windows with the same hash as an
    /// earlier window. Calls `advance` once for each window, for a progress report.
    pub fn candidates(mut self, files: &mut F, mut advance: impl FnMut()) -> RepeatedPassages<F> {
        // The sort distributes entries by the leading bits of their keys.
        let shift = self.corpus.tokens.len().leading_zeros();
        let mut candidates = ExternalSort::<F, 1>::new(self.candidate_memory);
        let mut sorted = self.windows.sorted(files, None);
        let mut first: Option<Entry<1>> = None;
        while let Some(window) = sorted.next(files) {
            advance();
            match first {
                Some(first) if first.key == window.key => {
                    candidates.push(files, [window.tid << shift], Tid::from_packed(first.tid));
                }
                _ => first = Some(window),
            }
        }
        drop(sorted);
        drop(self.windows);
        let mut sorted = candidates.sorted(files, None);
        RepeatedPassages {
            length: self.length,
            corpus: self.corpus,
            next: Candidate::next(files, &mut sorted, shift),
            candidates: sorted,
            shift,
            buffer: Vec::new(),
        }
    }
}

/// Tokens of all documents, one document after the other.
struct Corpus<F: TempFiles> {
    /// Byte after each token, or `None` if tokens are characters.
    separator: Option<u8>,
    /// Tokens of each document, followed by [`END_OF_DOCUMENT`].
    tokens: SpilledBytes<F>,
    /// Position in `tokens` of the start of each document. The first array has the low 32 bits of
    /// each position, and the second array the high 32 bits.
    starts: [Paged<F>; 2],
    documents: u32,
}

impl<F: TempFiles> Corpus<F> {
    /// Appends the tokens of a document, and returns the position of their start.
    fn push(&mut self, files: &mut F, bytes: &[u8]) -> u64 {
        let start = self.tokens.len();
        self.tokens.push(files, bytes);
        self.tokens.push(files, &[END_OF_DOCUMENT]);
        for (half, starts) in [start as u32, (start >> 32) as u32]
            .into_iter()
            .zip(&mut self.starts)
        {
            starts.grow(files, self.documents as usize + 1);
            starts.set(files, self.documents, half);
        }
        self.documents += 1;
        start
    }

    /// Returns the position of the start of a document. If `document` is the number of documents,
    /// returns the end of the corpus.
    fn start(&mut self, files: &mut F, document: u32) -> u64 {
        if document == self.documents {
            return self.tokens.len();
        }
        let [low, high] = &mut self.starts;
        u64::from(low.get(files, document)) | u64::from(high.get(files, document)) << 32
    }

    /// Returns the number of the document that contains a position.
    fn document(&mut self, files: &mut F, position: u64) -> u32 {
        let (mut low, mut high) = (0, self.documents);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            match self.start(files, middle) <= position {
                true => low = middle,
                false => high = middle,
            }
        }
        low
    }
}

/// Window with the same hash as an earlier window, so it may be repeated.
#[derive(Clone, Copy)]
struct Candidate {
    /// Position of the window in the tokens of the corpus.
    position: u64,
    /// Position of the first window with this hash.
    first: u64,
}

impl Candidate {
    /// Returns the next candidate in the order of positions. Each key of `sorted` is a position,
    /// shifted left by `shift` bits.
    fn next<F: TempFiles>(files: &mut F, sorted: &mut Sorted<F, 1>, shift: u32) -> Option<Self> {
        let entry = sorted.next(files)?;
        Some(Candidate {
            position: entry.key[0] >> shift,
            first: entry.tid,
        })
    }
}

/// Second stage of the search for repeated passages: finds the repeated runs of each document. The
/// documents must be passed again in the order in which they were added.
pub struct RepeatedPassages<F: TempFiles> {
    length: usize,
    corpus: Corpus<F>,
    candidates: Sorted<F, 1>,
    /// Number of bits by which positions are shifted left in the sort keys of candidates.
    shift: u32,
    /// First candidate that has not been compared yet.
    next: Option<Candidate>,
    /// Buffer of [`RepeatedPassages::first_occurrence`].
    buffer: Vec<u8>,
}

impl<F: TempFiles> RepeatedPassages<F> {
    /// Returns whether a document has candidates. If it has none, none of its windows is repeated.
    pub fn has_candidates(&mut self, files: &mut F, document: u32) -> bool {
        let end = self.corpus.start(files, document + 1);
        self.next.is_some_and(|next| next.position < end)
    }

    /// Calls `each` with the repeated runs of a document, in order. The document must have the
    /// tokens with which it was added.
    ///
    /// A run begins at the first repeated window that is not inside the previous run. Its original
    /// is the first document that contains this window. The run ends where the two documents begin
    /// to differ. So runs may overlap by fewer tokens than a window has, and all repeated windows
    /// of the document are inside a run.
    pub fn runs(
        &mut self,
        files: &mut F,
        document: u32,
        tokens: DocumentTokens,
        mut each: impl FnMut(RepeatedRun),
    ) {
        let start = self.corpus.start(files, document);
        let end = self.corpus.start(files, document + 1);
        let (mut token, mut covered) = (0, 0);
        while let Some(candidate) = self.next.filter(|next| next.position < end) {
            self.next = Candidate::next(files, &mut self.candidates, self.shift);
            let offset = (candidate.position - start) as usize;
            while tokens.starts[token] < offset {
                token += 1;
            }
            if token + self.length <= covered {
                continue;
            }
            let window = offset..tokens.starts[token + self.length];
            let Some(first) = self.original(files, candidate, &tokens.bytes[window]) else {
                continue;
            };
            let rest = &tokens.bytes[offset..];
            let equal_end = offset + self.corpus.tokens.common_prefix(files, first, rest);
            let equal = tokens.starts.partition_point(|&start| start <= equal_end);
            covered = equal - 1;
            each(RepeatedRun {
                tokens: token..covered,
                original: self.corpus.document(files, first),
            });
        }
    }

    /// Returns the position of the first occurrence of a candidate's window in the corpus. `window`
    /// has the bytes of that window. `None` if the window is not repeated.
    fn original(&mut self, files: &mut F, candidate: Candidate, window: &[u8]) -> Option<u64> {
        // An earlier window with other tokens, but the same hash, does not change the decision:
        // the first window with these tokens begins even later.
        let limit = candidate.position.checked_sub(window.len() as u64)?;
        if candidate.first > limit {
            return None;
        }
        let equal = self
            .corpus
            .tokens
            .common_prefix(files, candidate.first, window);
        match equal == window.len() {
            true => Some(candidate.first),
            false => self.first_occurrence(files, candidate.first, limit, window),
        }
    }

    /// Returns the position of the first occurrence of `window` in the corpus that begins after the
    /// position `after` and not after the position `limit`. `None` if there is no such occurrence.
    /// This search is necessary only for windows that have the same hash as a different window.
    fn first_occurrence(
        &mut self,
        files: &mut F,
        after: u64,
        limit: u64,
        window: &[u8],
    ) -> Option<u64> {
        let mut buffer = std::mem::take(&mut self.buffer);
        // The byte before an occurrence shows whether a token begins there.
        let mut at = after;
        let end = limit + window.len() as u64;
        let mut found = None;
        while found.is_none() && at + (window.len() as u64) < end {
            files.check_interrupts();
            let size = (end - at).min((SEARCHED_BYTES + 2 * window.len()) as u64) as usize;
            if buffer.len() < size && buffer.try_reserve(size - buffer.len()).is_err() {
                files.out_of_memory();
            }
            buffer.resize(size, 0);
            self.corpus.tokens.read(files, at, &mut buffer);
            let separator = self.corpus.separator;
            let occurrence = buffer.windows(window.len() + 1).position(|bytes| {
                let is_start =
                    separator.is_none_or(|byte| [byte, END_OF_DOCUMENT].contains(&bytes[0]));
                is_start && bytes[1..] == *window
            });
            found = occurrence.map(|occurrence| at + occurrence as u64 + 1);
            at += (size - window.len()) as u64;
        }
        self.buffer = buffer;
        found
    }
}

/// Polynomial hashes of windows of tokens. The coefficients are random, so that an attacker cannot
/// write texts with many windows of equal hashes.
struct WindowHasher {
    tokens: RandomState,
    /// Factor by which the hash of a window is multiplied when a token is added.
    base: u64,
    /// Factor by which the hash of the removed token is multiplied when a window moves on by one
    /// token. The product is subtracted from the window's hash. The factor is `base` to the power
    /// of the number of tokens in a window.
    first: u64,
    /// Mask of the bits of a hash that are in its sort key. Only tests use fewer than all bits.
    mask: u64,
}

impl WindowHasher {
    fn new(length: usize, bits: u32) -> Self {
        let tokens = RandomState::new();
        let base = tokens.hash_one(length) % PRIME;
        let first = (0..length).fold(1, |power, _| product(power, base));
        WindowHasher {
            tokens,
            base,
            first,
            mask: u64::MAX.checked_shl(64 - bits).unwrap_or(0),
        }
    }

    /// Returns the hash of a token, below [`PRIME`].
    fn token(&self, bytes: &[u8]) -> u64 {
        let mut hasher = self.tokens.build_hasher();
        hasher.write(bytes);
        hasher.finish() % PRIME
    }

    /// Returns the hash of a window that has moved on by one token. `hash` is the hash of the
    /// window before. `removed` is the hash of the token that left the window at its start, and
    /// `added` the hash of the token that was added at its end.
    fn shifted(&self, hash: u64, removed: u64, added: u64) -> u64 {
        let kept = product(hash, self.base) + PRIME - product(removed, self.first);
        (kept % PRIME + added) % PRIME
    }

    /// Returns the sort key for a hash: the hash, shifted so that its most significant bit is the
    /// first bit of the key. The sort distributes entries by the leading bits of their keys, so
    /// these bits must not all be zero.
    fn key(&self, hash: u64) -> u64 {
        hash << (64 - HASH_BITS) & self.mask
    }
}

/// Returns the product modulo [`PRIME`] of two numbers below [`PRIME`].
fn product(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    let sum = (product as u64 & PRIME) + (product >> HASH_BITS) as u64;
    if sum >= PRIME { sum - PRIME } else { sum }
}
