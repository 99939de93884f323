//! Estimate of the work of comparing the sketches of all rows with each other.

use std::collections::BinaryHeap;
use std::rc::Rc;

use super::{WORDS, mix, sketch, sketch_difference};
use crate::block_layout::BlockLayout;
use crate::key::{Key, Tid};
use crate::page::Result;
use crate::pairs::KeyOrderScan;
use crate::store::ReadPages;
use crate::tree::Tree;

/// Rows whose sketches are compared to estimate the number of candidates.
const SAMPLE_ROWS: usize = 1024;

/// Returns the scope in a key.
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
    /// Estimated number of pairs whose sketches do not differ in too many bits.
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

    /// Estimates the number of candidates among all pairs of some number of rows.
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

fn pairs_of(rows: f64) -> f64 {
    rows * (rows - 1.0) / 2.0
}

/// Counts the comparisons of a search beyond the guarantee of the bands, and estimates its
/// candidates from a sample of rows. Reads the first permutation once.
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
    // The current scope, and its rows so far.
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
