//! Conditions and ORDER BY operators of a scan of a neardup index, read from its scan keys.
//! Searches compare the values of one column of the index, the searched column. Rows with equal
//! values in the columns before it (the scope columns) form a scope. Ranges of an exclusion
//! constraint may follow it.
use neardup_blocktree::empty_search::LoneRow;
use pgrx::pg_sys;

use super::keys::{self, Layout};
use super::{sets, strategies};
use neardup_pg::scan_key;
use neardup_pg::value::Value;

/// Rows that the conditions IS NULL and IS NOT NULL on the searched column admit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Rows with and without a value in the searched column.
    Any,
    /// Rows without a value (`IS NULL`).
    Null,
    /// Rows with a value (`IS NOT NULL`).
    NotNull,
}

/// List of the conditions of an index scan, or list of its ORDER BY operators.
#[derive(Clone, Copy)]
pub struct ScanKeys<'a> {
    layout: Layout,
    keys: scan_key::ScanKeys<'a>,
}

impl<'a> ScanKeys<'a> {
    /// Makes the list from the server's scan keys `keys`. `layout` is the layout of the keys of the
    /// index that is scanned.
    pub fn new(layout: Layout, keys: scan_key::ScanKeys<'a>) -> Self {
        ScanKeys { layout, keys }
    }

    /// Returns whether the list has no condition and no ORDER BY operator.
    pub fn is_empty(self) -> bool {
        self.keys.is_empty()
    }

    /// Iterates over the conditions or ORDER BY operators in the list.
    pub fn iter(self) -> impl Iterator<Item = ScanKey<'a>> {
        let layout = self.layout;
        self.keys.iter().map(move |key| ScanKey { layout, key })
    }
}

/// One condition or ORDER BY operator of an index scan.
#[derive(Clone, Copy)]
pub struct ScanKey<'a> {
    layout: Layout,
    key: scan_key::ScanKey<'a>,
}

impl<'a> ScanKey<'a> {
    /// Returns whether the operator compares the column with NULL.
    pub fn is_with_null(self) -> bool {
        self.key.has_flag(pg_sys::SK_ISNULL)
    }

    /// Returns the rows that a condition `IS NULL` or `IS NOT NULL` admits; `None` for other
    /// conditions.
    fn presence(self) -> Option<Presence> {
        if self.key.has_flag(pg_sys::SK_SEARCHNULL) {
            Some(Presence::Null)
        } else if self.key.has_flag(pg_sys::SK_SEARCHNOTNULL) {
            Some(Presence::NotNull)
        } else {
            None
        }
    }

    /// Strategy number of the operator.
    pub fn strategy(self) -> u16 {
        self.key.strategy()
    }

    /// Returns whether the operator compares the searched column with a ball. The operator `<@`
    /// does, and all operators of operator classes for balls.
    pub fn is_with_ball(self) -> bool {
        self.key.column() == self.layout.scope_columns
            && (self.layout.has_balls || self.strategy() == strategies::WITHIN)
    }

    /// Returns whether the condition is `array @> '{}'`.
    fn is_with_empty_array(self) -> bool {
        self.strategy() == strategies::CONTAINS
            && sets::required_elements(self.value()).is_some_and(|elements| elements.is_empty())
    }

    /// Value on the right of the operator.
    pub fn value(self) -> Value<'a> {
        self.key.value()
    }
}

/// Conditions of an index scan, by column.
pub struct ScanQuals<'a> {
    /// Conditions with an operator on the searched column.
    pub near: Vec<ScanKey<'a>>,
    /// Whether the searched column must be NULL, must not be NULL, or may be either.
    pub presence: Presence,
    /// Hash of the scope; `None` if the conditions do not give a value for each scope column.
    pub scope: Option<u64>,
    /// Row that this transaction has just added, if no other row was near it at that moment. A
    /// search that checks an exclusion constraint for this row need not read the index. `None` if
    /// another row may have been near, and in all other searches.
    pub lone_row: Option<LoneRow>,
}

impl<'a> ScanQuals<'a> {
    /// Returns the conditions, restricted to rows that have a value in the searched column.
    pub fn with_values(self) -> Self {
        ScanQuals {
            presence: Presence::NotNull,
            ..self
        }
    }

    /// Reads the conditions of scan keys; `None` if no row can fulfil them.
    pub fn from_keys(keys: ScanKeys<'a>) -> Option<Self> {
        let mut near = Vec::new();
        let mut presence = Presence::Any;
        // For each scope column: `None` if it is not given, `Some(None)` for NULL, or the hash of a
        // value.
        let mut scope: Vec<Option<Option<u64>>> = vec![None; keys.layout.scope_columns];
        for key in keys.iter() {
            if key.presence().is_none() && key.is_with_null() {
                return None;
            }
            // The index does not store ranges. The server's recheck compares them.
            if key.key.column() > keys.layout.scope_columns {
                continue;
            }
            match (scope.get_mut(key.key.column()), key.presence()) {
                (Some(column), Some(Presence::Null)) => *column = Some(None),
                // IS NOT NULL does not select one scope. The server's recheck decides about the
                // rows.
                (Some(_), Some(_)) => (),
                // Overlap does not select one scope either: the matching arrays or ranges have
                // many hashes.
                (Some(_), None) if key.strategy() != strategies::EQUAL => (),
                // A scope column may be compared with two values. A row can have only one of the
                // two values, so the search uses only one hash. The server's recheck compares each
                // row with both values.
                (Some(column), None) => {
                    *column = Some(Some(keys::scope_hash(
                        keys.keys.index(),
                        key.key.column(),
                        key.value(),
                    )));
                }
                (None, Some(asked)) if presence != Presence::Any && presence != asked => {
                    return None;
                }
                (None, Some(asked)) => presence = asked,
                // Every array contains an empty one.
                (None, None) if key.is_with_empty_array() => match presence {
                    Presence::Null => return None,
                    _ => presence = Presence::NotNull,
                },
                (None, None) => near.push(key),
            }
        }
        // NULL fulfils no condition with an operator.
        if presence == Presence::Null && !near.is_empty() {
            return None;
        }
        let scope: Option<Vec<Option<u64>>> = scope.into_iter().collect();
        let scope = scope.filter(|columns| !columns.is_empty());
        Some(ScanQuals {
            near,
            presence,
            scope: scope.map(|hashes| keys::scope(hashes.into_iter())),
            lone_row: None,
        })
    }
}
