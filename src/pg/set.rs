//! Functions that return a set, row by row.
//!
//! What such a function keeps between its calls is Rust's own memory and nothing of the server's: no
//! open relation, no pin, no snapshot. A query may stop asking at any time (LIMIT, a cursor that is
//! closed, an error), and then nothing has to be given back in the right order.
use pgrx::pg_sys;

use super::call::Call;

/// Rows on their way to the server.
pub trait Set: Sized {
    /// The next row's columns, NULL for `None`; `None` after the last. Datums may point into
    /// memory of the set, which is good until the next call, or of the current memory context.
    fn next(&mut self, columns: &mut Vec<Option<pg_sys::Datum>>) -> bool;
}

impl Call {
    /// Returns the next row of a set, which `begin` makes in the first call.
    pub fn return_set<T: Set>(&mut self, begin: impl FnOnce(&Call) -> T) -> pg_sys::Datum {
        let fcinfo = self.fcinfo();
        // SAFETY: the server passes a live call record. What it keeps for the function, in a
        // context of its own, is null before the first call and ours from then on.
        unsafe {
            if (*(*fcinfo).flinfo).fn_extra.is_null() {
                // Refuses callers that want no set.
                let context = pg_sys::init_MultiFuncCall(fcinfo);
                let kept = (*context).multi_call_memory_ctx;
                let outer = pg_sys::MemoryContextSwitchTo(kept);
                let mut descriptor = core::ptr::null_mut();
                pg_sys::get_call_result_type(fcinfo, core::ptr::null_mut(), &raw mut descriptor);
                (*context).tuple_desc = pg_sys::BlessTupleDesc(descriptor);
                pg_sys::MemoryContextSwitchTo(outer);
                let set = begin(self);
                let set = pgrx::PgMemoryContexts::For(kept).leak_and_drop_on_delete(set);
                (*context).user_fctx = set.cast();
            }
            let context = pg_sys::per_MultiFuncCall(fcinfo);
            let result = (*fcinfo).resultinfo.cast::<pg_sys::ReturnSetInfo>();
            let set = &mut *(*context).user_fctx.cast::<T>();
            let mut columns = Vec::new();
            if !set.next(&mut columns) {
                pg_sys::end_MultiFuncCall(fcinfo, context);
                (*result).isDone = pg_sys::ExprDoneCond::ExprEndResult;
                return self.return_null();
            }
            (*context).call_cntr += 1;
            (*result).isDone = pg_sys::ExprDoneCond::ExprMultipleResult;
            let descriptor = (*context).tuple_desc;
            assert_eq!(
                (*descriptor).natts as usize,
                columns.len(),
                "declared in the SQL script"
            );
            let mut nulls: Vec<bool> = columns.iter().map(Option::is_none).collect();
            let none = pg_sys::Datum::from(0);
            let mut values: Vec<pg_sys::Datum> = columns
                .into_iter()
                .map(|value| value.unwrap_or(none))
                .collect();
            let tuple =
                pg_sys::heap_form_tuple(descriptor, values.as_mut_ptr(), nulls.as_mut_ptr());
            pg_sys::HeapTupleHeaderGetDatum((*tuple).t_data)
        }
    }
}
