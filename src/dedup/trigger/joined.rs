//! Cache of originals for the comparison of copies. A copy is a row that is marked with the key of
//! an original. When an original is deleted or changed, its copies are compared again, one by one.
//! Each copy joins another original or becomes an original itself. The cache has the originals that
//! copies have joined or become.
//!
//! The copies of one original are usually near each other. An index that is not partial contains
//! all of them, and each search reads and skips the marked ones. One search per copy would
//! therefore take time quadratic in the number of copies. So the trigger first compares a copy with
//! the originals of the copies before it, and searches the index only if no original is near.
use std::cell::RefCell;
use std::collections::VecDeque;

use pgrx::pg_sys;

use super::columns::Columns;
use super::compared::ComparedValue;
use super::lookup::{self, NearRow, Query};
use super::marks::Marks;
use neardup_pg::rel::Rel;
use neardup_pg::server;
use neardup_pg::value::{OwnedValue, Value};

/// Maximum number of stored originals. Beyond it, a new original replaces the oldest.
const MAX_ORIGINALS: usize = 1000;

/// Maximum number of stored originals whose texts are compared with the text of one row and found
/// dissimilar. After that, the trigger searches the index instead. That search compares the same
/// texts again, so this number limits the repeated work.
const MAX_DISSIMILAR: usize = 16;

/// Trigger, index and transaction that the stored originals belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CacheKey {
    trigger: pg_sys::Oid,
    index: pg_sys::Oid,
    transaction: pg_sys::TransactionId,
}

impl CacheKey {
    /// Returns the cache key of a trigger with these columns in the current transaction.
    pub fn new(trigger: pg_sys::Oid, columns: &Columns) -> Self {
        CacheKey {
            trigger,
            index: columns.index,
            transaction: server::GetTopTransactionIdIfAny(),
        }
    }
}

/// Key and compared values of an original at the time when it was stored. The row may have changed
/// since, so [`find`] reads it again.
struct Original {
    key: OwnedValue,
    compared: ComparedValue,
}

/// Stored originals, the oldest first, and the trigger, index and transaction that they belong to.
type Kept = (CacheKey, VecDeque<Original>);

thread_local! {
    static KEPT: RefCell<Option<Kept>> = const { RefCell::new(None) };
}

/// Stores an original that a copy joined or became when it was compared again.
pub fn keep(cache_key: CacheKey, key: Value, compared: ComparedValue) {
    let original = Original {
        key: key.to_owned(),
        compared,
    };
    KEPT.with_borrow_mut(|kept| match kept {
        Some((known, originals)) if *known == cache_key => {
            if originals.len() == MAX_ORIGINALS {
                originals.pop_front();
            }
            originals.push_back(original);
        }
        _ => *kept = Some((cache_key, VecDeque::from([original]))),
    });
}

/// Returns the nearest stored original that is a near-duplicate of the row in `query` and is still
/// an original. Returns `None` if there is none, or after [`MAX_DISSIMILAR`] dissimilar texts.
/// Removes a stored original if its stored values are near the row, but its present version is not
/// near or is not an original.
pub fn find(
    cache_key: CacheKey,
    table: Rel,
    marks: &Marks,
    columns: &Columns,
    query: &Query,
) -> Option<NearRow> {
    // Positions of near originals whose texts are not similar.
    let mut dissimilar = Vec::new();
    while dissimilar.len() < MAX_DISSIMILAR {
        let (at, key) = nearest(cache_key, columns, query, &dissimilar)?;
        let version = marks.row_with(table, key.get());
        let version = version.filter(|version| !version.is_undecided);
        let found = version.as_ref().and_then(|version| {
            let distance = lookup::distance(&version.slot, columns, query)?;
            let found = NearRow::new(table, columns, &version.slot, distance);
            // If the transaction's snapshot does not see the original, an index search decides.
            (!found.unseen).then_some((found, &version.slot))
        });
        match found {
            Some((found, slot)) => match query.confirm(slot) {
                Some(similarity) => {
                    return Some(NearRow {
                        similarity,
                        ..found
                    });
                }
                None => dissimilar.push(at),
            },
            None => {
                forget(cache_key, at, marks, &key);
                let later = dissimilar.iter_mut().filter(|position| **position > at);
                later.for_each(|position| *position -= 1);
            }
        }
    }
    None
}

/// Returns the position and the key of the nearest stored original that is near the row in `query`,
/// or `None` if there is none. Skips the positions in `dissimilar`.
fn nearest(
    cache_key: CacheKey,
    columns: &Columns,
    query: &Query,
    dissimilar: &[usize],
) -> Option<(usize, OwnedValue)> {
    KEPT.with_borrow(|kept| {
        let (_, originals) = kept.as_ref().filter(|(known, _)| *known == cache_key)?;
        let others = (originals.iter().enumerate()).filter(|(at, _)| !dissimilar.contains(at));
        let near = others.filter_map(|(at, original)| {
            let distance = original.compared.distance(query.compared, columns)?;
            (distance <= columns.limit).then_some((distance, at, original))
        });
        let (_, at, original) = near.min_by_key(|(distance, at, _)| (*distance, *at))?;
        Some((at, original.key.get().to_owned()))
    })
}

/// Removes the stored original at a position, because it is no longer near or no longer an
/// original. Does nothing if another key is at that position.
fn forget(cache_key: CacheKey, at: usize, marks: &Marks, key: &OwnedValue) {
    KEPT.with_borrow_mut(|kept| {
        if let Some((known, originals)) = kept
            && *known == cache_key
            && (originals.get(at))
                .is_some_and(|it| marks.equal(Some(it.key.get()), Some(key.get())))
        {
            originals.remove(at);
        }
    });
}
