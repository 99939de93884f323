//! Comparison of rows by scope. An index keeps only a hash of a scope's columns, and different
//! values may have the same (of `bigint`, whose halves are folded together, 1 and 4294967296 do).
use crate::am::keys::Layout;
use crate::am::strategies;
use neardup_pg::equality::EqualColumn;
use neardup_pg::index_columns::IndexColumns;
use neardup_pg::locked_index::LockedIndex;
use neardup_pg::slot::Slot;
use neardup_pg::value::{OwnedValue, Value};

/// The columns of an index's scope, of which values can be taken from rows and compared.
pub struct ScopeColumns<'a> {
    columns: IndexColumns<'a>,
    equal: Vec<EqualColumn>,
}

/// The values of a scope.
pub type Values = Vec<OwnedValue>;

impl<'a> ScopeColumns<'a> {
    /// The scope of an index of this layout; `None` if it has none.
    pub fn of(relations: &'a LockedIndex, layout: &Layout) -> Option<Self> {
        (layout.scope_columns > 0).then(|| ScopeColumns {
            columns: IndexColumns::new(relations.table(), relations.index()),
            equal: (0..layout.scope_columns)
                .map(|column| EqualColumn::new(relations.index(), column, strategies::EQUAL))
                .collect(),
        })
    }

    /// Returns whether a parallel worker may take values from rows and compare them.
    pub fn is_parallel_safe(relations: &LockedIndex, layout: &Layout) -> bool {
        let index = relations.index();
        layout.scope_columns == 0
            || index.has_parallel_safe_expressions()
                && (0..layout.scope_columns).all(|column| {
                    EqualColumn::new(index, column, strategies::EQUAL).is_parallel_safe()
                })
    }

    /// The values of the row in a slot; `None` if one is NULL, which equals nothing.
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

/// Numbers of the scopes that share a hash, by which rows stand together.
#[derive(Default)]
pub struct ScopeNumbers {
    hash: u64,
    known: Vec<Values>,
}

impl ScopeNumbers {
    /// The number of a scope among those with its hash, in the order in which they came. Those with
    /// another hash are forgotten.
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
