//! Cache of `neardup_remark`: values (fingerprint, scope, time and text features) of rows that were
//! read recently, each with the nearest original that was found for the row. An original is a row
//! without a mark. Of many rows with equal values, only the first is looked up in the index, which
//! avoids quadratic work.
use std::collections::VecDeque;

use neardup_sketch::candidates::similarity_at_least;

use super::subject::{Rule, Subject};
use neardup_pg::value::{OwnedValue, Value};

/// Maximum number of values in the cache. A new value replaces the value that was used least
/// recently.
const LONGEST: usize = 64;

/// Maximum number of features of a text in the cache. A text with more features is not stored. This
/// limits the memory of the cache to 8 MB.
const MAX_FEATURES: usize = 1 << 14;

/// Nearest original that was found for a row.
#[derive(Clone)]
pub struct Original {
    /// Distance of the original to that row in bits or mismatches.
    pub distance: u32,
    /// Key of the original.
    pub key: OwnedValue,
}

/// Recent values of rows, with their nearest originals, the most recent first.
#[derive(Default)]
pub struct Recent(VecDeque<(Subject, Original)>);

impl Recent {
    /// Returns the nearest original of a row, or `None` if no row with equal values is stored.
    pub fn get(&mut self, subject: &Subject, rule: &Rule) -> Option<Original> {
        let equal = |known: &Subject| {
            known.value.distance(&subject.value, rule.columns) == Some(0)
                && known.value.time == subject.value.time
                && known.features == subject.features
        };
        let at = self.0.iter().position(|(known, _)| equal(known))?;
        let found = self.0.remove(at)?;
        let original = found.1.clone();
        self.0.push_front(found);
        Some(original)
    }

    /// Stores the nearest original that was found for a row.
    pub fn put(&mut self, subject: Subject, original: Original) {
        if subject.features.len() > MAX_FEATURES {
            return;
        }
        self.0.truncate(LONGEST - 1);
        self.0.push_front((subject, original));
    }

    /// Stores a row that becomes an original, as its own nearest original. Also makes it the
    /// nearest original of those stored rows that are near-duplicates of it and whose present
    /// original is farther away. Originals must be added in the order in which `neardup_remark`
    /// reads the rows.
    pub fn add(&mut self, subject: Subject, key: Value, rule: &Rule) {
        for (known, original) in &mut self.0 {
            let distance = known.value.distance(&subject.value, rule.columns);
            let Some(distance) = distance.filter(|&distance| distance < original.distance) else {
                continue;
            };
            let is_similar = rule.texts.as_ref().is_none_or(|texts| {
                let [a, b] = [&known.features, &subject.features];
                similarity_at_least(a, b, texts.similarity).is_some()
            });
            if is_similar {
                *original = Original {
                    distance,
                    key: key.to_owned(),
                };
            }
        }
        let distance = 0;
        let key = key.to_owned();
        self.put(subject, Original { distance, key });
    }
}
