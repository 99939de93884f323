//! Comparison of rows by scope. An index stores only a hash of the scope columns, and different
//! values may have the same hash. For `bigint`, whose halves are folded, 1 and 4294967296 do.
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

    /// Returns whether parallel workers may read and compare the values.
    pub fn is_parallel_safe(relations: &LockedIndex, layout: &Layout) -> bool {
        let index = relations.index();
        layout.scope_columns == 0
            || index.has_parallel_safe_expressions()
                && (0..layout.scope_columns).all(|column| {
                    EqualColumn::new(index, column, strategies::EQUAL).is_parallel_safe()
                })
    }

    /// Returns the values of the row in a slot, or `None` if one is NULL, which equals nothing.
    pub fn values(&self, slot: &Slot) -> Option<Values> {
        self.columns.with(slot, |values| {
            let own = values[..self.equal.len()].iter();
            own.map(|value| value.map(Value::to_owned)).collect()
        })
    }

    /// Returns whether two scopes are the same.
    pub fn equal(&self, a: &Values, b: &Values) -> bool {
        (self.equal.iter().zip(a).zip(b)).all(|((column, a), b)| column.equal(a.get(), b.get()))
    }
}

/// Numbers of scopes that share a hash. Rows must be passed in hash order.
#[derive(Default)]
pub struct ScopeNumbers {
    hash: u64,
    known: Vec<Values>,
}

impl ScopeNumbers {
    /// Returns the number of a scope among the scopes with its hash, in order of appearance.
    /// Forgets scopes with other hashes.
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
