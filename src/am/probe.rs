//! Searches of an index for the planner's estimates ([`crate::planner::index_probe`]).
use neardup_blocktree::metric::Metric;
use pgrx::pg_sys::{self, Oid};

use super::cost::search_cost;
use super::dirty_scan::ball_type;
use super::index::{Index, words_of};
use super::keys::with_words;
use super::metric::ValueMetric;
use super::minhash::with_signature;
use super::scan;
use super::strategies::WITHIN;
use crate::planner::index_probe;
use neardup_pg::rel::OpenRelation;
use neardup_pg::scan_key::OwnScanKeys;
use neardup_pg::value::Value;

/// Maximum cost of a search for the planner, in units of `cpu_operator_cost`. A search that would
/// cost more is not made, and the planner uses its statistics only. A search at the limit takes
/// some hundred microseconds if the index is in memory.
const MAX_COST: f64 = 5_000.0;

/// Installs `finds` as the search that the planner uses. Called once, when the library is loaded.
pub fn register() {
    index_probe::install(finds);
}

/// Returns whether an index has a row within a radius of a value. The radius is in bits, or a share
/// of a signature's hashes. `None` if the search would cost more than [`MAX_COST`], or if the index
/// cannot find all rows within the radius.
fn finds(index: Oid, center: Value, radius: f64) -> Option<bool> {
    if radius < 0.0 {
        return Some(false);
    }
    let opened = OpenRelation::index(index, pg_sys::NoLock);
    let index = opened.rel();
    let (metric, radius) = with_words!(words_of(index), N => {
        let index = Index::<N>::open(index);
        let radius = match &index.metric {
            Metric::Hamming { .. } => radius as u32,
            Metric::Jaccard(bands) => {
                let hashes = bands.hashes();
                // The planner's statistics may have only a part of a signature.
                if with_signature(center, |center| center.values.len()) != hashes {
                    return None;
                }
                let mismatches = (radius * hashes as f64 + 1e-6) as usize;
                (mismatches <= bands.guaranteed()).then_some(mismatches as u32)?
            }
            Metric::Overlap => return None,
        };
        (index.metric.clone(), radius)
    });
    if search_cost(index, radius) > MAX_COST {
        return None;
    }
    let ball = metric.ball(center, radius, ball_type(index));
    let mut keys = OwnScanKeys::new(index);
    keys.push(1, WITHIN, ball.get());
    Some(scan::finds_any(&keys))
}
