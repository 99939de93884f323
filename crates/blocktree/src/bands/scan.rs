//! Search of an index on signatures for the rows that may be near a query signature. A band is a
//! group of positions of a signature, and a mismatch is a position at which two signatures differ.
//! The search looks up the query's hash in each band. It compares sketches, which give a lower
//! bound of the mismatches. If memory is short, it makes several passes over all bands, and each
//! pass returns the rows of one range of addresses.
//!
//! A search reads all bands before it returns the first row, because the number of bands in which
//! it found a row, with the row's sketch, decides whether the row is returned. Each entry found is
//! kept as one 64-bit number. If there are more entries than memory allows, the search drops the
//! rows with the higher addresses and finds them in another pass over the index.

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

/// A search stores a found entry in one 64-bit word ([`BandScan::found`]). This is the number of
/// the low bits of the word that have a number computed from the sketches. The bits above them have
/// the packed address of the row.
const BELOW: u32 = 16;

/// Minimum number of found entries for which a search has room, even if they take more memory than
/// the search may use. With less room, the search would make many passes over the index.
const MIN_KEPT: usize = 1024;

/// Number of bands whose first leaves are found and prefetched together, so that the processor
/// fetches all of them from memory at the same time.
const PREFETCH_DEPTH: usize = 8;

/// Query of an index on signatures: the keys to look up, the sketch and the allowed mismatches.
#[derive(Clone, Debug)]
pub struct BandQuery<const N: usize> {
    /// For each band, the key with the signature's hash in that band. The sketch bits are zero.
    keys: Vec<Key<N>>,
    /// Sketch of the signature.
    sketch: Sketch,
    /// Maximum number of mismatches of a match.
    mismatches: u32,
}

impl<const N: usize> BandQuery<N> {
    /// Creates a query for rows that have at most `mismatches` mismatches with `signature`.
    /// `scheme_hash` is as for [`Bands::hash`]. `scope` is `None` if keys have no scope.
    pub fn new(
        bands: &Bands,
        signature: &[u32],
        scheme_hash: u64,
        scope: Option<u64>,
        mismatches: usize,
    ) -> Self {
        let sketch = bands.sketch(signature);
        BandQuery {
            keys: (0..bands.count())
                .map(|band| bands.key(band, signature, scheme_hash, scope, &[0; WORDS]))
                .collect(),
            sketch,
            mismatches: mismatches as u32,
        }
    }

    /// Returns whether the sketch in `key` differs from the query's sketch in so few bits that the
    /// row may match. Does not know in which bands the row agrees with the query, so it rejects
    /// fewer rows than [`BandScan`] does.
    pub fn admits(&self, key: &Key<N>) -> bool {
        let low = u64::MAX >> HASH_BITS;
        let bits = ((key[N - WORDS] ^ self.sketch[0]) & low).count_ones()
            + (key[N - WORDS + 1] ^ self.sketch[1]).count_ones();
        bits <= self.mismatches
    }
}

/// Search of an index on signatures in progress. Holds no page between steps.
#[derive(Debug)]
pub struct BandScan<const N: usize> {
    bands: Rc<Bands>,
    query: BandQuery<N>,
    /// Number of the band that is read now, from 0. After the last band, the number of bands.
    band: usize,
    /// Next leaf of the band, and the first entry key that has not been read. `None` if no leaf of
    /// the band has been read.
    next: Option<(Block, EntryKey<N>)>,
    /// First leaf of each band in the current batch of [`PREFETCH_DEPTH`] bands. The tree may have
    /// changed since the leaves were found.
    ahead: [Option<Block>; PREFETCH_DEPTH],
    /// Entries found in this pass. An element has the row's packed address, and in the lowest
    /// [`BELOW`] bits a number computed from the sketches. This number minus the number of bands in
    /// which the row was found is a lower bound of the row's mismatches.
    found: Vec<u64>,
    /// Buffer for the indexes of matching entries on a leaf.
    indexes: Vec<u16>,
    /// Maximum number of entries in `found`. If there are more, the pass leaves the higher
    /// addresses to a later pass.
    max_found: usize,
    /// Lowest packed address of the rows that this pass returns.
    from: u64,
    /// End (exclusive) of the packed addresses of this pass. `None` in the last pass.
    to: Option<u64>,
    /// True after the last pass.
    done: bool,
}

impl<const N: usize> BandScan<N> {
    /// Creates a search that keeps as many found entries as fit into `memory` bytes, and at least
    /// `MIN_KEPT` entries. Further entries are found in later passes.
    pub fn new(bands: Rc<Bands>, query: BandQuery<N>, memory: usize) -> Self {
        BandScan {
            bands,
            query,
            band: 0,
            next: None,
            ahead: [None; PREFETCH_DEPTH],
            found: Vec::new(),
            indexes: Vec::new(),
            // At the end of a pass, each entry may also be a row in the output.
            max_found: (memory / (size_of::<u64>() + size_of::<Tid>())).max(MIN_KEPT),
            from: 0,
            to: None,
            done: false,
        }
    }

    /// Restarts the search with another query for the same bands. Keeps the allocated memory.
    pub fn restart(&mut self, query: BandQuery<N>) {
        self.query = query;
        self.found.clear();
        (self.band, self.next) = (0, None);
        (self.from, self.to, self.done) = (0, None, false);
    }

    /// Reads one more leaf. If the last leaf of a pass has been read, appends the rows found in the
    /// pass to `rows` and reads no leaf. Returns false if the search has ended. Returns each row
    /// once, in the order of addresses. A returned row may not be near the query: the caller
    /// compares the signatures. A row that is not returned shares no band with the query or has too
    /// many mismatches.
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

    /// Appends the rows that were found in this pass to `rows`. Skips a row if its sketch and the
    /// number of bands in which it was found prove that it has too many mismatches.
    fn emit(&mut self, rows: &mut Vec<Tid>) {
        self.found.sort_unstable();
        for entries in self.found.chunk_by(|a, b| a >> BELOW == b >> BELOW) {
            // All entries of a row have the same sketch, unless VACUUM removed the row and another
            // row got its address during the search. Then the lowest bound counts.
            let least = (entries[0] & 0xffff) as usize;
            if least <= self.query.mismatches as usize + entries.len() {
                rows.push(Tid::from_packed(entries[0] >> BELOW));
            }
        }
    }

    /// Returns the lowest entry key with the query's hash in `band`.
    fn start(&self, band: usize) -> EntryKey<N> {
        EntryKey::before_key(band as u16, self.query.keys[band])
    }

    /// Finds and prefetches the first leaves of the current band and of the bands after it.
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
        // The right link is read under the same lock as the entries. If a later split moves entries
        // to the right, they are not read twice, because they are below the high key read here.
        let high = leaf.right_sibling();
        tree.store.unlock_keep_pin(leaf.page);
        if self.found.len() > self.max_found {
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

    /// Returns the lowest and the highest key with the query's hash in `band`.
    fn ends(&self, band: usize) -> (Key<N>, Key<N>) {
        let (mut first, mut last) = (self.query.keys[band], self.query.keys[band]);
        first[N - WORDS] &= !(u64::MAX >> HASH_BITS);
        last[N - WORDS] |= u64::MAX >> HASH_BITS;
        (first[N - 1], last[N - 1]) = (0, u64::MAX);
        (first, last)
    }

    /// Returns whether `key` is greater than all keys with the query's hash in the current band.
    fn is_beyond(&self, key: &Key<N>) -> bool {
        *key > self.ends(self.band).1
    }

    /// Adds the entries of a leaf with the query's hash to `found`, unless their sketches reject
    /// them. Skips entries before `from`: they were read on a leaf that was merged into this one.
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

    /// Drops the found entries with the higher half of the addresses. Another pass finds them
    /// again. All entries of one row are kept in the same pass, because the number of bands in
    /// which a row was found decides whether it is returned.
    fn spill(&mut self) {
        let middle = self.found.len() / 2;
        let (_, median, _) = self.found.select_nth_unstable(middle);
        let to = (*median >> BELOW).max(self.from + 1);
        self.found.retain(|entry| entry >> BELOW < to);
        self.to = Some(to);
    }
}
