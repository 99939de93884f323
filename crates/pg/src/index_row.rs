//! Rows of a table in the form in which the server passes them to an index of the table.
use pgrx::pg_sys;

use super::rel::Rel;
use super::value::{Value, ValueType};

/// Values of an index's columns for one row of the table. They have the types that the index
/// stores, except in the searched column ([`Rel::searched_column`]). The value there has the input
/// type of the operator class, which may store another type.
#[derive(Clone, Copy)]
pub struct IndexRow<'a> {
    index: Rel<'a>,
    values: &'a [pg_sys::Datum],
    nulls: &'a [bool],
}

impl<'a> IndexRow<'a> {
    /// Wraps the values and the NULL flags that the server passes for one row.
    ///
    /// # Safety
    /// Both arrays have an element for each column of the index and live for `'a`. The operator
    /// classes of all columns except the searched one store values of their input type.
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

    /// Index to whose columns the values belong.
    #[inline]
    pub fn index(&self) -> Rel<'a> {
        self.index
    }

    /// The value of an index column, counted from 0; `None` for NULL.
    #[inline]
    pub fn get(&self, column: usize) -> Option<Value<'a>> {
        let of = input_type(self.index, column);
        // SAFETY: the value has the column's type.
        (!self.nulls[column]).then(|| unsafe { Value::typed(self.values[column], of) })
    }
}

/// The type of the values that the server passes to an index for the column `column`, counted from
/// 0. It is the type that the index stores, except in the searched column. There it is the input
/// type of the operator class, which may store another type.
#[inline]
pub fn input_type(index: Rel, column: usize) -> ValueType {
    let stored = index.attribute(column as i16 + 1);
    let input = index.key_class(column).input;
    if input != stored.atttypid && column == index.searched_column() {
        return ValueType::from_oid(input);
    }
    ValueType::from_attribute(&stored)
}
