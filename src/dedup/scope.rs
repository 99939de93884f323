//! Whether rows are of one scope. An index keeps only a hash of a scope's columns, and different
//! values may have the same (of `bigint`, whose halves are folded together, 1 and 4294967296 do).
use pgrx::pg_sys;

use crate::am::keys::Layout;
use crate::am::strategies;
use crate::pg::security_context::AsOwner;

unsafe extern "C-unwind" {
    /// Not among pgrx's bindings (utils/datum.h).
    fn datumCopy(value: pg_sys::Datum, by_value: bool, length: core::ffi::c_int) -> pg_sys::Datum;
}

/// The columns of an index, of which values can be taken from rows.
pub struct IndexColumns {
    index: pg_sys::Relation,
    info: *mut pg_sys::IndexInfo,
    state: *mut pg_sys::EState,
}

impl IndexColumns {
    /// # Safety
    /// The index is open as long as the result lives.
    pub unsafe fn of(index: pg_sys::Relation) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            IndexColumns {
                index,
                info: pg_sys::BuildIndexInfo(index),
                state: pg_sys::CreateExecutorState(),
            }
        }
    }

    /// Takes the values of a row's columns, and which are NULL, as long as it looks at them.
    ///
    /// # Safety
    /// The slot holds a row of the index's table.
    pub unsafe fn with<T>(
        &self,
        slot: *mut pg_sys::TupleTableSlot,
        look: impl FnOnce(&[pg_sys::Datum], &[bool]) -> T,
    ) -> T {
        const COLUMNS: usize = pg_sys::INDEX_MAX_KEYS as usize;
        let mut values = [pg_sys::Datum::from(0); COLUMNS];
        let mut nulls = [true; COLUMNS];
        // SAFETY: the caller's promise; there is room for all columns that an index can have.
        unsafe {
            let context = (*self.state).es_per_tuple_exprcontext;
            let context = match context.is_null() {
                true => pg_sys::MakePerTupleExprContext(self.state),
                false => context,
            };
            (*context).ecxt_scantuple = slot;
            // The owner of an index is that of its table.
            let has_expressions = !(*self.info).ii_Expressions.is_null();
            let as_owner = has_expressions.then(|| AsOwner::of(self.index));
            pg_sys::FormIndexDatum(
                self.info,
                slot,
                self.state,
                values.as_mut_ptr(),
                nulls.as_mut_ptr(),
            );
            drop(as_owner);
            let result = look(&values, &nulls);
            pg_sys::MemoryContextReset((*context).ecxt_per_tuple_memory);
            result
        }
    }
}

impl Drop for IndexColumns {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: made by us.
            unsafe { pg_sys::FreeExecutorState(self.state) }
        }
    }
}

/// The columns of an index's scope, of which values can be taken from rows and compared.
pub struct ScopeColumns {
    index: pg_sys::Relation,
    columns: IndexColumns,
    /// The function behind `=`, and the collation, of each column.
    equal: Vec<(pg_sys::Oid, pg_sys::Oid)>,
}

/// The values of a scope, in the memory that was current when they were taken.
pub type Values = Vec<pg_sys::Datum>;

impl ScopeColumns {
    /// The scope of an index; `None` if it has none.
    ///
    /// # Safety
    /// The index is open as long as the result lives.
    pub unsafe fn of(index: pg_sys::Relation, layout: &Layout) -> Option<Self> {
        if layout.scope_columns == 0 {
            return None;
        }
        // SAFETY: the caller's promise; an index has as many operator families as columns.
        unsafe {
            let equal = (0..layout.scope_columns).map(|column| {
                let family = *(*index).rd_opfamily.add(column);
                let input = *(*index).rd_opcintype.add(column);
                let operator =
                    pg_sys::get_opfamily_member(family, input, input, strategies::EQUAL as i16);
                let collation = *(*index).rd_indcollation.add(column);
                (pg_sys::get_opcode(operator), collation)
            });
            Some(ScopeColumns {
                index,
                equal: equal.collect(),
                columns: IndexColumns::of(index),
            })
        }
    }

    /// The values of a row, copied; `None` if one is NULL, which equals nothing.
    ///
    /// # Safety
    /// The slot holds a row of the index's table.
    pub unsafe fn values(&self, slot: *mut pg_sys::TupleTableSlot) -> Option<Values> {
        // SAFETY: the caller's promise.
        unsafe {
            self.columns.with(slot, |values, nulls| {
                let taken: Option<Values> = (0..self.equal.len())
                    .map(|column| (!nulls[column]).then_some(values[column]))
                    .collect();
                taken.map(|values| self.copy(&values))
            })
        }
    }

    /// The same values in the current memory context.
    ///
    /// # Safety
    /// They were taken by [`ScopeColumns::values`], from memory that is still there.
    pub unsafe fn copy(&self, values: &Values) -> Values {
        let copy = |(column, &value): (usize, &pg_sys::Datum)| {
            // SAFETY: the caller's promise.
            unsafe {
                let attribute = crate::am::keys::attribute(self.index, column);
                let (by_value, length) = (attribute.attbyval, i32::from(attribute.attlen));
                pg_sys::submodules::ffi::pg_guard_ffi_boundary(|| {
                    datumCopy(value, by_value, length)
                })
            }
        };
        values.iter().enumerate().map(copy).collect()
    }

    /// Whether two scopes are the same.
    ///
    /// # Safety
    /// Both were taken by [`ScopeColumns::values`], from memory that is still there.
    pub unsafe fn equal(&self, a: &Values, b: &Values) -> bool {
        self.equal
            .iter()
            .zip(a)
            .zip(b)
            .all(|((&(function, collation), &a), &b)| {
                // SAFETY: the function is that of the `=` of the column's type.
                unsafe { pg_sys::OidFunctionCall2Coll(function, collation, a, b).value() != 0 }
            })
    }
}
