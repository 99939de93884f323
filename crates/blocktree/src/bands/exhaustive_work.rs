//! Work of an exhaustive search for pairs of near signatures, which compares the sketches of all
//! rows of a scope. Two signatures differ in at least as many positions as their sketches differ in
//! bits. A scope consists of the rows that have equal values in the index columns before the last.
//! The number of comparisons is exact. The number of candidates is estimated from a sample of rows.

use std::collections::BinaryHeap;
use std::rc::Rc;

use super::{WORDS, mix, sketch, sketch_difference};
use crate::block_layout::BlockLayout;
use crate::key::{Key, Tid};
use crate::page::Result;
use crate::pairs::KeyOrderScan;
use crate::store::ReadPages;
use crate::tree::Tree;

/// Maximum number of rows in the sample from which the number of candidates is estimated.
const SAMPLE_ROWS: usize = 1024;

/// Returns the scope's word of an index key, as a slice. The slice is empty if keys have no scope.
fn scope<const N: usize>(key: &Key<N>) -> &[u64] {
    &key[..N - WORDS]
}

/// Work of a search for pairs that compares all rows of each scope with each other.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ExhaustiveWork {
    /// Number of rows to compare: rows that the caller accepts.
    pub rows: u64,
    /// Number of comparisons of two sketches: all pairs of rows within a scope.
    pub comparisons: f64,
    /// Estimated number of pairs whose sketches differ in so few bits that the rows must be
    /// compared.
    pub candidates: f64,
}

/// Deterministic random sample of rows: the rows with the smallest hashes (bottom-k).
#[derive(Default)]
struct SketchSample<const N: usize> {
    rows: BinaryHeap<(u64, Key<N>)>,
}

impl<const N: usize> SketchSample<N> {
    fn offer(&mut self, row: Tid, key: Key<N>) {
        let hash = mix(row.packed());
        let is_full = self.rows.len() >= SAMPLE_ROWS;
        if !is_full || self.rows.peek().is_some_and(|top| hash < top.0) {
            self.rows.push((hash, key));
            if self.rows.len() > SAMPLE_ROWS {
                self.rows.pop();
            }
        }
    }

    /// Estimates how many of all pairs of `rows` rows are candidates: pairs of one scope whose
    /// sketches differ in at most `mismatches` bits.
    fn candidates(self, mismatches: usize, rows: f64) -> f64 {
        let sample: Vec<Key<N>> = self.rows.into_iter().map(|(_, key)| key).collect();
        if sample.len() < 2 {
            return 0.0;
        }
        let mut found = 0u64;
        for (i, own) in sample.iter().enumerate() {
            let near = |other: &&Key<N>| {
                scope(own) == scope(other)
                    && sketch_difference(&sketch(own), &sketch(other)) <= mismatches as u32
            };
            found += sample[i + 1..].iter().filter(near).count() as u64;
        }
        found as f64 * pairs_of(rows) / pairs_of(sample.len() as f64)
    }
}

/// Returns the number of pairs among `rows` rows.
fn pairs_of(rows: f64) -> f64 {
    rows * (rows - 1.0) / 2.0
}

/// Returns the work of a search for all pairs of signatures that differ in at most `mismatches`
/// positions. The search compares all rows of each scope with each other. It is needed if
/// `mismatches` is so large that two near rows may have no band in common. Counts only rows for
/// which `wanted` returns true. Reads the first permutation of the index once.
pub fn exhaustive_work<S: ReadPages, const N: usize>(
    tree: &Tree<'_, S, N>,
    layout: &Rc<BlockLayout<N>>,
    mismatches: usize,
    wanted: &mut impl FnMut(Tid) -> bool,
) -> Result<ExhaustiveWork> {
    let mut work = ExhaustiveWork::default();
    let mut scan = KeyOrderScan::new(layout.clone());
    let mut entries = Vec::new();
    let mut sample = SketchSample::default();
    // A key of the current scope, and the number of rows of that scope so far.
    let mut current: Option<(Key<N>, f64)> = None;
    let mut more = true;
    while more {
        entries.clear();
        more = scan.step(tree, &mut |key, row| entries.push((key, row)))?;
        for &(key, row) in entries.iter().filter(|(_, row)| wanted(*row)) {
            let rows_before = match &mut current {
                Some((known, rows)) if scope(known) == scope(&key) => {
                    *rows += 1.0;
                    *rows - 1.0
                }
                _ => {
                    current = Some((key, 1.0));
                    0.0
                }
            };
            work.rows += 1;
            work.comparisons += rows_before;
            sample.offer(row, key);
        }
    }
    work.candidates = sample.candidates(mismatches, work.rows as f64);
    Ok(work)
}
