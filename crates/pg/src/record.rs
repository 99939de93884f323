//! Rows that a function returns.
use pgrx::pg_sys::{self, Datum, TupleDesc};

use super::fmgr::Call;

impl Call {
    /// The function's result as a row of its declared columns. `None` is NULL.
    pub fn return_record(&mut self, columns: &[Option<Datum>]) -> Datum {
        // SAFETY: the descriptor is made in the current memory context.
        unsafe {
            let descriptor = pg_sys::BlessTupleDesc(self.result_descriptor());
            form_record(descriptor, columns)
        }
    }

    /// The declared columns of the result, in the current memory context. Null if there are none.
    pub(super) fn result_descriptor(&self) -> TupleDesc {
        let mut descriptor = core::ptr::null_mut();
        let none = core::ptr::null_mut();
        // SAFETY: `Call::new` was promised a live call record.
        unsafe { pg_sys::get_call_result_type(self.fcinfo(), none, &raw mut descriptor) };
        descriptor
    }
}

/// Makes a row.
///
/// # Safety
/// The descriptor is null, or lives and is blessed.
pub unsafe fn form_record(descriptor: TupleDesc, columns: &[Option<Datum>]) -> Datum {
    // SAFETY: the caller's promise.
    let (mut values, mut nulls) = split(columns, unsafe { descriptor.as_ref() });
    let (values, nulls) = (values.as_mut_ptr(), nulls.as_mut_ptr());
    // SAFETY: there are as many values as the descriptor has columns.
    unsafe {
        let tuple = pg_sys::heap_form_tuple(descriptor, values, nulls);
        pg_sys::HeapTupleHeaderGetDatum((*tuple).t_data)
    }
}

/// Values of a row, and which of them are NULL. Raises an internal error unless the function is
/// declared with as many columns.
pub fn split(
    columns: &[Option<Datum>],
    descriptor: Option<&pg_sys::TupleDescData>,
) -> (Vec<Datum>, Vec<bool>) {
    let count = descriptor.map(|descriptor| descriptor.natts as usize);
    assert_eq!(count, Some(columns.len()), "declared in the SQL script");
    let values = columns.iter().map(|column| column.unwrap_or(Datum::null()));
    let nulls = columns.iter().map(Option::is_none);
    (values.collect(), nulls.collect())
}
