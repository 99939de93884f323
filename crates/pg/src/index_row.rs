//! Rows as the server passes them to an index.
use pgrx::pg_sys;

use super::rel::Rel;
use super::value::{Value, ValueType};

/// Values of an index's columns for one row. The index may store the last one as another type.
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
    /// Values and flags are one for each column, and live for `'a`. The operator classes of all
    /// columns but the last store their values as they are.
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
        // SAFETY: the value is of the column's type.
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
            return ValueType::of(input);
        }
    }
    ValueType::of_attribute(&stored)
}
