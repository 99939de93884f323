//! Estimate of the work of comparing the sketches of each two rows.

use std::collections::BinaryHeap;

use super::pairs::{read_leaf, sketch, sketch_difference};
use super::{WORDS, mix};
use crate::key::{Key, Tid};
use crate::level_cursor::LevelCursor;
use crate::page::Result;
use crate::store::PageStore;
use crate::tree::Tree;

/// Rows whose sketches are compared to estimate how many pairs are candidates.
const SAMPLE: usize = 1024;

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
