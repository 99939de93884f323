//! Widest bound up to which a report counts all pairs. Beyond it, the report estimates their
//! number.
use neardup_blocktree::pairs::PairPlan;
use neardup_report::data::Bar;
use pgrx::pg_sys;

use super::levels::shown_radius;
use super::subject::Subject;
use crate::am::index::{Index, words_of};
use crate::am::keys::with_words;
use crate::dedup::bound::Bound;
use crate::types::signature::similarity;
use neardup_pg::locked_index::LockedIndex;

/// Maximum estimated time for counting pairs, in nanoseconds. If counting takes longer, the report
/// estimates the number of pairs.
const MAX_COUNTING: f64 = 1e9;
/// Estimated nanoseconds to read one pair of fingerprints.
const PER_PAIR: f64 = 200.0;
/// Estimated nanoseconds to read one pair of signatures.
const PER_SIGNATURE_PAIR: f64 = 5000.0;
/// Estimated nanoseconds to read one row of one band.
const PER_BAND_ENTRY: f64 = 200.0;

/// Returns the widest bound of the histogram up to which all pairs can be counted in about a
/// second. Returns `None` if there is no such bound. `bars` has the estimated number of pairs at
/// each distance.
pub fn countable(index: pg_sys::Oid, subject: &Subject, bars: &[Bar]) -> Option<Bound> {
    let relations = LockedIndex::reopen(index);
    with_words!(words_of(relations.index()), N => {
        let index = Index::<N>::open(relations.index());
        match subject.bound {
            Bound::Radius(_) => (0..bars.len() as u32).rev().map(Bound::Radius).find(|&bound| {
                let radius = shown_radius(bound) as u32;
                let plan = PairPlan::new(&index.block_layout, radius, index.rows());
                plan.cost + PER_PAIR * pairs_within(bars, bound) < MAX_COUNTING
            }),
            Bound::Similarity(_) => [subject.bound].into_iter().find(|&bound| {
                let Some(bands) = index.metric.bands() else {
                    return false;
                };
                // A search by bands finds all pairs only up to this radius. A search with a larger
                // radius compares every two rows.
                let guaranteed = 1.0 - similarity(bands.guaranteed(), bands.hashes());
                let entries = index.rows() * index.block_layout.permutations().len() as f64;
                shown_radius(bound) <= guaranteed + 1e-9
                    && PER_BAND_ENTRY * entries + PER_SIGNATURE_PAIR * pairs_within(bars, bound)
                        < MAX_COUNTING
            }),
        }
    })
}

/// Returns the estimated number of pairs within a bound, with the margin of error added.
fn pairs_within(bars: &[Bar], bound: Bound) -> f64 {
    (bars.iter())
        .filter(|bar| bar.distance <= shown_radius(bound) + 1e-9)
        .map(|bar| (bar.pairs + bar.margin) as f64)
        .sum()
}
