//! The conditions of a scan, from its scan keys.
use neardup_blocktree::empty_search::LoneRow;
use pgrx::pg_sys;

use super::keys::{self, Layout};
use super::{sets, strategies};
use neardup_pg::scan_key;
use neardup_pg::value::Value;

/// The rows that conditions admit by having a value or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Rows with and without one.
    Any,
    /// `IS NULL`.
    Null,
    /// `IS NOT NULL`.
    NotNull,
}

/// Keys, or orders, of a scan of an index.
#[derive(Clone, Copy)]
pub struct ScanKeys<'a> {
    layout: Layout,
    keys: scan_key::ScanKeys<'a>,
}

impl<'a> ScanKeys<'a> {
    /// The keys of a scan of an index with this layout.
    pub fn new(layout: Layout, keys: scan_key::ScanKeys<'a>) -> Self {
        ScanKeys { layout, keys }
    }

    /// Returns whether there is none.
    pub fn is_empty(self) -> bool {
        self.keys.is_empty()
    }

    /// All of them.
    pub fn iter(self) -> impl Iterator<Item = ScanKey<'a>> {
        let layout = self.layout;
        self.keys.iter().map(move |key| ScanKey { layout, key })
    }
}

/// A condition, or an order, of a scan.
#[derive(Clone, Copy)]
pub struct ScanKey<'a> {
    layout: Layout,
    key: scan_key::ScanKey<'a>,
}

impl<'a> ScanKey<'a> {
    /// Returns whether the value is compared with NULL, by an operator.
    pub fn is_with_null(self) -> bool {
        self.key.has_flag(pg_sys::SK_ISNULL)
    }

    /// The rows that the key admits if it is `IS NULL` or `IS NOT NULL`.
    fn presence(self) -> Option<Presence> {
        if self.key.has_flag(pg_sys::SK_SEARCHNULL) {
            Some(Presence::Null)
        } else if self.key.has_flag(pg_sys::SK_SEARCHNOTNULL) {
            Some(Presence::NotNull)
        } else {
            None
        }
    }

    /// The operator's strategy.
    pub fn strategy(self) -> u16 {
        self.key.strategy()
    }

    /// Returns whether the value is compared with a ball: by operators of strategy 1, and by all
    /// those of classes for balls.
    pub fn is_with_ball(self) -> bool {
        self.key.column() == self.layout.scope_columns
            && (self.layout.has_balls || self.strategy() == strategies::WITHIN)
    }

    /// Returns whether the condition is that an array contains an empty one.
    fn is_with_empty_array(self) -> bool {
        self.strategy() == strategies::CONTAINS
            && sets::required_elements(self.value()).is_some_and(|elements| elements.is_empty())
    }

    /// The value that it is compared with.
    pub fn value(self) -> Value<'a> {
        self.key.value()
    }
}

/// The conditions of a scan.
pub struct ScanQuals<'a> {
    /// On the value of the last column, by an operator.
    pub near: Vec<ScanKey<'a>>,
    /// Condition on the last column's value being NULL or not.
    pub presence: Presence,
    /// The scope, if all of its columns are given.
    pub scope: Option<u64>,
    /// For the constraint's search after a row was added: that row, if nothing was near it then.
    pub lone_row: Option<LoneRow>,
}

impl<'a> ScanQuals<'a> {
    /// The same conditions on rows that have a value.
    pub fn with_values(self) -> Self {
        ScanQuals {
            presence: Presence::NotNull,
            ..self
        }
    }

    /// The conditions that scan keys make; `None` if nothing fulfils them.
    pub fn of(keys: ScanKeys<'a>) -> Option<Self> {
        let mut near = Vec::new();
        let mut presence = Presence::Any;
        // For each column of the scope: not given, NULL, or the hash of a value.
        let mut scope: Vec<Option<Option<u64>>> = vec![None; keys.layout.scope_columns];
        for key in keys.iter() {
            if key.presence().is_none() && key.is_with_null() {
                return None;
            }
            match (scope.get_mut(key.key.column()), key.presence()) {
                (Some(column), Some(Presence::Null)) => *column = Some(None),
                // The recheck sees to it: rows of a scope without values stand among others.
                (Some(_), Some(_)) => (),
                // And to arrays that overlap with one: they have many hashes.
                (Some(_), None) if key.strategy() != strategies::EQUAL => (),
                // Two values that a column is to be equal to: at most one is its own, which the
                // recheck finds out.
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
        // No distance of NULL is within a radius.
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
