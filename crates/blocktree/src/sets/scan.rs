//! Finds the rows whose sets contain at least one of some numbers.
//!
//! A row has an entry for each of its elements, but must be returned once. So the scan collects
//! addresses, as many as memory allows. Another pass over the index returns rows with higher
//! addresses. A caller that accepts repeated rows receives them as they are found.

use std::ops::Deref;

use super::{ELEMENT_PERMUTATION, ROW_PERMUTATION, WORDS, key, number};
use crate::filter;
use crate::key::{Block, EntryKey, Tid};
use crate::leaf::{self, Leaf};
use crate::page::{Page, Result};
use crate::store::{PrefetchPages, ReadPages};
use crate::tree::Tree;

/// Minimum number of addresses that are gathered, even with little memory.
const MIN_KEPT: usize = 1024;

/// Numbers whose leaves are found together, so that the machine fetches them all at once.
const PREFETCH_DEPTH: usize = 8;

/// The most numbers that a leaf is searched for one after the other. More are looked up for each of
/// its entries.
const MOST_PASSES: usize = 12;

/// Rows that are wanted: those under one of some numbers, in one permutation.
#[derive(Clone, Debug)]
pub struct SetQuery {
    permutation: u16,
    /// In ascending order, each once.
    numbers: Vec<u64>,
    scope: Option<u64>,
    /// Rows of all scopes are wanted, though keys have one.
    in_all_scopes: bool,
}

impl SetQuery {
    /// The rows that have one of these elements.
    pub fn any_of(elements: Vec<u64>) -> Self {
        Self::new(ELEMENT_PERMUTATION, elements)
    }

    /// The rows whose elements have this [`sum`](super::sum).
    pub fn with_sum(sum: u64) -> Self {
        Self::new(ROW_PERMUTATION, vec![sum])
    }

    fn new(permutation: u16, mut numbers: Vec<u64>) -> Self {
        numbers.sort_unstable();
        numbers.dedup();
        SetQuery {
            permutation,
            numbers,
            scope: None,
            in_all_scopes: false,
        }
    }

    /// The same in a scope, where keys have one.
    pub fn in_scope(self, scope: u64) -> Self {
        SetQuery {
            scope: Some(scope),
            ..self
        }
    }

    /// The same in all scopes, where keys have one: the whole permutation is read.
    pub fn in_all_scopes(self) -> Self {
        SetQuery {
            in_all_scopes: true,
            ..self
        }
    }

    /// Lowest entry key with the number at an index.
    fn start<const N: usize>(&self, at: usize) -> EntryKey<N> {
        match self.in_all_scopes {
            true => EntryKey::start_of(self.permutation),
            false => EntryKey::before_key(self.permutation, key(self.numbers[at], self.scope)),
        }
    }
}

/// Search in progress. Between its steps it holds no page.
#[derive(Debug)]
pub struct SetScan<const N: usize> {
    query: SetQuery,
    /// The first number that has not been looked up to its end.
    at: usize,
    /// The next leaf and the entry key from which it has not been read; `None`: that of the number.
    next: Option<(Block, EntryKey<N>)>,
    /// First leaves of the numbers from an index, as of the prefetch.
    ahead: (usize, [Option<Block>; PREFETCH_DEPTH]),
    /// Packed addresses of rows.
    found: Vec<u64>,
    /// Indexes of entries on a leaf.
    indexes: Vec<u16>,
    kept: usize,
    /// Rows may come more than once.
    repeats: bool,
    /// The addresses of this pass: from the first, and below the second if there is one.
    from: u64,
    to: Option<u64>,
    done: bool,
}

impl<const N: usize> SetScan<N> {
    /// A search that gathers as many rows as fit into `memory` bytes.
    pub fn new(query: SetQuery, memory: usize) -> Self {
        let mut scan = SetScan {
            query,
            at: 0,
            next: None,
            ahead: (0, [None; PREFETCH_DEPTH]),
            found: Vec::new(),
            indexes: Vec::new(),
            // In the end each is given as a row, too.
            kept: (memory / (size_of::<u64>() + size_of::<Tid>())).max(MIN_KEPT),
            repeats: false,
            from: 0,
            to: None,
            done: false,
        };
        scan.begin_pass();
        scan
    }

    /// Restarts with another query and keeps the allocated memory.
    pub fn restart(&mut self, query: SetQuery) {
        self.query = query;
        self.found.clear();
        (self.from, self.to, self.done) = (0, None, false);
        self.repeats = false;
        self.begin_pass();
    }

    /// Gives rows as they are found from now on, each as often as that happens, until a restart.
    pub fn allow_repeats(&mut self) {
        self.repeats = true;
    }

    /// Reads one more leaf or, when all have been read, appends the rows that were found. False:
    /// there was nothing left to do. Unless rows may come repeatedly, each is given once, in the
    /// order of addresses.
    pub fn step<S: ReadPages + PrefetchPages>(
        &mut self,
        tree: &Tree<'_, S, N>,
        rows: &mut Vec<Tid>,
    ) -> Result<bool> {
        if self.done {
            return Ok(false);
        }
        if self.at < self.query.numbers.len() {
            self.read_leaf(tree)?;
            if self.repeats {
                self.emit(rows);
            }
            return Ok(true);
        }
        self.found.sort_unstable();
        self.found.dedup();
        self.emit(rows);
        self.begin_pass();
        match self.to.take() {
            Some(to) => self.from = to,
            None => self.done = true,
        }
        Ok(true)
    }

    fn begin_pass(&mut self) {
        (self.at, self.next) = (0, None);
        self.ahead = (0, [None; PREFETCH_DEPTH]);
    }

    fn emit(&mut self, rows: &mut Vec<Tid>) {
        rows.extend(self.found.drain(..).map(Tid::from_packed));
    }

    /// The entry key to read from, and the page to try first, without which the way is from the
    /// root.
    fn position<S: ReadPages + PrefetchPages>(
        &mut self,
        tree: &Tree<'_, S, N>,
    ) -> Result<(EntryKey<N>, Option<Block>)> {
        if let Some((block, from)) = self.next {
            return Ok((from, Some(block)));
        }
        if self.query.in_all_scopes {
            return Ok((self.query.start(0), None));
        }
        if self.at >= self.ahead.0 + PREFETCH_DEPTH || self.ahead.1[0].is_none() {
            let mut wanted = [None; PREFETCH_DEPTH];
            for (wanted, at) in wanted.iter_mut().zip(self.at..self.query.numbers.len()) {
                let start = self.query.start(at);
                *wanted = Some((start, start.key));
            }
            let leaves = tree.leaves_of(&wanted, |leaf| tree.store.prefetch(leaf))?;
            self.ahead = (self.at, leaves);
        }
        let (first, leaves) = &self.ahead;
        Ok((self.query.start(self.at), leaves[self.at - first]))
    }

    fn read_leaf<S: ReadPages + PrefetchPages>(&mut self, tree: &Tree<'_, S, N>) -> Result<()> {
        let (from, hint) = self.position(tree)?;
        let leaf: Leaf<_, N> = tree.find(&from, 0, hint, |block| tree.store.read(block))?;
        if self.found.try_reserve(leaf::most_entries::<N>()).is_err() {
            tree.store.out_of_memory();
        }
        // The right link is read under the same lock as the entries. Entries that a later split
        // moves to the right have been read already, and are below the high key read here.
        let sibling = leaf.right_sibling();
        let sibling = sibling.filter(|(high, _)| high.permutation == from.permutation);
        let end = sibling.map_or(self.query.numbers.len(), |(high, _)| self.end_before(&high));
        self.collect(&leaf, &from, self.at..end);
        tree.store.unlock_keep_pin(leaf.page);
        self.next = None;
        match sibling {
            Some((high, right)) if self.query.in_all_scopes => self.next = Some((right, high)),
            // The entries of the last number go on there, or begin.
            Some((high, right)) if self.query.start(end - 1).key == high.key => {
                self.at = end - 1;
                self.next = Some((right, high));
            }
            _ => self.at = end,
        }
        if self.found.len() > self.kept && !self.repeats {
            self.make_room();
        }
        Ok(())
    }

    /// End index of the numbers that a leaf with this high key may contain. The leaf contains the
    /// number for which it is read.
    fn end_before(&self, high: &EntryKey<N>) -> usize {
        let SetQuery {
            numbers,
            scope,
            in_all_scopes,
            ..
        } = &self.query;
        match in_all_scopes {
            true => numbers.len(),
            false => numbers.partition_point(|&it| key(it, *scope) <= high.key),
        }
    }

    /// Takes in the entries of a leaf, from an entry key on, that have one of the numbers at these
    /// positions. Entries before it have been seen, on a leaf that has been merged into this one
    /// since.
    fn collect(
        &mut self,
        leaf: &Leaf<impl Deref<Target = Page>, N>,
        from: &EntryKey<N>,
        numbers: std::ops::Range<usize>,
    ) {
        let query = &self.query;
        let numbers = &query.numbers[numbers];
        let keys = leaf.keys();
        self.indexes.clear();
        if numbers.len() > MOST_PASSES {
            let is_wanted = |i: &usize| numbers.binary_search(&number(&keys.get(*i))).is_ok();
            let indexes = (0..keys.len()).filter(is_wanted);
            self.indexes.extend(indexes.map(|i| i as u16));
        } else {
            for &wanted in numbers {
                let word = N - WORDS;
                filter::leaf_with_prefix(&keys, word, wanted, 64, &mut self.indexes);
            }
        }
        for &i in &self.indexes {
            let entry_key = leaf.entry_key(usize::from(i));
            let is_in_scope = query.scope.is_none_or(|scope| entry_key.key[0] == scope);
            let packed = entry_key.tid.packed();
            let is_in_pass = packed >= self.from && self.to.is_none_or(|to| packed < to);
            if is_in_scope && is_in_pass && entry_key >= *from {
                self.found.push(packed);
            }
        }
    }

    /// Leaves rows to another pass, if they are too many for this one: those with the higher half
    /// of the addresses.
    fn make_room(&mut self) {
        self.found.sort_unstable();
        self.found.dedup();
        let middle = self.found.len() / 2;
        if self.found.len() > self.kept / 2 {
            self.to = Some(self.found[middle]);
            self.found.truncate(middle);
        }
    }
}
