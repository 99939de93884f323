//! The row that a trigger was called for.
use pgrx::pg_sys;

use crate::pg::compat;

/// A row as the trigger was given it, taken apart.
pub struct NewRow {
    pub tuple: pg_sys::HeapTuple,
    pub descriptor: pg_sys::TupleDesc,
    values: Vec<pg_sys::Datum>,
    nulls: Vec<bool>,
}

impl NewRow {
    /// # Safety
    /// The tuple is of a row with this descriptor.
    pub unsafe fn new(tuple: pg_sys::HeapTuple, descriptor: pg_sys::TupleDesc) -> Self {
        // SAFETY: the caller's promise; as many places as the descriptor has columns.
        unsafe {
            let columns = (*descriptor).natts as usize;
            let mut values = vec![pg_sys::Datum::null(); columns];
            let mut nulls = vec![true; columns];
            pg_sys::heap_deform_tuple(tuple, descriptor, values.as_mut_ptr(), nulls.as_mut_ptr());
            NewRow {
                tuple,
                descriptor,
                values,
                nulls,
            }
        }
    }

    /// The value in a column, counted from 1; `None` for NULL.
    pub fn get(&self, column: i16) -> Option<pg_sys::Datum> {
        let at = column as usize - 1;
        (!self.nulls[at]).then(|| self.values[at])
    }

    /// Puts NULL into a column, if there is one and it holds something else.
    pub fn clear(&mut self, column: Option<i16>) {
        if let Some(column) = column.filter(|&column| self.get(column).is_some()) {
            self.set(column, None);
        }
    }

    /// Puts a value, or NULL, into a column. Raises an error if the column is of a domain that does
    /// not allow it.
    pub fn set(&mut self, column: i16, value: Option<pg_sys::Datum>) {
        let at = column as usize - 1;
        // SAFETY: the column is one of this descriptor, and the value of its type.
        unsafe {
            let kept = (*compat::attribute(self.descriptor, at)).atttypid;
            if pg_sys::get_typtype(kept) as u8 == pg_sys::TYPTYPE_DOMAIN {
                let (null, datum) = (value.is_none(), value.unwrap_or(pg_sys::Datum::null()));
                let memory = pg_sys::CurrentMemoryContext;
                pg_sys::domain_check(datum, null, kept, core::ptr::null_mut(), memory);
            }
        }
        self.nulls[at] = value.is_none();
        self.values[at] = value.unwrap_or(pg_sys::Datum::null());
        let (mut values, mut nulls) = ([self.values[at]], [self.nulls[at]]);
        let mut columns = [i32::from(column)];
        // SAFETY: the tuple is of this descriptor, and the column is one of its own.
        unsafe {
            self.tuple = pg_sys::heap_modify_tuple_by_cols(
                self.tuple,
                self.descriptor,
                1,
                columns.as_mut_ptr(),
                values.as_mut_ptr(),
                nulls.as_mut_ptr(),
            );
        }
    }
}
