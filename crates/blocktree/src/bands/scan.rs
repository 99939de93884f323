//! Finding the rows whose signatures may be near a query's.
//!
//! All bands are searched before the first row is returned: the number of bands in which a row was
//! found decides, with its sketch, whether it is returned. Each entry found is kept as one number.
//! When there are more than memory allows, the rows with the higher addresses are left to another
//! pass over the index.

use std::ops::Deref;
use std::rc::Rc;

use super::{Bands, HASH_BITS, Sketch, WORDS};
use crate::filter;
use crate::key::{Block, EntryKey, Key, Tid};
use crate::leaf::{self, Leaf};
use crate::leaf_prefetch::{prefetch_between, prefetch_first};
use crate::page::{Page, Result};
use crate::store::{PrefetchPages, ReadPages};
use crate::tree::Tree;

/// Bits below a row's address in the number of an entry.
const BELOW: u32 = 16;

/// Minimum number of entries that are kept, even with little memory.
const MIN_KEPT: usize = 1024;

/// Bands whose leaves are found together, so that the machine fetches them all at once.
const PREFETCH_DEPTH: usize = 8;

/// Query: the signature and the number of mismatches allowed.
#[derive(Clone, Debug)]
pub struct BandQuery<const N: usize> {
    keys: Vec<Key<N>>,
    sketch: Sketch,
    mismatches: u32,
}

impl<const N: usize> BandQuery<N> {
    /// Rows that may have `mismatches` or fewer with a signature, within a scope where keys have
    /// one.
    pub fn new(
        bands: &Bands,
        signature: &[u32],
        kind: u64,
        scope: Option<u64>,
        mismatches: usize,
    ) -> Self {
        let sketch = bands.sketch(signature);
        BandQuery {
            keys: (0..bands.count())
                .map(|band| bands.key(band, signature, kind, scope, &[0; WORDS]))
                .collect(),
            sketch,
            mismatches: mismatches as u32,
        }
    }

    /// Returns whether a row with that sketch may have few enough mismatches, in whatever bands it
    /// agrees.
    pub fn admits(&self, key: &Key<N>) -> bool {
        let low = u64::MAX >> HASH_BITS;
        let bits = ((key[N - WORDS] ^ self.sketch[0]) & low).count_ones()
            + (key[N - WORDS + 1] ^ self.sketch[1]).count_ones();
        bits <= self.mismatches
    }
}

/// Search in progress. Between its steps it holds no page.
#[derive(Debug)]
pub struct BandScan<const N: usize> {
    bands: Rc<Bands>,
    query: BandQuery<N>,
    band: usize,
    /// The next leaf and the entry key from which it has not been read; `None`: the band's first.
    next: Option<(Block, EntryKey<N>)>,
    /// First leaves of the next bands, as they were when they were prefetched.
    ahead: [Option<Block>; PREFETCH_DEPTH],
    /// Entries: the row's address, and below it a number of mismatches that it has at least, were
    /// it in no permutation.
    found: Vec<u64>,
    /// Indexes of entries on a leaf.
    indexes: Vec<u16>,
    kept: usize,
    /// The addresses of this pass: from the first, and below the second if there is one.
    from: u64,
    to: Option<u64>,
    done: bool,
}

impl<const N: usize> BandScan<N> {
    /// A search that keeps as many entries as fit into `memory` bytes.
    pub fn new(bands: Rc<Bands>, query: BandQuery<N>, memory: usize) -> Self {
        BandScan {
            bands,
            query,
            band: 0,
            next: None,
            ahead: [None; PREFETCH_DEPTH],
            found: Vec::new(),
            indexes: Vec::new(),
            // In the end there may be a row for each entry.
            kept: (memory / (size_of::<u64>() + size_of::<Tid>())).max(MIN_KEPT),
            from: 0,
            to: None,
            done: false,
        }
    }

    /// Restarts with another query and keeps the allocated memory.
    pub fn restart(&mut self, query: BandQuery<N>) {
        self.query = query;
        self.found.clear();
        (self.band, self.next) = (0, None);
        (self.from, self.to, self.done) = (0, None, false);
    }

    /// Reads one more leaf or, when all have been read, appends the rows that were found. False:
    /// there was nothing left to do. Each row is given once, in the order of addresses. A row that
    /// is given need not be near the query; one that is not given is not.
    pub fn step<S: ReadPages + PrefetchPages>(
        &mut self,
        tree: &Tree<'_, S, N>,
        rows: &mut Vec<Tid>,
    ) -> Result<bool> {
        if self.done {
            return Ok(false);
        }
        if self.band < self.bands.count() {
            self.read_leaf(tree)?;
            return Ok(true);
        }
        self.emit(rows);
        self.found.clear();
        (self.band, self.next) = (0, None);
        match self.to.take() {
            Some(to) => self.from = to,
            None => self.done = true,
        }
        Ok(true)
    }

    /// Appends the rows that were found in this pass.
    fn emit(&mut self, rows: &mut Vec<Tid>) {
        self.found.sort_unstable();
        for entries in self.found.chunk_by(|a, b| a >> BELOW == b >> BELOW) {
            // Entries of one row have one sketch, unless another row has taken its place
            // meanwhile; then the one with the fewest mismatches counts.
            let least = (entries[0] & 0xffff) as usize;
            if least <= self.query.mismatches as usize + entries.len() {
                rows.push(Tid::from_packed(entries[0] >> BELOW));
            }
        }
    }

    /// Lowest entry key with a band's hash.
    fn start(&self, band: usize) -> EntryKey<N> {
        EntryKey::before_key(band as u16, self.query.keys[band])
    }

    /// Finds and prefetches the first leaves of the next bands.
    fn look_ahead<S: ReadPages + PrefetchPages>(&mut self, tree: &Tree<'_, S, N>) -> Result<()> {
        let bands = self.band..(self.band + PREFETCH_DEPTH).min(self.bands.count());
        let mut wanted = [None; PREFETCH_DEPTH];
        for (wanted, band) in wanted.iter_mut().zip(bands) {
            *wanted = Some((self.start(band), self.query.keys[band]));
        }
        self.ahead = tree.leaves_of(&wanted, |leaf| {
            tree.store.read_ahead(leaf);
            prefetch_first::<_, N>(tree.store, leaf);
        })?;
        for (index, leaf) in self.ahead.iter().enumerate() {
            if let Some(leaf) = leaf {
                let (first, last) = self.ends(self.band + index);
                prefetch_between(tree.store, *leaf, &first, &last);
            }
        }
        Ok(())
    }

    fn read_leaf<S: ReadPages + PrefetchPages>(&mut self, tree: &Tree<'_, S, N>) -> Result<()> {
        let permutation = self.band as u16;
        let was_prefetched = self.next.is_none();
        let (entry_key, hint) = match self.next {
            None => {
                if self.band.is_multiple_of(PREFETCH_DEPTH) {
                    self.look_ahead(tree)?;
                }
                (
                    self.start(self.band),
                    self.ahead[self.band % PREFETCH_DEPTH],
                )
            }
            Some((block, entry_key)) => (entry_key, Some(block)),
        };
        let leaf: Leaf<_, N> = tree.find(&entry_key, 0, hint, |block| match was_prefetched {
            true => tree.store.read_prefetched(block),
            false => tree.store.read(block),
        })?;
        if self.found.try_reserve(leaf::most_entries::<N>()).is_err() {
            tree.store.out_of_memory();
        }
        self.collect(&leaf, &entry_key);
        // The right link is read under the same lock as the entries. Entries that a later split
        // moves to the right have been read already, and are below the high key read here.
        let high = leaf.right_sibling();
        tree.store.unlock_keep_pin(leaf.page);
        if self.found.len() > self.kept {
            self.spill();
        }
        match high {
            Some((high, right))
                if high.permutation == permutation && !self.is_beyond(&high.key) =>
            {
                self.next = Some((right, high));
            }
            _ => {
                self.band += 1;
                self.next = None;
            }
        }
        Ok(())
    }

    /// The first key with the query's hash in a band, and the last.
    fn ends(&self, band: usize) -> (Key<N>, Key<N>) {
        let (mut first, mut last) = (self.query.keys[band], self.query.keys[band]);
        first[N - WORDS] &= !(u64::MAX >> HASH_BITS);
        last[N - WORDS] |= u64::MAX >> HASH_BITS;
        (first[N - 1], last[N - 1]) = (0, u64::MAX);
        (first, last)
    }

    /// Returns whether a key is greater than all keys with the query's hash.
    fn is_beyond(&self, key: &Key<N>) -> bool {
        *key > self.ends(self.band).1
    }

    /// Takes in the entries of a leaf from an entry key on. Those before it have been seen, on a
    /// leaf that has been merged into this one since.
    fn collect(&mut self, leaf: &Leaf<impl Deref<Target = Page>, N>, from: &EntryKey<N>) {
        let wanted = self.query.keys[self.band];
        let word = N - WORDS;
        self.indexes.clear();
        let keys = leaf.keys();
        let (first, last) = self.ends(self.band);
        for range in leaf.ranges_between(&first, &last) {
            let (before, start) = (self.indexes.len(), range.start as u16);
            let (keys, found) = (keys.part(range), &mut self.indexes);
            filter::leaf_with_prefix(&keys, word, wanted[word], HASH_BITS, found);
            found[before..].iter_mut().for_each(|index| *index += start);
        }
        for &i in &self.indexes {
            let entry_key = leaf.entry_key(usize::from(i));
            let key = entry_key.key;
            if key[..word] != wanted[..word] || entry_key < *from {
                continue;
            }
            let sketch = [key[word], key[word + 1]];
            let (bits, alike) = self.bands.difference(&sketch, &self.query.sketch);
            if bits > self.query.mismatches {
                continue;
            }
            let packed = entry_key.tid.packed();
            if packed >= self.from && self.to.is_none_or(|to| packed < to) {
                self.found.push(packed << BELOW | u64::from(bits + alike));
            }
        }
    }

    /// Leaves half of the rows found to another pass. Entries of one row stay together, however
    /// many.
    fn spill(&mut self) {
        let middle = self.found.len() / 2;
        let (_, median, _) = self.found.select_nth_unstable(middle);
        let to = (*median >> BELOW).max(self.from + 1);
        self.found.retain(|entry| entry >> BELOW < to);
        self.to = Some(to);
    }
}
