//! Operations of each metric on SQL values: keys of rows, distances and balls.
//!
//! `neardup_blocktree::index_metric` has the permutations of each metric. Apart from these two
//! files, only the searches and their costs depend on the metric.
use neardup_blocktree::index_metric::IndexMetric;
use neardup_blocktree::key::Key;
use neardup_blocktree::metric::Metric;
use neardup_blocktree::sets;
use neardup_sketch::memory::GrowVec;
use pgrx::pg_sys::Oid;

use super::keys::Layout;
use super::minhash::{expect_length, scheme_hash, with_signature};
use super::sets::elements;
use crate::types::signature::{self, SignatureBall};
use neardup_pg::index_row::IndexRow;
use neardup_pg::registry;
use neardup_pg::value::{OwnedValue, Value};

/// Number of 64-bit words in the largest ball of fingerprints: four for the centre, one for the
/// radius.
const MAX_BALL_WORDS: usize = 5;

/// Operations of a metric on values of an index's searched column. Only `keys` can be called for
/// arrays. The other operations need distances, which arrays do not have.
pub trait ValueMetric {
    /// Appends the keys of a row to `keys`. A fingerprint has one key, and a signature has one for
    /// each band (group of its hashes). An array has one for the sum of the hashes of its distinct
    /// elements, and then one for each distinct element. Returns whether the row has a value. If
    /// the value is NULL, appends one key.
    fn keys<const N: usize>(&self, layout: &Layout, row: &IndexRow, keys: &mut Vec<Key<N>>)
    -> bool;

    /// Returns the unit of distances, for messages such as "3 bits".
    fn unit(&self) -> String;

    /// Converts a distance (in bits or mismatches) to the value that SQL functions return. For
    /// fingerprints it is the number of bits as an `int4`, and for signatures the share of
    /// different hashes as a `float8`.
    fn shown(&self, distance: u32) -> Value<'static>;

    /// Returns the distance of two values, in bits or mismatches. `None` for signatures of
    /// different schemes, seeds or lengths.
    fn distance(&self, a: Value, b: Value) -> Option<u32>;

    /// Converts a value to its form in the registry of rows in flight (rows that a trigger has
    /// published before they are in the index).
    fn in_flight(&self, value: Value) -> registry::Value;

    /// Returns the number of the group to which a value belongs. A group has fingerprints of one
    /// width, or signatures of one scheme, seed and length. Values of different groups cannot be
    /// compared, so they are never near each other.
    fn group(&self, value: Value) -> u64;

    /// Makes the ball of all values within `radius` (in bits or mismatches) of `center`. `oid` is
    /// the ball type on the right of the operator `<@`.
    fn ball(&self, center: Value, radius: u32, oid: Oid) -> OwnedValue;
}

impl ValueMetric for IndexMetric {
    #[inline]
    fn keys<const N: usize>(
        &self,
        layout: &Layout,
        row: &IndexRow,
        keys: &mut Vec<Key<N>>,
    ) -> bool {
        let scope = layout.row_scope(row.index(), |column| row.get(column));
        let mut key = layout.key_in_scope(scope);
        let Some(value) = row.get(layout.scope_columns) else {
            keys.push(key);
            return false;
        };
        match self {
            Metric::Hamming { .. } => {
                layout.put_fingerprint(&mut key, value);
                keys.push(key);
            }
            Metric::Jaccard(bands) => with_signature(value, |signature| {
                expect_length(row.index(), bands, signature);
                let (values, kind) = (signature.values, scheme_hash(signature));
                let sketch = bands.sketch(values);
                let key = |band| bands.key(band, values, kind, scope, &sketch);
                keys.extend((0..bands.count()).map(key));
            }),
            Metric::Overlap => {
                let elements = elements(value);
                let sum = sets::sum(elements.iter().copied());
                let numbers = [sum].into_iter().chain(elements);
                keys.grow_all(numbers.map(|number| sets::key(number, scope)));
            }
        }
        true
    }
    fn unit(&self) -> String {
        match self {
            Metric::Hamming { .. } => "bits".to_owned(),
            Metric::Jaccard(bands) => format!("of {} hashes", bands.hashes()),
            Metric::Overlap => no_distances(),
        }
    }

    fn shown(&self, distance: u32) -> Value<'static> {
        match self {
            Metric::Hamming { .. } => Value::int4(distance as i32),
            Metric::Jaccard(bands) => {
                Value::float8(signature::distance(distance as usize, bands.hashes()))
            }
            Metric::Overlap => no_distances(),
        }
    }

    fn distance(&self, a: Value, b: Value) -> Option<u32> {
        match self {
            Metric::Hamming { .. } => {
                assert_eq!(a.length(), b.length());
                let (a, b) = (words(a), words(b));
                Some(a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum())
            }
            Metric::Jaccard(_) => with_signature(a, |a| {
                with_signature(b, |b| a.mismatches(b).map(|it| it as u32))
            }),
            Metric::Overlap => no_distances(),
        }
    }

    fn in_flight(&self, value: Value) -> registry::Value {
        match self {
            Metric::Hamming { .. } => registry::Value::from_words(&words(value)),
            Metric::Jaccard(_) => with_signature(value, |signature| {
                registry::Value::from_hashes(signature.values)
            }),
            Metric::Overlap => no_distances(),
        }
    }

    fn group(&self, value: Value) -> u64 {
        match self {
            Metric::Hamming { .. } => value.length() as u64 / 8,
            Metric::Jaccard(_) => with_signature(value, |signature| {
                scheme_hash(signature).wrapping_add(signature.values.len() as u64)
            }),
            Metric::Overlap => no_distances(),
        }
    }

    fn ball(&self, center: Value, radius: u32, oid: Oid) -> OwnedValue {
        match self {
            Metric::Hamming { .. } => {
                let words = center.length() as usize / 8;
                let mut ball = [0; MAX_BALL_WORDS];
                center.copy_words(&mut ball[..words]);
                // The radius is in the first half of the last word. The second half is zero.
                let [a, b, c, d] = radius.min(center.length() as u32 * 8).to_ne_bytes();
                ball[words] = u64::from_ne_bytes([a, b, c, d, 0, 0, 0, 0]);
                OwnedValue::from_words(&ball[..=words], oid)
            }
            Metric::Jaccard(_) => with_signature(center, |&center| {
                let ball = SignatureBall {
                    center,
                    mismatches: radius as i32,
                    approximate: false,
                };
                OwnedValue::from_body(&ball.to_bytes(), oid)
            }),
            Metric::Overlap => no_distances(),
        }
    }
}

fn no_distances() -> ! {
    unreachable!("arrays have no distances")
}

/// Returns the 64-bit words of a fingerprint, most significant first, padded with zeros.
fn words(fingerprint: Value) -> [u64; 4] {
    let mut words = [0; 4];
    fingerprint.copy_words(&mut words[..fingerprint.length() as usize / 8]);
    words
}
