//! The originals of the values that came last: of many equal rows only the first is looked up, so
//! that they take no quadratic work.
use std::collections::VecDeque;

use crate::dedup::trigger::columns::Columns;
use crate::dedup::trigger::compared::Compared;
use neardup_pg::value::{OwnedValue, Value};

/// Values that are remembered.
const LONGEST: usize = 64;

/// An original, as it was found for a value.
#[derive(Clone)]
pub struct Original {
    pub distance: u32,
    pub key: OwnedValue,
}

/// The originals that are the nearest to the values that came last, the last one first.
#[derive(Default)]
pub struct Recent(VecDeque<(Compared, Original)>);

impl Recent {
    /// The original that is the nearest to a value.
    pub fn get(&mut self, value: &Compared, columns: &Columns) -> Option<Original> {
        let equal = |known: &Compared| known.distance(value, columns) == Some(0);
        let at = self.0.iter().position(|(known, _)| equal(known))?;
        let found = self.0.remove(at)?;
        let original = found.1.clone();
        self.0.push_front(found);
        Some(original)
    }

    /// Remembers the original that was found for a value.
    pub fn put(&mut self, value: Compared, original: Original) {
        self.0.truncate(LONGEST - 1);
        self.0.push_front((value, original));
    }

    /// Takes in a new original, which comes after all others.
    pub fn add(&mut self, value: Compared, key: Value, columns: &Columns) {
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
