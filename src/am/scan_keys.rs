//! The conditions of a scan, from its scan keys.
use neardup_blocktree::empty_search::LoneRow;
use pgrx::pg_sys;

use super::keys::{self, Layout};
use super::strategies;
use crate::pg::catalog::is_pseudo_type;
use crate::pg::rel::Rel;
use crate::pg::value::{Value, ValueType};

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
    index: Rel<'a>,
    layout: Layout,
    keys: &'a [pg_sys::ScanKeyData],
}

impl<'a> ScanKeys<'a> {
    /// Wraps what the server passes.
    ///
    /// # Safety
    /// They are for operators of the operator classes of this index, whose layout it is, and live
    /// for `'a`.
    pub unsafe fn new(index: Rel<'a>, layout: Layout, keys: &'a [pg_sys::ScanKeyData]) -> Self {
        ScanKeys {
            index,
            layout,
            keys,
        }
    }

    /// Returns whether there is none.
    pub fn is_empty(self) -> bool {
        self.keys.is_empty()
    }

    /// All of them.
    pub fn iter(self) -> impl Iterator<Item = ScanKey<'a>> {
        let (index, layout) = (self.index, self.layout);
        let keys = self.keys.iter();
        keys.map(move |key| ScanKey { index, layout, key })
    }
}

/// A condition, or an order, of a scan.
#[derive(Clone, Copy)]
pub struct ScanKey<'a> {
    index: Rel<'a>,
    layout: Layout,
    key: &'a pg_sys::ScanKeyData,
}

impl<'a> ScanKey<'a> {
    /// The column, counted from 0.
    fn column(self) -> usize {
        self.key.sk_attno as usize - 1
    }

    fn has_flag(self, flag: u32) -> bool {
        self.key.sk_flags as u32 & flag != 0
    }

    /// Returns whether the value is compared with NULL, by an operator.
    pub fn is_with_null(self) -> bool {
        self.has_flag(pg_sys::SK_ISNULL)
    }

    /// The rows that the key admits if it is `IS NULL` or `IS NOT NULL`.
    fn presence(self) -> Option<Presence> {
        if self.has_flag(pg_sys::SK_SEARCHNULL) {
            Some(Presence::Null)
        } else if self.has_flag(pg_sys::SK_SEARCHNOTNULL) {
            Some(Presence::NotNull)
        } else {
            None
        }
    }

    /// The operator's strategy.
    pub fn strategy(self) -> u16 {
        self.key.sk_strategy
    }

    /// Returns whether the value is compared with a ball: by operators of strategy 1, and by all
    /// those of classes for balls.
    pub fn is_with_ball(self) -> bool {
        self.column() == self.layout.scope_columns
            && (self.layout.values.are_balls() || self.key.sk_strategy == strategies::WITHIN)
    }

    /// The value that it is compared with.
    pub fn value(self) -> Value<'a> {
        // SAFETY: the argument is of the type on the right side of the key's operator.
        unsafe { Value::typed(self.key.sk_argument, self.value_type()) }
    }

    fn value_type(self) -> ValueType {
        let given = self.key.sk_subtype;
        if self.is_with_ball() {
            return self.layout.values.ball_type(given);
        }
        let own = self.index.attribute(self.key.sk_attno);
        // An operator for any array, or any enumeration, tells nothing of the type.
        let is_own = given == own.atttypid || given == pg_sys::InvalidOid || is_pseudo_type(given);
        match is_own {
            true => ValueType::of_attribute(&own),
            false => ValueType::of(given),
        }
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
            match (scope.get_mut(key.column()), key.presence()) {
                (Some(column), Some(Presence::Null)) => *column = Some(None),
                // The recheck sees to it: rows of a scope without values stand among others.
                (Some(_), Some(_)) => (),
                // And to arrays that overlap with one: they have many hashes.
                (Some(_), None) if key.strategy() != strategies::EQUAL => (),
                // Two values that a column is to be equal to: at most one is its own, which the
                // recheck finds out.
                (Some(column), None) => {
                    *column = Some(Some(keys::scope_hash(
                        keys.index,
                        key.column(),
                        key.value(),
                    )));
                }
                (None, Some(asked)) if presence != Presence::Any && presence != asked => {
                    return None;
                }
                (None, Some(asked)) => presence = asked,
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
