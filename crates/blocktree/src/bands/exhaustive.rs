//! All pairs of rows whose sketches are near each other, whatever bands they share.
//!
//! Within a scope each row is compared with each other one: a part of the first table that fits
//! into memory with itself, then with what follows it (a block nested loop). A pair comes once.

use std::collections::BinaryHeap;

use super::pairs::{BandEntry, PAUSE, read_leaf, sketch, sketch_difference};
use super::{WORDS, mix};
use crate::key::{Key, Tid};
use crate::leaf;
use crate::level_cursor::LevelCursor;
use crate::page::Result;
use crate::store::PageStore;
use crate::tree::Tree;

/// Rows whose sketches are compared to estimate how many pairs are candidates.
const SAMPLE: usize = 1024;

/// Next step of a search.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Read the next part.
    Read,
    /// Compare this entry of the part with those behind it.
    Within(usize),
    /// Read another leaf to the right of the part.
    ReadOn,
    /// Compare this entry to the right of the part with the part.
    Beyond(usize),
    Done,
}

/// Search for candidates in progress, which gives some of them at a time. Between its steps it
/// holds no page.
#[derive(Debug)]
pub struct ExhaustivePairs<const N: usize> {
    mismatches: u32,
    phase: Phase,
    cursor: LevelCursor<N>,
    /// The table ends with the part.
    ended: bool,
    part: Vec<BandEntry<N>>,
    /// Most entries of a part.
    capacity: usize,
    /// Cursor to the right of the part, and the leaf that it read last.
    beyond: LevelCursor<N>,
    others: Vec<BandEntry<N>>,
    /// Leaves follow that may hold rows of the part's last scope.
    goes_on: bool,
    compared: usize,
    rows: u64,
}

impl<const N: usize> ExhaustivePairs<N> {
    /// A search for pairs whose sketches do not rule out `mismatches` or fewer. It keeps as many
    /// entries as fit into `memory` bytes, or as two leaves hold.
    pub fn new(mismatches: usize, memory: usize) -> Self {
        ExhaustivePairs {
            mismatches: mismatches as u32,
            phase: Phase::Read,
            cursor: LevelCursor::new(0),
            ended: false,
            part: Vec::new(),
            capacity: (memory / size_of::<BandEntry<N>>()).max(2 * leaf::capacity::<N>()),
            beyond: LevelCursor::new(0),
            others: Vec::new(),
            goes_on: false,
            compared: 0,
            rows: 0,
        }
    }

    /// Number of rows that have been compared with those that follow in the same part.
    pub fn rows_done(&self) -> u64 {
        self.rows
    }

    /// Gives more candidates, the lower address first: all that one row has in a part of the
    /// table, and those of further rows until there are `enough`. False: there are no more. Rows
    /// that are not `wanted` are left out.
    pub fn step<S: PageStore>(
        &mut self,
        tree: &Tree<'_, S, N>,
        enough: usize,
        wanted: &mut impl FnMut(Tid) -> bool,
        emit: &mut impl FnMut([Tid; 2]),
    ) -> Result<bool> {
        let mut given = 0;
        let mut give = |pair| {
            given += 1;
            emit(pair);
            given >= enough
        };
        loop {
            let is_enough = match self.phase {
                Phase::Done => return Ok(false),
                Phase::Read => {
                    self.read(tree, wanted)?;
                    false
                }
                Phase::ReadOn => {
                    self.read_on(tree, wanted)?;
                    false
                }
                Phase::Within(i) => self.within(i, tree.store, &mut give),
                Phase::Beyond(i) => self.beyond(i, tree.store, &mut give),
            };
            if is_enough {
                return Ok(true);
            }
        }
    }

    fn read<S: PageStore>(
        &mut self,
        tree: &Tree<'_, S, N>,
        wanted: &mut impl FnMut(Tid) -> bool,
    ) -> Result<()> {
        self.part.clear();
        while !self.ended && self.part.len() + leaf::capacity::<N>() <= self.capacity {
            self.ended = !read_leaf(tree, &mut self.cursor, &mut self.part, wanted)?;
        }
        self.phase = match self.part.len() {
            0 => Phase::Done,
            _ => Phase::Within(0),
        };
        (self.beyond, self.goes_on) = (self.cursor, !self.ended);
        Ok(())
    }

    fn read_on<S: PageStore>(
        &mut self,
        tree: &Tree<'_, S, N>,
        wanted: &mut impl FnMut(Tid) -> bool,
    ) -> Result<()> {
        self.others.clear();
        self.phase = Phase::Read;
        while self.goes_on && self.others.is_empty() {
            self.goes_on = read_leaf(tree, &mut self.beyond, &mut self.others, wanted)?;
            self.phase = Phase::Beyond(0);
        }
        Ok(())
    }

    /// Compares an entry of the part with those behind it. Returns whether enough is given.
    fn within(
        &mut self,
        i: usize,
        store: &impl PageStore,
        give: &mut impl FnMut([Tid; 2]) -> bool,
    ) -> bool {
        let Some(own) = self.part.get(i) else {
            self.phase = Phase::ReadOn;
            return false;
        };
        let scope = scope(&own.0);
        let end = self
            .part
            .partition_point(|(key, _)| self::scope(key) <= scope);
        let (compared, is_enough) = compare(own, &self.part[i + 1..end], self.mismatches, give);
        self.phase = Phase::Within(i + 1);
        self.rows += 1;
        self.check_interrupts(compared, store);
        is_enough
    }

    /// Compares an entry to the right of the part with the part.
    fn beyond(
        &mut self,
        i: usize,
        store: &impl PageStore,
        give: &mut impl FnMut([Tid; 2]) -> bool,
    ) -> bool {
        let last = self.part.last().map(|(key, _)| scope(key));
        let Some(other) = self.others.get(i) else {
            self.phase = Phase::ReadOn;
            return false;
        };
        if last != Some(scope(&other.0)) {
            // Another scope begins.
            self.phase = Phase::Read;
            return false;
        }
        let start = (self.part).partition_point(|(key, _)| scope(key) < scope(&other.0));
        let (compared, is_enough) = compare(other, &self.part[start..], self.mismatches, give);
        self.phase = Phase::Beyond(i + 1);
        self.check_interrupts(compared, store);
        is_enough
    }

    /// Lets the store pause from time to time.
    fn check_interrupts(&mut self, comparisons: usize, store: &impl PageStore) {
        self.compared += comparisons + 1;
        if self.compared >= PAUSE {
            self.compared = 0;
            store.check_interrupts();
        }
    }
}

/// Compares an entry with others. Returns their number, and whether enough is given.
fn compare<const N: usize>(
    (key, row): &BandEntry<N>,
    others: &[BandEntry<N>],
    mismatches: u32,
    give: &mut impl FnMut([Tid; 2]) -> bool,
) -> (usize, bool) {
    let (own, mut is_enough) = (sketch(key), false);
    for (other, other_row) in others {
        if sketch_difference(&own, &sketch(other)) <= mismatches && row != other_row {
            let rows = [row.min(other_row), row.max(other_row)];
            is_enough |= give(rows.map(|row| Tid::from_packed(*row)));
        }
    }
    (others.len(), is_enough)
}

/// The scope in a key.
fn scope<const N: usize>(key: &Key<N>) -> &[u64] {
    &key[..N - WORDS]
}

/// Work of a search that compares all rows of a scope with each other.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ExhaustiveWork {
    /// Rows that take part.
    pub rows: u64,
    /// Comparisons of two sketches.
    pub comparisons: f64,
    /// Estimated number of pairs whose sketches do not rule out that they are near each other.
    pub candidates: f64,
}

/// Counts the comparisons that a search for pairs with `mismatches` or fewer takes beyond what the
/// bands guarantee, and estimates the candidates from a random sample of rows, the same every
/// time. It reads the first table once.
pub fn exhaustive_work<S: PageStore, const N: usize>(
    tree: &Tree<'_, S, N>,
    mismatches: usize,
    wanted: &mut impl FnMut(Tid) -> bool,
) -> Result<ExhaustiveWork> {
    let mut work = ExhaustiveWork::default();
    let mut cursor = LevelCursor::<N>::new(0);
    let mut entries = Vec::new();
    // A bottom-k sample by hash.
    let mut sample = BinaryHeap::<(u64, Key<N>)>::new();
    let mut last: Option<(Vec<u64>, f64)> = None;
    let mut more = true;
    while more {
        entries.clear();
        more = read_leaf(tree, &mut cursor, &mut entries, wanted)?;
        for &(key, row) in &entries {
            let before = match &mut last {
                Some((known, count)) if *known == scope(&key) => {
                    *count += 1.0;
                    *count - 1.0
                }
                _ => {
                    last = Some((scope(&key).to_vec(), 1.0));
                    0.0
                }
            };
            work.rows += 1;
            work.comparisons += before;
            let hash = mix(row);
            if sample.len() < SAMPLE || sample.peek().is_some_and(|top| hash < top.0) {
                sample.push((hash, key));
                if sample.len() > SAMPLE {
                    sample.pop();
                }
            }
        }
    }
    let sample: Vec<Key<N>> = sample.into_iter().map(|(_, key)| key).collect();
    let mut found = 0u64;
    for (i, own) in sample.iter().enumerate() {
        let near = |other: &&Key<N>| {
            scope(own) == scope(other)
                && sketch_difference(&sketch(own), &sketch(other)) <= mismatches as u32
        };
        found += sample[i + 1..].iter().filter(near).count() as u64;
    }
    let pairs = |rows: f64| rows * (rows - 1.0) / 2.0;
    work.candidates = match sample.len() {
        0 | 1 => 0.0,
        rows => found as f64 * pairs(work.rows as f64) / pairs(rows as f64),
    };
    Ok(work)
}
