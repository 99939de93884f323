//! Chunk of a permutation (ordered copy of all keys in the index) in memory, for a search for
//! pairs. It has index entries in key order, divided into groups with equal leading bits (a
//! prefix). The search compares groups with each other. For the entries of a pair it may call a
//! function of the caller, `resolve`, which returns the row address to report, or rejects the row.
//! If keys have a scope (columns that must be equal in two near-duplicates), their first word is a
//! hash of the scope.

use crate::block_layout::Permutation;
use crate::key::{EntryKey, Key, Tid};
use crate::leaf::{self, Leaf};
use crate::page::Page;
use crate::probes::prefix;
use std::cell::Cell;
use std::ops::{Deref, Range};

/// Flag in an element of the field `rows`, which has one number for each entry of a chunk. It is
/// set when `resolve` has been called for the entry. The bits below [`UNWANTED`] are then the row
/// address that `resolve` returned.
const RESOLVED: u64 = 1 << 63;
/// Flag that is set together with [`RESOLVED`] if `resolve` returned `None`, which means that the
/// entry must not be in a pair.
const UNWANTED: u64 = 1 << 62;
/// Amount by which an element of `rows` is increased to count one pair of the entry. The counter is
/// in the bits above the 48-bit row address. It exists only as long as the flag [`RESOLVED`] is not
/// set.
const PAIR_COUNT_UNIT: u64 = 1 << 48;
/// Maximum number of counted pairs of an entry. For the next pair of the entry, the search calls
/// `resolve`, and then no longer needs the counter.
pub(super) const MAX_COUNTED_PAIRS: u32 = 1 << 13;

/// Entries of a chunk that are in the same scope (adjacent, because keys start with the scope's
/// word). Without scopes, all entries are one run.
#[derive(Clone, Debug)]
pub(super) struct ScopeRun {
    /// Scope's word, or 0 if keys have no scope.
    pub scope: u64,
    /// Number of leading bits that are equal within each group of the run.
    pub bits: u32,
    /// Indexes of the run's groups in the chunk.
    pub groups: Range<usize>,
    /// Index of the run's first slot in the field `directory` of the chunk, which leads from a
    /// prefix to a group.
    directory: usize,
    /// Number of low bits of a prefix that are ignored when its slot is computed. The index of the
    /// slot among the run's slots is `(prefix - lowest prefix of the run) >> shift`.
    shift: u32,
}

/// Group of entries of a chunk whose leading bits are equal. A group ends where the next group
/// starts.
#[derive(Clone, Copy, Debug)]
struct Group {
    /// Leading bits of the group's keys, as a number.
    prefix: u64,
    /// Index of the group's first entry.
    start: u32,
}

/// Chunk: entries from neighbouring leaves of one permutation, in key order.
#[derive(Debug)]
pub(super) struct SortedChunk<const N: usize> {
    /// Number of words of a key that hold a scope: 0 or 1.
    scope_words: usize,
    /// True if only one entry is kept for each distinct key.
    distinct: bool,
    /// Number of pairs of an entry that the search reports before it calls `resolve` for the entry.
    /// These pairs are reported with the row address that the entry stores. Later pairs of the
    /// entry are reported with the address that `resolve` returns.
    unresolved_pairs: u32,
    keys: Vec<Key<N>>,
    /// For each key, the packed row address. The bits above it have the flags [`RESOLVED`] and
    /// [`UNWANTED`], or a pair counter in units of [`PAIR_COUNT_UNIT`].
    rows: Vec<Cell<u64>>,
    runs: Vec<ScopeRun>,
    groups: Vec<Group>,
    /// Directory that leads from a prefix to the group with this prefix. The high bits of a prefix
    /// select a slot. The slot has the index of the first group whose prefix has these high bits or
    /// greater ones. Each run has its own slots.
    directory: Vec<u32>,
    /// In a thinned search (a search that may skip pairs), a number for each entry: the number of
    /// its pairs so far, or the number of its parent entry in a forest
    /// ([`Thinning`](super::Thinning)).
    marks: Vec<Cell<u32>>,
    /// Entries that were copied from a locked leaf and have not been accepted yet. Each has its key
    /// and its packed row address.
    incoming: Vec<(Key<N>, u64)>,
}

/// Returns the maximum number of bytes that a chunk takes for each entry.
pub(super) const fn entry_size<const N: usize>() -> usize {
    size_of::<Key<N>>() + size_of::<u64>() + size_of::<Group>() + 4 * size_of::<u32>()
}

impl<const N: usize> SortedChunk<N> {
    /// Creates an empty chunk for keys with `scope_words` words of scope (0 or 1). With `distinct`,
    /// the chunk keeps one entry of each distinct key.
    pub fn new(scope_words: usize, distinct: bool) -> Self {
        SortedChunk {
            scope_words,
            distinct,
            unresolved_pairs: 0,
            keys: Vec::new(),
            rows: Vec::new(),
            runs: Vec::new(),
            groups: Vec::new(),
            directory: Vec::new(),
            marks: Vec::new(),
            incoming: Vec::new(),
        }
    }

    pub fn clear(&mut self) {
        self.keys.clear();
        self.rows.clear();
        self.runs.clear();
        self.groups.clear();
        self.directory.clear();
        self.marks.clear();
    }

    /// Sets how many pairs of an entry are reported before `resolve` is called for the entry. For
    /// these pairs, [`SortedChunk::row`] returns the address that the entry stores. If `pairs`
    /// exceeds [`MAX_COUNTED_PAIRS`], it is reduced to that number.
    pub fn trust(&mut self, pairs: u32) {
        self.unresolved_pairs = pairs.min(MAX_COUNTED_PAIRS);
    }

    /// Sets the mark of each entry to `mark(index of the entry)`. Returns false if memory cannot be
    /// allocated.
    pub fn mark_all(&mut self, mark: impl Fn(usize) -> u32) -> bool {
        let count = self.keys.len();
        self.marks.clear();
        let there_is_room = self.marks.try_reserve_exact(count).is_ok();
        if there_is_room {
            self.marks
                .extend((0..count).map(|entry| Cell::new(mark(entry))));
        }
        there_is_room
    }

    #[inline]
    pub fn mark(&self, entry: usize) -> u32 {
        self.marks[entry].get()
    }

    #[inline]
    pub fn set_mark(&self, entry: usize, mark: u32) {
        self.marks[entry].set(mark);
    }

    pub fn len(&self) -> usize {
        self.keys.len()
    }

    pub fn keys(&self) -> &[Key<N>] {
        &self.keys
    }

    /// Returns the row address in the entry at index `entry`. Must not be called after `resolve`
    /// was called for the entry, because the address has then been replaced.
    #[inline]
    pub fn entry_tid(&self, entry: usize) -> Tid {
        Tid::from_packed(self.rows[entry].get() % PAIR_COUNT_UNIT)
    }

    /// Removes all entries outside a range of indexes. Groups must not have been formed yet.
    pub fn keep(&mut self, entries: Range<usize>) {
        debug_assert!(self.groups.is_empty());
        self.keys.truncate(entries.end);
        self.rows.truncate(entries.end);
        self.keys.drain(..entries.start);
        self.rows.drain(..entries.start);
    }

    /// Replaces each key by the unpermuted key ([`Permutation::restore`]). In an index on
    /// signatures, that sets the hash bits of each key to zero, so that only scopes and sketches
    /// are compared.
    pub fn restore(&mut self, permutation: &Permutation<N>) {
        for key in &mut self.keys {
            *key = permutation.restore(key);
        }
    }

    /// Returns the bucket of a key: the scope (0 if keys have none), then the first `bits` bits
    /// after the scope, as a number.
    pub fn bucket(&self, key: &Key<N>, bits: u32) -> (u64, u64) {
        let scope = if self.scope_words == 0 { 0 } else { key[0] };
        (scope, prefix(key[self.scope_words], bits))
    }

    pub fn runs(&self) -> &[ScopeRun] {
        &self.runs
    }

    /// Allocates room for the entries of one more leaf. Returns false if memory is exhausted.
    pub fn reserve(&mut self) -> bool {
        let more = leaf::most_entries::<N>();
        self.incoming.try_reserve(more).is_ok()
            && self.keys.try_reserve(more).is_ok()
            && self.rows.try_reserve(more).is_ok()
    }

    /// Copies entries of a leaf: from `from` (inclusive) to `to` (exclusive), and only those in
    /// `scope`. `to` and `scope` are `None` for no limit. The leaf is locked, so this function only
    /// copies the entries to the field `incoming`. The caller unlocks the leaf and then calls
    /// [`SortedChunk::accept`].
    pub fn copy<P: Deref<Target = Page>>(
        &mut self,
        leaf: &Leaf<P, N>,
        (from, to): (EntryKey<N>, Option<EntryKey<N>>),
        scope: Option<u64>,
    ) {
        debug_assert!(self.incoming.is_empty());
        let wanted = (leaf.entries_from(from))
            .filter(|entry| scope.is_none_or(|scope| scope == entry.key[0]))
            .filter(|entry| to.is_none_or(|to| *entry < to));
        self.incoming
            .extend(wanted.map(|entry| (entry.key, entry.tid.packed())));
    }

    /// Appends the entries copied by [`SortedChunk::copy`] to the chunk, in key order. Skips
    /// entries for whose row address `wanted` returns false. The entries must be from a leaf to the
    /// right of all leaves in the chunk.
    pub fn accept(&mut self, wanted: &mut impl FnMut(Tid) -> bool) {
        self.incoming.sort_unstable();
        for (key, row) in self.incoming.drain(..) {
            let is_known = self.distinct && self.keys.last() == Some(&key);
            if is_known || !wanted(Tid::from_packed(row)) {
                continue;
            }
            self.keys.push(key);
            self.rows.push(Cell::new(row));
        }
    }

    /// Divides the entries into groups whose first `bits` bits after the scope are equal. If
    /// `coarser` is true and the groups of a run would have fewer than four entries on average,
    /// groups this run by fewer bits. Then each group has fewer neighbouring groups to look up.
    /// Returns false if memory is exhausted.
    pub fn form_groups(&mut self, bits: u32, coarser: bool) -> bool {
        let mut start = 0;
        while start < self.keys.len() {
            let scope_of = |key: &Key<N>| if self.scope_words == 0 { 0 } else { key[0] };
            let scope = scope_of(&self.keys[start]);
            let end = start + self.keys[start..].partition_point(|key| scope_of(key) == scope);
            let bits = match coarser {
                true => self.coarser(start..end, bits),
                false => bits,
            };
            if !self.form_run(scope, start..end, bits) {
                return false;
            }
            start = end;
        }
        true
    }

    /// Returns the number of leading bits by which to group `entries`: the greatest number, up to
    /// `bits`, with which groups have at least four entries on average.
    fn coarser(&self, entries: Range<usize>, bits: u32) -> u32 {
        /// Minimum average number of entries of a group.
        const FEWEST: usize = 4;
        let word = self.scope_words;
        // At index i, the number of entries whose first difference from the previous entry is bit
        // i.
        let mut first_differing = [0usize; 65];
        for pair in self.keys[entries.clone()].windows(2) {
            first_differing[(pair[0][word] ^ pair[1][word]).leading_zeros() as usize] += 1;
        }
        let most = (entries.len() / FEWEST).max(1);
        let mut groups = 1;
        (0..bits)
            .find(|&bit| {
                groups += first_differing[bit as usize];
                groups > most
            })
            .unwrap_or(bits)
    }

    /// Forms the groups and the directory of one run: all entries of the chunk in one scope.
    /// Returns false if memory is exhausted.
    fn form_run(&mut self, scope: u64, entries: Range<usize>, bits: u32) -> bool {
        let word = self.scope_words;
        let first = self.groups.len();
        for i in entries {
            let prefix = prefix(self.keys[i][word], bits);
            if self.groups.len() == first || self.groups.last().map(|g| g.prefix) != Some(prefix) {
                if self.groups.try_reserve(1).is_err() {
                    return false;
                }
                self.groups.push(Group {
                    prefix,
                    start: i as u32,
                });
            }
        }
        let groups = &self.groups[first..];
        let low = groups[0].prefix;
        let span = groups[groups.len() - 1].prefix - low;
        let mut shift = 0;
        while span >> shift >= 2 * groups.len() as u64 {
            shift += 1;
        }
        let directory = self.directory.len();
        let slots = (span >> shift) as usize + 2;
        if self.directory.try_reserve(slots).is_err() {
            return false;
        }
        let mut next = 0;
        for slot in 0..slots as u64 {
            while next < groups.len() && (groups[next].prefix - low) >> shift < slot {
                next += 1;
            }
            self.directory.push((first + next) as u32);
        }
        self.runs.push(ScopeRun {
            scope,
            bits,
            groups: first..self.groups.len(),
            directory,
            shift,
        });
        true
    }

    /// Returns the leading bits of a group, as a number.
    pub fn prefix(&self, group: usize) -> u64 {
        self.groups[group].prefix
    }

    pub fn group_count(&self) -> usize {
        self.groups.len()
    }

    /// Returns the indexes of the entries of a group.
    pub fn entries(&self, group: usize) -> Range<usize> {
        let end = self.groups.get(group + 1);
        self.groups[group].start as usize..end.map_or(self.keys.len(), |group| group.start as usize)
    }

    /// Returns the index of the group of `run` whose leading bits are `prefix`, or `None` if there
    /// is none.
    pub fn group(&self, run: &ScopeRun, prefix: u64) -> Option<usize> {
        let low = self.groups[run.groups.start].prefix;
        let slot = usize::try_from(prefix.checked_sub(low)? >> run.shift).ok()?;
        if prefix > self.groups[run.groups.end - 1].prefix {
            return None;
        }
        let from = self.directory[run.directory + slot] as usize;
        let to = self.directory[run.directory + slot + 1] as usize;
        let groups = &self.groups[from..to];
        let found = groups.binary_search_by_key(&prefix, |group| group.prefix);
        Some(from + found.ok()?)
    }

    /// Returns the row address to report for one more pair of an entry. For the first pairs of the
    /// entry, this is the address in the entry ([`SortedChunk::trust`]). For later pairs, it is the
    /// result of `resolve` for that address. `None` means that the row must not be in a pair.
    /// `resolve` is called at most once for each entry, and its result is stored.
    #[inline]
    pub fn row(&self, entry: usize, resolve: &mut impl FnMut(Tid) -> Option<Tid>) -> Option<Tid> {
        let cell = &self.rows[entry];
        let mut row = cell.get();
        if row & RESOLVED == 0 {
            let (met, entry) = (
                row / PAIR_COUNT_UNIT,
                Tid::from_packed(row % PAIR_COUNT_UNIT),
            );
            if met < u64::from(self.unresolved_pairs) {
                cell.set(row + PAIR_COUNT_UNIT);
                return Some(entry);
            }
            row = RESOLVED
                | match resolve(entry) {
                    Some(tid) => tid.packed(),
                    None => UNWANTED,
                };
            cell.set(row);
        }
        (row & UNWANTED == 0).then(|| Tid::from_packed(row & !RESOLVED))
    }

    /// Returns whether `resolve` has returned `None` for an entry.
    #[inline]
    pub fn is_unwanted(&self, entry: usize) -> bool {
        self.rows[entry].get() & UNWANTED != 0
    }
}
