//! Rows that the server passes to an index.
use pgrx::pg_sys;

use super::rel::Rel;
use super::value::{Value, ValueType};

/// Values of the index columns for one row. The index may store the last value as another type.
#[derive(Clone, Copy)]
pub struct IndexRow<'a> {
    index: Rel<'a>,
    values: &'a [pg_sys::Datum],
    nulls: &'a [bool],
}

impl<'a> IndexRow<'a> {
    /// Wraps what the server passes.
    ///
    /// # Safety
    /// Both arrays have an element for each column and live for `'a`. The operator classes of all
    /// columns except the last store values of their input type.
    #[inline]
    pub unsafe fn new(index: Rel<'a>, values: *const pg_sys::Datum, nulls: *const bool) -> Self {
        let columns = index.column_count() as usize;
        // SAFETY: the caller's promise.
        let (values, nulls) = unsafe {
            (
                core::slice::from_raw_parts(values, columns),
                core::slice::from_raw_parts(nulls, columns),
            )
        };
        IndexRow {
            index,
            values,
            nulls,
        }
    }

    /// The index.
    #[inline]
    pub fn index(&self) -> Rel<'a> {
        self.index
    }

    /// The value in a column, counted from 0; `None` for NULL.
    #[inline]
    pub fn get(&self, column: usize) -> Option<Value<'a>> {
        let of = input_type(self.index, column);
        // SAFETY: the value has the column's type.
        (!self.nulls[column]).then(|| unsafe { Value::typed(self.values[column], of) })
    }
}

/// The type of the values that the server passes for a column of an index, counted from 0.
#[inline]
pub fn input_type(index: Rel, column: usize) -> ValueType {
    let stored = index.attribute(column as i16 + 1);
    if column + 1 == index.column_count() as usize {
        let input = index.key_class(column).input;
        if input != stored.atttypid {
            return ValueType::from_oid(input);
        }
    }
    ValueType::from_attribute(&stored)
}
