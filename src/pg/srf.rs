//! Functions that return a set, row by row.
//!
//! The state between calls is in Rust's own memory and holds nothing of the server's: no
//! open relation, no pin, no snapshot. A query may stop asking at any time (LIMIT, a cursor that is
//! closed, an error), and then nothing has to be given back in the right order. What cannot be kept
//! so is collected in one call, in the server's own store, which goes to disk beyond `work_mem`.
use pgrx::{PgSqlErrorCode, pg_sys};

use super::errors::UserError;
use super::fmgr::Call;

/// Rows on their way to the server.
pub trait SetReturning: Sized {
    /// The next row's columns, NULL for `None`; `None` after the last. Datums may point into
    /// memory of the set, which is good until the next call, or of the current memory context.
    fn next(&mut self, columns: &mut Vec<Option<pg_sys::Datum>>) -> bool;
}

impl Call {
    /// Returns a set that is collected at once: `fill` is given what adds a row.
    pub fn return_collected(
        &mut self,
        fill: impl FnOnce(&Call, &mut dyn FnMut(&[Option<pg_sys::Datum>])),
    ) -> pg_sys::Datum {
        use pg_sys::SetFunctionReturnMode::{SFRM_Materialize, SFRM_Materialize_Random};
        let (fcinfo, modes) = (self.fcinfo(), self.allowed_modes());
        // SAFETY: the server passes a live call record. The store and its descriptor live as long
        // as the query, in whose memory they are made.
        unsafe {
            let result = (*fcinfo).resultinfo.cast::<pg_sys::ReturnSetInfo>();
            if modes & SFRM_Materialize == 0 {
                UserError::new(
                    PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
                    "set-valued function called in a context that cannot accept a set",
                )
                .raise();
            }
            let context = (*(*result).econtext).ecxt_per_query_memory;
            let outer = pg_sys::MemoryContextSwitchTo(context);
            let mut descriptor = core::ptr::null_mut();
            pg_sys::get_call_result_type(fcinfo, core::ptr::null_mut(), &raw mut descriptor);
            let again = modes & SFRM_Materialize_Random != 0;
            let store = pg_sys::tuplestore_begin_heap(again, false, pg_sys::work_mem);
            pg_sys::MemoryContextSwitchTo(outer);
            (*result).returnMode = SFRM_Materialize;
            (*result).setResult = store;
            (*result).setDesc = descriptor;
            fill(self, &mut |columns| {
                let none = pg_sys::Datum::from(0);
                let mut nulls: Vec<bool> = columns.iter().map(Option::is_none).collect();
                let mut values: Vec<pg_sys::Datum> =
                    columns.iter().map(|value| value.unwrap_or(none)).collect();
                assert_eq!(
                    (*descriptor).natts as usize,
                    columns.len(),
                    "declared in the SQL script"
                );
                let (values, nulls) = (values.as_mut_ptr(), nulls.as_mut_ptr());
                pg_sys::tuplestore_putvalues(store, descriptor, values, nulls);
            });
        }
        self.return_null()
    }

    /// Returns whether the caller takes the set as a whole, as FROM does: then its rows are stored,
    /// and it makes no difference when the first one comes.
    pub fn is_asked_for_all(&self) -> bool {
        use pg_sys::SetFunctionReturnMode::SFRM_Materialize_Preferred;
        self.allowed_modes() & SFRM_Materialize_Preferred != 0
    }

    /// The ways in which the caller takes a set, as flags; 0 if it takes none.
    fn allowed_modes(&self) -> u32 {
        // SAFETY: the server passes a live call record, with null or a node.
        unsafe {
            match (*self.fcinfo()).resultinfo.as_ref() {
                Some(node) if node.type_ == pg_sys::NodeTag::T_ReturnSetInfo => {
                    (*core::ptr::from_ref(node).cast::<pg_sys::ReturnSetInfo>()).allowedModes as u32
                }
                _ => 0,
            }
        }
    }

    /// Returns the next row of a set, which `begin` makes in the first call.
    pub fn return_set<T: SetReturning>(&mut self, begin: impl FnOnce(&Call) -> T) -> pg_sys::Datum {
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
