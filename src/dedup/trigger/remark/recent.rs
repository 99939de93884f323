//! Nearest originals of recent values. Only the first of many equal rows is looked up, which
//! avoids quadratic work.
use std::collections::VecDeque;

use crate::dedup::trigger::columns::Columns;
use crate::dedup::trigger::compared::ComparedValue;
use neardup_pg::value::{OwnedValue, Value};

/// Maximum number of stored values.
const LONGEST: usize = 64;

/// Original that was found for a value.
#[derive(Clone)]
pub struct Original {
    pub distance: u32,
    pub key: OwnedValue,
}

/// Recent values and their nearest originals, the most recent first.
#[derive(Default)]
pub struct Recent(VecDeque<(ComparedValue, Original)>);

impl Recent {
    /// Returns the nearest original of a value, if an equal value is stored.
    pub fn get(&mut self, value: &ComparedValue, columns: &Columns) -> Option<Original> {
        let equal = |known: &ComparedValue| known.distance(value, columns) == Some(0);
        let at = self.0.iter().position(|(known, _)| equal(known))?;
        let found = self.0.remove(at)?;
        let original = found.1.clone();
        self.0.push_front(found);
        Some(original)
    }

    /// Stores the original that was found for a value.
    pub fn put(&mut self, value: ComparedValue, original: Original) {
        self.0.truncate(LONGEST - 1);
        self.0.push_front((value, original));
    }

    /// Stores a new original, whose key follows all earlier keys.
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
