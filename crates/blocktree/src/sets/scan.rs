//! Search of an index on sets for the rows whose sets contain at least one of some elements, or
//! whose sets have a given sum (of hashes of the elements). The elements or the sum are the wanted
//! numbers. A pass over their entries returns the rows with addresses in a range. If all rows fit
//! into memory, one pass is enough. If keys have a scope (columns that must be equal in two
//! near-duplicates), their first word is a hash of the scope.
//!
//! A row has an entry for each of its elements, but must be returned once. So the search collects
//! the addresses of rows, as many as memory allows, before it returns them. If there are more, it
//! returns the rows with higher addresses after another pass over the index. A caller that accepts
//! a row more than once gets rows as they are found.

use std::ops::Deref;

use super::{ELEMENT_PERMUTATION, ROW_PERMUTATION, WORDS, key, number};
use crate::filter;
use crate::key::{Block, EntryKey, Tid};
use crate::leaf::{self, Leaf};
use crate::page::{Page, Result};
use crate::store::{PrefetchPages, ReadPages};
use crate::tree::Tree;

/// Minimum number of row addresses that a pass collects, even if they exceed the memory limit.
const MIN_KEPT: usize = 1024;

/// Number of elements whose first leaves are found and prefetched together, so that the processor
/// fetches all of them from memory at the same time.
const PREFETCH_DEPTH: usize = 8;

/// Maximum number of wanted elements for which the keys of a leaf are filtered once for each of
/// these elements. If a leaf may contain more wanted elements, the search instead looks up each key
/// of the leaf among the wanted elements.
const MOST_PASSES: usize = 12;

/// Query of an index on sets: the wanted numbers (elements or a sum), in one permutation.
#[derive(Clone, Debug)]
pub struct SetQuery {
    permutation: u16,
    /// Wanted elements, or one wanted sum, in ascending order and without duplicates.
    numbers: Vec<u64>,
    /// Wanted scope. `None` if keys have no scope, or rows of all scopes are wanted.
    scope: Option<u64>,
    /// True if keys have a scope and rows of all scopes are wanted.
    in_all_scopes: bool,
}

impl SetQuery {
    /// Creates a query for the rows whose sets contain at least one of `elements`.
    pub fn any_of(elements: Vec<u64>) -> Self {
        Self::new(ELEMENT_PERMUTATION, elements)
    }

    /// Creates a query for the rows whose sets have the sum of hashes `sum` ([`sum`](super::sum)).
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

    /// Limits the query to the rows of a scope, in an index whose keys have scopes.
    pub fn in_scope(self, scope: u64) -> Self {
        SetQuery {
            scope: Some(scope),
            ..self
        }
    }

    /// Extends the query to the rows of all scopes, in an index whose keys have scopes. The search
    /// then reads the whole permutation.
    pub fn in_all_scopes(self) -> Self {
        SetQuery {
            in_all_scopes: true,
            ..self
        }
    }

    /// Returns the lowest entry key with the wanted number at index `at`. If rows of all scopes are
    /// wanted, returns the start of the permutation.
    fn start<const N: usize>(&self, at: usize) -> EntryKey<N> {
        match self.in_all_scopes {
            true => EntryKey::start_of(self.permutation),
            false => EntryKey::before_key(self.permutation, key(self.numbers[at], self.scope)),
        }
    }
}

/// Search of an index on sets in progress. Holds no page between steps.
#[derive(Debug)]
pub struct SetScan<const N: usize> {
    query: SetQuery,
    /// Index of the first wanted number whose entries have not all been read in this pass.
    at: usize,
    /// Next leaf, and the first entry key on it that has not been read. `None` if the search
    /// continues at the first entry of the number at index `at`.
    next: Option<(Block, EntryKey<N>)>,
    /// First leaves of some consecutive wanted numbers, found in advance. The first field is the
    /// index of the first of these numbers. The array has a leaf for this number and for each
    /// number after it. The tree may have changed since the leaves were found.
    ahead: (usize, [Option<Block>; PREFETCH_DEPTH]),
    /// Packed addresses of the rows found in this pass, which have not been returned yet.
    found: Vec<u64>,
    /// Buffer for the indexes of matching entries on a leaf.
    indexes: Vec<u16>,
    /// Maximum length of `found`. If it is exceeded, the rows with the higher addresses are left to
    /// another pass.
    max_found: usize,
    /// True if rows are returned as they are found, so that a row may be returned more than once.
    repeats: bool,
    /// Lowest packed address of the rows that this pass returns.
    from: u64,
    /// End (exclusive) of the packed addresses of the rows that this pass returns. `None` in the
    /// last pass.
    to: Option<u64>,
    /// True after the last pass.
    done: bool,
}

impl<const N: usize> SetScan<N> {
    /// Creates a search that collects as many row addresses as fit into `memory` bytes, and at
    /// least `MIN_KEPT`.
    pub fn new(query: SetQuery, memory: usize) -> Self {
        let mut scan = SetScan {
            query,
            at: 0,
            next: None,
            ahead: (0, [None; PREFETCH_DEPTH]),
            found: Vec::new(),
            indexes: Vec::new(),
            // At the end of a pass, each address is also a row in the output.
            max_found: (memory / (size_of::<u64>() + size_of::<Tid>())).max(MIN_KEPT),
            repeats: false,
            from: 0,
            to: None,
            done: false,
        };
        scan.begin_pass();
        scan
    }

    /// Restarts the search with another query. Keeps the allocated memory.
    pub fn restart(&mut self, query: SetQuery) {
        self.query = query;
        self.found.clear();
        (self.from, self.to, self.done) = (0, None, false);
        self.repeats = false;
        self.begin_pass();
    }

    /// Makes the search return rows as they are found, so that a row may be returned more than
    /// once. [`SetScan::restart`] ends that.
    pub fn allow_repeats(&mut self) {
        self.repeats = true;
    }

    /// Reads one more leaf, or ends the pass. After the last leaf of a pass, the next call reads no
    /// leaf, but appends the rows found in the pass to `rows`. Returns false if the search has
    /// ended. Each row is returned once, in the order of addresses. If repeats are allowed
    /// ([`SetScan::allow_repeats`]), each call appends the rows of its leaf.
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

    /// Returns the first entry key that has not been read, and the leaf that probably contains it.
    /// The leaf is `None` if the search must descend from the root.
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
        // The right link is read under the same lock as the entries. If a later split moves entries
        // to the right, they are not read twice, because they are below the high key read here.
        let sibling = leaf.right_sibling();
        let sibling = sibling.filter(|(high, _)| high.permutation == from.permutation);
        let end = sibling.map_or(self.query.numbers.len(), |(high, _)| self.end_before(&high));
        self.collect(&leaf, &from, self.at..end);
        tree.store.unlock_keep_pin(leaf.page);
        self.next = None;
        match sibling {
            Some((high, right)) if self.query.in_all_scopes => self.next = Some((right, high)),
            // The last number on this leaf may have entries on the right sibling, too.
            Some((high, right)) if self.query.start(end - 1).key == high.key => {
                self.at = end - 1;
                self.next = Some((right, high));
            }
            _ => self.at = end,
        }
        if self.found.len() > self.max_found && !self.repeats {
            self.make_room();
        }
        Ok(())
    }

    /// Returns the index behind the last wanted number that may be on a leaf with the high key
    /// `high`.
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

    /// Adds to `found` the rows whose entries on a leaf have a wanted number. `numbers` is the
    /// range of the indexes of the wanted numbers that may be on the leaf. Skips entries below
    /// `from`: they were read on a leaf that was then merged into this one.
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

    /// Removes duplicates from `found`. If `found` is still longer than half of its maximum length,
    /// drops the higher half of the addresses. The first dropped address becomes the end of the
    /// range of this pass. Another pass finds the dropped rows again.
    fn make_room(&mut self) {
        self.found.sort_unstable();
        self.found.dedup();
        let middle = self.found.len() / 2;
        if self.found.len() > self.max_found / 2 {
            self.to = Some(self.found[middle]);
            self.found.truncate(middle);
        }
    }
}
