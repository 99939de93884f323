//! Rows (composite values) that SQL functions of this extension return.
use pgrx::pg_sys::{self, Datum, TupleDesc};

use super::fmgr::Call;

impl Call {
    /// Makes the result of an SQL function that returns one row. `columns` are the values of its
    /// declared columns, `None` for NULL. Raises an internal error if their number differs from the
    /// declaration.
    pub fn return_record(&mut self, columns: &[Option<Datum>]) -> Datum {
        // SAFETY: the descriptor is made in the current memory context.
        unsafe {
            let descriptor = pg_sys::BlessTupleDesc(self.result_descriptor());
            form_record(descriptor, columns)
        }
    }

    /// Returns the descriptor of the columns that the SQL function is declared to return, in the
    /// current memory context. Null if it does not return rows.
    pub(super) fn result_descriptor(&self) -> TupleDesc {
        let mut descriptor = core::ptr::null_mut();
        let none = core::ptr::null_mut();
        // SAFETY: the caller of `Call::new` promised a live call record.
        unsafe { pg_sys::get_call_result_type(self.fcinfo(), none, &raw mut descriptor) };
        descriptor
    }
}

/// Makes a composite value from the values of its columns, `None` for NULL. Raises an internal
/// error if the descriptor is null or has another number of columns.
///
/// # Safety
/// The descriptor is null, or live and blessed.
pub unsafe fn form_record(descriptor: TupleDesc, columns: &[Option<Datum>]) -> Datum {
    let mut split = SplitRow::default();
    // SAFETY: the caller's promise.
    let (values, nulls) = split.set(columns, unsafe { descriptor.as_ref() });
    // SAFETY: there are as many values as the descriptor has columns.
    unsafe {
        let tuple = pg_sys::heap_form_tuple(descriptor, values, nulls);
        pg_sys::HeapTupleHeaderGetDatum((*tuple).t_data)
    }
}

/// Buffers for the two arrays that the server needs to make a row: values and NULL flags.
#[derive(Default)]
pub struct SplitRow {
    values: Vec<Datum>,
    nulls: Vec<bool>,
}

impl SplitRow {
    /// Fills the buffers from the values of a row's columns, `None` for NULL. Returns pointers to
    /// the values and to the NULL flags, valid until the next call. `descriptor` describes the
    /// columns that the SQL function is declared to return. Raises an internal error if it is
    /// `None` or has another number of columns.
    pub fn set(
        &mut self,
        columns: &[Option<Datum>],
        descriptor: Option<&pg_sys::TupleDescData>,
    ) -> (*mut Datum, *mut bool) {
        let count = descriptor.map(|descriptor| descriptor.natts as usize);
        assert_eq!(count, Some(columns.len()), "declared in the SQL script");
        self.values.clear();
        self.nulls.clear();
        (self.values).extend(columns.iter().map(|column| column.unwrap_or(Datum::null())));
        self.nulls.extend(columns.iter().map(Option::is_none));
        (self.values.as_mut_ptr(), self.nulls.as_mut_ptr())
    }
}
