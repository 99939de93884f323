//! Conditions of a scan, read from its scan keys.
use neardup_blocktree::empty_search::LoneRow;
use pgrx::pg_sys;

use super::keys::{self, Layout};
use super::{sets, strategies};
use neardup_pg::scan_key;
use neardup_pg::value::Value;

/// Rows that conditions admit: with a value, without one, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Rows with and without a value.
    Any,
    /// `IS NULL`.
    Null,
    /// `IS NOT NULL`.
    NotNull,
}

/// Scan keys of an index scan: its conditions or its orders.
#[derive(Clone, Copy)]
pub struct ScanKeys<'a> {
    layout: Layout,
    keys: scan_key::ScanKeys<'a>,
}

impl<'a> ScanKeys<'a> {
    /// Wraps the keys of a scan of an index with this layout.
    pub fn new(layout: Layout, keys: scan_key::ScanKeys<'a>) -> Self {
        ScanKeys { layout, keys }
    }

    /// Returns whether there are no keys.
    pub fn is_empty(self) -> bool {
        self.keys.is_empty()
    }

    /// Iterates over the keys.
    pub fn iter(self) -> impl Iterator<Item = ScanKey<'a>> {
        let layout = self.layout;
        self.keys.iter().map(move |key| ScanKey { layout, key })
    }
}

/// Condition or order of a scan.
#[derive(Clone, Copy)]
pub struct ScanKey<'a> {
    layout: Layout,
    key: scan_key::ScanKey<'a>,
}

impl<'a> ScanKey<'a> {
    /// Returns whether an operator compares the value with NULL.
    pub fn is_with_null(self) -> bool {
        self.key.has_flag(pg_sys::SK_ISNULL)
    }

    /// Rows that the key admits if it is `IS NULL` or `IS NOT NULL`.
    fn presence(self) -> Option<Presence> {
        if self.key.has_flag(pg_sys::SK_SEARCHNULL) {
            Some(Presence::Null)
        } else if self.key.has_flag(pg_sys::SK_SEARCHNOTNULL) {
            Some(Presence::NotNull)
        } else {
            None
        }
    }

    /// Strategy of the operator.
    pub fn strategy(self) -> u16 {
        self.key.strategy()
    }

    /// Returns whether the value is compared with a ball: by operators of strategy 1, and by all
    /// operators of classes for balls.
    pub fn is_with_ball(self) -> bool {
        self.key.column() == self.layout.scope_columns
            && (self.layout.has_balls || self.strategy() == strategies::WITHIN)
    }

    /// Returns whether the condition is that an array contains an empty one.
    fn is_with_empty_array(self) -> bool {
        self.strategy() == strategies::CONTAINS
            && sets::required_elements(self.value()).is_some_and(|elements| elements.is_empty())
    }

    /// Value on the right of the operator.
    pub fn value(self) -> Value<'a> {
        self.key.value()
    }
}

/// Conditions of a scan.
pub struct ScanQuals<'a> {
    /// Conditions with an operator on the last column's value.
    pub near: Vec<ScanKey<'a>>,
    /// Condition on the last column's value being NULL or not.
    pub presence: Presence,
    /// Scope, if all scope columns are given.
    pub scope: Option<u64>,
    /// Row that was added just before the constraint's search, if nothing was near it then.
    pub lone_row: Option<LoneRow>,
}

impl<'a> ScanQuals<'a> {
    /// Restricts the conditions to rows that have a value.
    pub fn with_values(self) -> Self {
        ScanQuals {
            presence: Presence::NotNull,
            ..self
        }
    }

    /// Reads the conditions of scan keys; `None` if nothing fulfils them.
    pub fn from_keys(keys: ScanKeys<'a>) -> Option<Self> {
        let mut near = Vec::new();
        let mut presence = Presence::Any;
        // For each scope column: not given, NULL, or the hash of a value.
        let mut scope: Vec<Option<Option<u64>>> = vec![None; keys.layout.scope_columns];
        for key in keys.iter() {
            if key.presence().is_none() && key.is_with_null() {
                return None;
            }
            match (scope.get_mut(key.key.column()), key.presence()) {
                (Some(column), Some(Presence::Null)) => *column = Some(None),
                // IS NOT NULL does not select a scope; the recheck decides.
                (Some(_), Some(_)) => (),
                // Neither does array overlap: the arrays have many hashes.
                (Some(_), None) if key.strategy() != strategies::EQUAL => (),
                // A column may be compared with two values. It has one of them at most; the
                // recheck decides.
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
        // A NULL value is not within any radius.
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
