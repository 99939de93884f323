//! Sets and lists of row addresses, with limited memory and temporary files.
use neardup_blocktree::key::Tid;
use neardup_blocktree::paged::Paged;
use neardup_blocktree::sort::ExternalSort;

use super::limits::share;
use neardup_pg::storage::temp::TempSpace;

/// Set of row addresses as a bitmap, ordered by block. Each block has as many bits as the highest
/// offset needs.
pub struct TidSet {
    /// Words of the bitmap, of 32 bits each.
    words: Paged<TempSpace>,
    /// Highest block number and highest offset that the set can contain.
    highest: Tid,
}

/// Returns an address that has the higher block number and the higher offset of two addresses. It
/// is the limit for a [`TidSet`] that contains both.
pub fn highest(a: Tid, b: Tid) -> Tid {
    Tid {
        block: a.block.max(b.block),
        offset: a.offset.max(b.offset),
    }
}

impl TidSet {
    /// Creates an empty set for addresses whose block number and offset are at most those of
    /// `highest`. Returns `None` if the bitmap would have 2^32 words or more.
    pub fn new(files: &mut TempSpace, highest: Tid) -> Option<Self> {
        let words = Self::length_of(highest)?;
        Some(TidSet {
            words: Paged::new(files, words as usize, share(), |_| 0),
            highest,
        })
    }

    fn words_of_block(highest: Tid) -> u64 {
        u64::from(highest.offset / 32) + 1
    }

    /// Returns the position of an address in the bitmap: the index of the word, and the mask of the
    /// bit. Returns `None` if the block number or offset of the address is above that of
    /// `self.highest`.
    fn position(&self, at: Tid) -> Option<(u32, u32)> {
        let is_known = at.block <= self.highest.block && at.offset <= self.highest.offset;
        let first = u64::from(at.block) * Self::words_of_block(self.highest);
        let word = first + u64::from(at.offset / 32);
        is_known.then_some((word as u32, 1 << (at.offset % 32)))
    }

    /// Serializes the set for another process as at most `most` words of 64 bits. Returns `None` if
    /// the set needs more words.
    pub fn pack(&mut self, files: &mut TempSpace, most: usize) -> Option<Vec<u64>> {
        let length = self.length()?;
        if length.div_ceil(2) as usize >= most {
            return None;
        }
        let mut word = |at| match at {
            at if at < length => u64::from(self.words.get(files, at)),
            _ => 0,
        };
        let pairs = (0..length)
            .step_by(2)
            .map(|at| word(at) << 32 | word(at + 1));
        let words = pairs.collect::<Vec<u64>>();
        Some([vec![self.highest.packed()], words].concat())
    }

    /// Restores a set from the words that [`TidSet::pack`] returned. Returns `None` if there are no
    /// words.
    pub fn unpack(files: &mut TempSpace, words: &[u64]) -> Option<Self> {
        let (highest, words) = words.split_first()?;
        let mut set = Self::new(files, Tid::from_packed(*highest))?;
        let length = set.length()?;
        for (at, pair) in (0..length).step_by(2).zip(words) {
            set.words.set(files, at, (pair >> 32) as u32);
            if at + 1 < length {
                set.words.set(files, at + 1, *pair as u32);
            }
        }
        Some(set)
    }

    /// Returns the number of words of the bitmap, or `None` if there are 2^32 or more.
    fn length(&self) -> Option<u32> {
        Self::length_of(self.highest)
    }

    fn length_of(highest: Tid) -> Option<u32> {
        u32::try_from((u64::from(highest.block) + 1) * Self::words_of_block(highest)).ok()
    }

    /// Adds the address `at`. Ignores an address whose block number or offset is above that of
    /// `self.highest`.
    pub fn insert(&mut self, files: &mut TempSpace, at: Tid) {
        if let Some((word, bit)) = self.position(at) {
            let bits = self.words.get(files, word);
            self.words.set(files, word, bits | bit);
        }
    }

    /// Returns whether an address is in the set.
    pub fn contains(&mut self, files: &mut TempSpace, at: Tid) -> bool {
        let position = self.position(at);
        position.is_some_and(|(word, bit)| self.words.get(files, word) & bit != 0)
    }
}

/// List of row addresses that can be converted to a [`TidSet`] when the list is complete.
pub struct TidList {
    entries: ExternalSort<TempSpace, 1>,
    highest: Tid,
}

impl TidList {
    /// Creates an empty list.
    pub fn new() -> Self {
        TidList {
            entries: ExternalSort::new(share()),
            highest: Tid::MIN,
        }
    }

    /// Adds an address.
    pub fn push(&mut self, files: &mut TempSpace, entry: Tid) {
        self.highest = highest(self.highest, entry);
        self.entries.push(files, [entry.packed()], Tid::MIN);
    }

    /// Returns whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the set of the addresses in the list. Returns `None` if the list is empty, or if the
    /// set would be too large.
    pub fn set(&mut self, files: &mut TempSpace) -> Option<TidSet> {
        if self.entries.is_empty() {
            return None;
        }
        let mut set = TidSet::new(files, self.highest)?;
        self.entries.as_added(files, |files, entry| {
            set.insert(files, Tid::from_packed(entry.key[0]));
        });
        Some(set)
    }

    /// Visits all addresses of the list in ascending order.
    pub fn in_order(&mut self, files: &mut TempSpace, mut each: impl FnMut(&mut TempSpace, Tid)) {
        self.entries.in_order(files, None, |files, entry| {
            each(files, Tid::from_packed(entry.key[0]));
        });
    }
}
