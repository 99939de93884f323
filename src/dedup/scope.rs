//! Comparison of rows by scope: only rows with equal values in the index's scope columns are
//! compared. An index stores only a hash of these values, and different values may have the same
//! hash, so the values are read from the table. (The hash of a `bigint` folds its halves, so 1 and
//! 4294967296 have the same hash.)
use crate::am::keys::Layout;
use crate::am::strategies;
use neardup_pg::equality::EqualColumn;
use neardup_pg::index_columns::IndexColumns;
use neardup_pg::locked_index::LockedIndex;
use neardup_pg::slot::Slot;
use neardup_pg::value::{OwnedValue, Value};

/// Scope columns of an index. Reads their values from rows and compares them.
pub struct ScopeColumns<'a> {
    columns: IndexColumns<'a>,
    equal: Vec<EqualColumn>,
}

/// Values of the scope columns of one row.
pub type Values = Vec<OwnedValue>;

impl<'a> ScopeColumns<'a> {
    /// Returns the scope columns of an index with this layout, or `None` if it has no scope.
    pub fn from_index(relations: &'a LockedIndex, layout: &Layout) -> Option<Self> {
        (layout.scope_columns > 0).then(|| ScopeColumns {
            columns: IndexColumns::new(relations.table(), relations.index()),
            equal: (0..layout.scope_columns)
                .map(|column| EqualColumn::new(relations.index(), column, strategies::EQUAL))
                .collect(),
        })
    }

    /// Returns whether parallel workers may read and compare the values of the scope columns.
    pub fn is_parallel_safe(relations: &LockedIndex, layout: &Layout) -> bool {
        let index = relations.index();
        layout.scope_columns == 0
            || index.has_parallel_safe_expressions()
                && (0..layout.scope_columns).all(|column| {
                    EqualColumn::new(index, column, strategies::EQUAL).is_parallel_safe()
                })
    }

    /// Returns the values of the scope columns of the row in a slot. Returns `None` if one is NULL:
    /// NULL equals nothing, so the row is in no scope.
    pub fn values(&self, slot: &Slot) -> Option<Values> {
        self.columns.with(slot, |values| {
            let own = values[..self.equal.len()].iter();
            own.map(|value| value.map(Value::to_owned)).collect()
        })
    }

    /// Returns whether two rows with these values are in the same scope.
    pub fn equal(&self, a: &Values, b: &Values) -> bool {
        (self.equal.iter().zip(a).zip(b)).all(|((column, a), b)| column.equal(a.get(), b.get()))
    }
}

/// Numbers of scopes: scopes with the same hash get different numbers, beginning with 0. Scopes
/// must be passed in the order of their hashes, because the numbers are kept for one hash at a
/// time.
#[derive(Default)]
pub struct ScopeNumbers {
    /// Hash of the scopes in `known`.
    hash: u64,
    /// Values of the distinct scopes with this hash. The position of a scope is its number.
    known: Vec<Values>,
}

impl ScopeNumbers {
    /// Returns the number of a scope among the scopes with the same hash. A new scope gets the next
    /// number. `hash` is the hash of the scope, and `values` are the values of its columns. Forgets
    /// all scopes that have another hash.
    pub fn number(&mut self, scope: &ScopeColumns, hash: u64, values: Values) -> u32 {
        if self.hash != hash {
            self.hash = hash;
            self.known.clear();
        }
        let known = self
            .known
            .iter()
            .position(|other| scope.equal(other, &values));
        known.unwrap_or_else(|| {
            self.known.push(values);
            self.known.len() - 1
        }) as u32
    }
}
