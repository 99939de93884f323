//! Cache of `neardup_remark`: nearest originals of the fingerprints read recently. Of many rows
//! with equal fingerprints, only the first is looked up in the index, which avoids quadratic work.
use std::collections::VecDeque;

use crate::dedup::trigger::columns::Columns;
use crate::dedup::trigger::compared::ComparedValue;
use neardup_pg::value::{OwnedValue, Value};

/// Maximum number of fingerprints in the cache.
const LONGEST: usize = 64;

/// Original that was found for a fingerprint.
#[derive(Clone)]
pub struct Original {
    /// Distance of the original to the fingerprint in bits or mismatches.
    pub distance: u32,
    /// Key of the original.
    pub key: OwnedValue,
}

/// Recent fingerprints in their scopes, with their nearest originals, the most recent first.
#[derive(Default)]
pub struct Recent(VecDeque<(ComparedValue, Original)>);

impl Recent {
    /// Returns the nearest original of a fingerprint, or `None` if no equal fingerprint of the same
    /// scope is stored.
    pub fn get(&mut self, value: &ComparedValue, columns: &Columns) -> Option<Original> {
        let equal = |known: &ComparedValue| known.distance(value, columns) == Some(0);
        let at = self.0.iter().position(|(known, _)| equal(known))?;
        let found = self.0.remove(at)?;
        let original = found.1.clone();
        self.0.push_front(found);
        Some(original)
    }

    /// Stores the nearest original that was found for a fingerprint.
    pub fn put(&mut self, value: ComparedValue, original: Original) {
        self.0.truncate(LONGEST - 1);
        self.0.push_front((value, original));
    }

    /// Stores a row that becomes an original, with the fingerprint `value`. Stored fingerprints
    /// that are nearer to this original than to their own original get this one. `key` must follow
    /// the keys of all earlier originals.
    pub fn add(&mut self, value: ComparedValue, key: Value, columns: &Columns) {
        for (known, original) in &mut self.0 {
            let distance = known.distance(&value, columns);
            if let Some(distance) = distance.filter(|&distance| distance < original.distance) {
                *original = Original {
                    distance,
                    key: key.to_owned(),
                };
            }
        }
        let distance = 0;
        let key = key.to_owned();
        self.put(value, Original { distance, key });
    }
}
