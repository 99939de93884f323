//! A part of a permutation in memory: its entries in the order of their keys, cut into groups.

use crate::block_layout::Permutation;
use crate::key::{EntryKey, Key, Tid};
use crate::leaf::{self, Leaf};
use crate::page::Page;
use crate::probes::prefix;
use std::cell::Cell;
use std::ops::{Deref, Range};

/// Flag of an entry that has been resolved: the rest of the word is the address that `resolve`
/// returned.
const RESOLVED: u64 = 1 << 63;
/// Flag, with [`RESOLVED`], of an entry for which `resolve` returned `None`.
const UNWANTED: u64 = 1 << 62;
/// Of an entry that is not resolved yet, the pairs that it was in stand above its address.
const MET: u64 = 1 << 48;
/// Most pairs that are counted of an entry.
pub(super) const MOST_MET: u32 = 1 << 13;

/// Entries of one scope that follow each other; without scopes, all of a chunk.
#[derive(Clone, Debug)]
pub(super) struct ScopeRun {
    /// The scope; 0 if there are none.
    pub scope: u64,
    /// Leading bits that make its groups.
    pub bits: u32,
    /// Its groups.
    pub groups: Range<usize>,
    /// Start of its part of the directory, and the shift from prefixes to slots.
    directory: usize,
    shift: u32,
}

/// Entries whose leading bits agree. It ends where the next one starts.
#[derive(Clone, Copy, Debug)]
struct Group {
    prefix: u64,
    start: u32,
}

/// Entries of one permutation, from some leaves of it.
#[derive(Debug)]
pub(super) struct SortedChunk<const N: usize> {
    /// Words of a key that hold a scope.
    scope_words: usize,
    /// Keeps one of several equal keys.
    distinct: bool,
    /// Pairs of an entry before its row is asked for.
    trusted: u32,
    keys: Vec<Key<N>>,
    /// Rows in the same order, packed, with their state.
    rows: Vec<Cell<u64>>,
    runs: Vec<ScopeRun>,
    groups: Vec<Group>,
    /// For the high bits of a prefix, the first group that has them or higher ones.
    directory: Vec<u32>,
    /// A number for each entry, if pairs are thinned out.
    marks: Vec<Cell<u32>>,
    /// A leaf's entries on their way.
    incoming: Vec<(Key<N>, u64)>,
}

/// Bytes that an entry takes at most.
pub(super) const fn entry_size<const N: usize>() -> usize {
    size_of::<Key<N>>() + size_of::<u64>() + size_of::<Group>() + 4 * size_of::<u32>()
}

impl<const N: usize> SortedChunk<N> {
    pub fn new(scope_words: usize, distinct: bool) -> Self {
        SortedChunk {
            scope_words,
            distinct,
            trusted: 0,
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

    /// Gives an entry's row unasked for its first pairs; at most [`MOST_MET`].
    pub fn trust(&mut self, pairs: u32) {
        self.trusted = pairs.min(MOST_MET);
    }

    /// Sets the mark of each entry; false: there is no memory.
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

    /// Returns the address in an entry that has not been resolved.
    #[inline]
    pub fn entry_tid(&self, entry: usize) -> Tid {
        Tid::from_packed(self.rows[entry].get() % MET)
    }

    /// Removes all entries outside of a range, before any groups exist.
    pub fn keep(&mut self, entries: Range<usize>) {
        debug_assert!(self.groups.is_empty());
        self.keys.truncate(entries.end);
        self.rows.truncate(entries.end);
        self.keys.drain(..entries.start);
        self.rows.drain(..entries.start);
    }

    /// Replaces each key by what a permutation says about its row.
    pub fn restore(&mut self, permutation: &Permutation<N>) {
        for key in &mut self.keys {
            *key = permutation.restore(key);
        }
    }

    /// Returns the scope and the leading bits of a key.
    pub fn bucket(&self, key: &Key<N>, bits: u32) -> (u64, u64) {
        let scope = if self.scope_words == 0 { 0 } else { key[0] };
        (scope, prefix(key[self.scope_words], bits))
    }

    pub fn runs(&self) -> &[ScopeRun] {
        &self.runs
    }

    /// Makes room for another leaf; false: there is no memory.
    pub fn reserve(&mut self) -> bool {
        let more = leaf::most_entries::<N>();
        self.incoming.try_reserve(more).is_ok()
            && self.keys.try_reserve(more).is_ok()
            && self.rows.try_reserve(more).is_ok()
    }

    /// Copies the entries of a leaf from an entry key on, up to another if there is one, of one
    /// scope if one is given. The leaf is locked, so that [`SortedChunk::accept`] does the rest
    /// later.
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

    /// Takes in those of the copied entries that are wanted. They come from a leaf to the right of
    /// all before.
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

    /// Forms groups of entries whose first `bits` bits agree. With `coarser`, of fewer bits where
    /// groups would hold less than a few entries each: neighbouring groups are then fewer, too.
    /// False: there is no memory.
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

    /// The most bits, up to `bits`, that make groups of four entries or more, on average.
    fn coarser(&self, entries: Range<usize>, bits: u32) -> u32 {
        const FEWEST: usize = 4;
        let word = self.scope_words;
        // How many entries differ from the one before at bit i first.
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

    pub fn prefix(&self, group: usize) -> u64 {
        self.groups[group].prefix
    }

    pub fn group_count(&self) -> usize {
        self.groups.len()
    }

    /// The entries of a group.
    pub fn entries(&self, group: usize) -> Range<usize> {
        let end = self.groups.get(group + 1);
        self.groups[group].start as usize..end.map_or(self.keys.len(), |group| group.start as usize)
    }

    /// The group of a run that has a prefix.
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

    /// The row of an entry that is in one more pair, as the caller sees it; `None` if it does not
    /// want it. The caller is asked once, or not yet.
    #[inline]
    pub fn row(&self, entry: usize, resolve: &mut impl FnMut(Tid) -> Option<Tid>) -> Option<Tid> {
        let cell = &self.rows[entry];
        let mut row = cell.get();
        if row & RESOLVED == 0 {
            let (met, entry) = (row / MET, Tid::from_packed(row % MET));
            if met < u64::from(self.trusted) {
                cell.set(row + MET);
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

    /// Returns whether an entry's row is known not to be wanted.
    #[inline]
    pub fn is_unwanted(&self, entry: usize) -> bool {
        self.rows[entry].get() & UNWANTED != 0
    }
}
