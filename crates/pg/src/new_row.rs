//! Rows for which row triggers are called, and copies of these rows with other values.
use core::marker::PhantomData;

use pgrx::pg_sys;

use super::catalog::base_type;
use super::value::{Value, ValueType};
use super::{compat, server};

/// Row that a trigger is called for, split into the values of its columns. `'a` is the lifetime of
/// the trigger's call.
pub struct NewRow<'a> {
    tuple: pg_sys::HeapTuple,
    address: pg_sys::ItemPointerData,
    descriptor: pg_sys::TupleDesc,
    /// Memory context of the call, in which changed versions of the row are allocated.
    context: pg_sys::MemoryContext,
    values: Vec<pg_sys::Datum>,
    nulls: Vec<bool>,
    _call: PhantomData<&'a ()>,
}

impl<'a> NewRow<'a> {
    /// Splits a row of the trigger's table into the values of its columns.
    ///
    /// # Safety
    /// The tuple has this descriptor. The tuple, the descriptor and the context live for `'a`.
    pub unsafe fn new(
        context: pg_sys::MemoryContext,
        tuple: pg_sys::HeapTuple,
        descriptor: pg_sys::TupleDesc,
    ) -> Self {
        // SAFETY: the caller's promise; the arrays have an element for each column.
        unsafe {
            let columns = (*descriptor).natts as usize;
            let mut values = vec![pg_sys::Datum::null(); columns];
            let mut nulls = vec![true; columns];
            pg_sys::heap_deform_tuple(tuple, descriptor, values.as_mut_ptr(), nulls.as_mut_ptr());
            NewRow {
                tuple,
                address: (*tuple).t_self,
                descriptor,
                context,
                values,
                nulls,
                _call: PhantomData,
            }
        }
    }

    /// Pointer to the row as a tuple of the server.
    pub fn tuple(&self) -> pg_sys::HeapTuple {
        self.tuple
    }

    /// Address of the row in its table.
    pub fn address(&self) -> pg_sys::ItemPointerData {
        self.address
    }

    fn attribute(&self, column: i16) -> &pg_sys::FormData_pg_attribute {
        // SAFETY: the descriptor lives as long as the call.
        unsafe { compat::attribute(&*self.descriptor, column) }
    }

    /// Value of the column with this number, counted from 1; `None` for NULL.
    pub fn get(&self, column: i16) -> Option<Value<'a>> {
        let at = column as usize - 1;
        let attribute = self.attribute(column);
        // SAFETY: the value lives as long as its tuple, which is the trigger's or in the context.
        (!self.nulls[at]).then(|| unsafe { Value::new(self.values[at], attribute) })
    }

    /// Sets the column with this number, counted from 1, to NULL. Does nothing if `column` is
    /// `None` or the column is already NULL.
    pub fn set_null(&mut self, column: Option<i16>) {
        if let Some(column) = column.filter(|&column| self.get(column).is_some()) {
            self.set(column, None);
        }
    }

    /// Sets the column with this number, counted from 1; `None` means NULL. Raises an error if the
    /// column's type is a domain that does not allow the value. Raises an internal error if the
    /// base types differ.
    pub fn set(&mut self, column: i16, value: Option<Value>) {
        let wanted = self.attribute(column).atttypid;
        assert!(value.is_none_or(|value| base_type(value.type_oid()) == base_type(wanted)));
        if server::get_typtype(wanted) as u8 == pg_sys::TYPTYPE_DOMAIN {
            let datum = value.map_or(pg_sys::Datum::null(), Value::datum);
            let null = core::ptr::null_mut();
            // SAFETY: the value has the domain's base type.
            unsafe { pg_sys::domain_check(datum, value.is_none(), wanted, null, self.context) };
        }
        *self = self.with(&[column], &[value]);
    }

    /// Returns a copy of the row in which some columns have new values. `columns` are the numbers
    /// of these columns, counted from 1. `values` has the new value of each of them; `None` means
    /// NULL. Raises an internal error if a value's base type differs from its column's.
    pub fn with(&self, columns: &[i16], values: &[Option<Value>]) -> NewRow<'a> {
        assert_eq!(columns.len(), values.len());
        let mut numbers: Vec<i32> = columns.iter().map(|&column| i32::from(column)).collect();
        let mut nulls: Vec<bool> = values.iter().map(Option::is_none).collect();
        let mut datums: Vec<pg_sys::Datum> = (columns.iter().zip(values))
            .map(|(&column, value)| {
                let (kept, value) = (self.attribute(column), (*value)?);
                assert!(base_type(value.type_oid()) == base_type(kept.atttypid));
                Some(value.datum())
            })
            .map(|datum| datum.unwrap_or(pg_sys::Datum::null()))
            .collect();
        // SAFETY: the columns are in this descriptor, and the values have their types. The new
        // tuple is made in the call's own context.
        unsafe {
            let outer = pg_sys::MemoryContextSwitchTo(self.context);
            let tuple = pg_sys::heap_modify_tuple_by_cols(
                self.tuple,
                self.descriptor,
                numbers.len() as i32,
                numbers.as_mut_ptr(),
                datums.as_mut_ptr(),
                nulls.as_mut_ptr(),
            );
            pg_sys::MemoryContextSwitchTo(outer);
            NewRow::new(self.context, tuple, self.descriptor)
        }
    }

    /// Returns the whole row as one value of the table's row type.
    pub fn as_record(&self) -> Value<'a> {
        // SAFETY: the tuple has this descriptor; the copy is made in the call's own context.
        unsafe {
            let outer = pg_sys::MemoryContextSwitchTo(self.context);
            let record = pg_sys::heap_copy_tuple_as_datum(self.tuple, self.descriptor);
            pg_sys::MemoryContextSwitchTo(outer);
            Value::typed(record, ValueType::from_oid((*self.descriptor).tdtypeid))
        }
    }
}
