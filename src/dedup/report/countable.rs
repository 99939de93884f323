//! Decides up to which bound a report counts all pairs. Beyond this bound, the report estimates the
//! number of pairs from a sample of rows.
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

/// Maximum estimated time for counting pairs, in nanoseconds. Pairs are not counted if the estimate
/// is higher.
const MAX_COUNTING: f64 = 1e9;
/// Estimated nanoseconds to count one pair of fingerprints.
const PER_PAIR: f64 = 200.0;
/// Estimated nanoseconds to count one pair of signatures, which includes a comparison of the
/// signatures in the table.
const PER_SIGNATURE_PAIR: f64 = 5000.0;
/// Estimated nanoseconds to read one index entry: one row in one band (group of positions).
const PER_BAND_ENTRY: f64 = 200.0;

/// Returns the widest bound within which all pairs can be counted in about a second, or `None` if
/// there is none. For fingerprints, it is the largest such radius among the bars of the histogram.
/// For signatures, it is the bound of `subject` or `None`, because no other bound is tried. `bars`
/// has the bars of the histogram, with the estimated number of pairs at each distance.
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
