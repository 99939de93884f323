//! Results of set-returning SQL functions.
//!
//! In FROM, the server stores all rows of a function before it uses the first one. There the
//! function stores all rows itself, in one call, which is several times faster than a call per row.
//! Elsewhere each call returns one row.
//!
//! The state between such calls is in Rust's memory and holds no resources of the server, such as
//! open relations, pins or snapshots. A query may stop reading at any time (LIMIT, a closed cursor,
//! an error), and then no resources have to be released in order. Sets that need such resources are
//! collected in one call, in a store of the server that uses the disk beyond `work_mem`.
use core::any::TypeId;

use pgrx::{PgSqlErrorCode, pg_sys};

use super::errors::UserError;
use super::fmgr::Call;
use super::memory::check_interrupts;
use super::memory_context::OwnContext;
use super::record::{SplitRow, form_record};

/// Result set whose rows are made one by one ([`Call::return_set`]).
pub trait SetReturning: Sized + 'static {
    /// Appends the values of the next row's columns, `None` for NULL. Returns false if there are no
    /// more rows. Datums may point into the current memory context, or into the set. What they
    /// point to must stay valid until the next call.
    fn next(&mut self, columns: &mut Vec<Option<pg_sys::Datum>>) -> bool;
}

/// `None` returns no rows.
impl<T: SetReturning> SetReturning for Option<T> {
    fn next(&mut self, columns: &mut Vec<Option<pg_sys::Datum>>) -> bool {
        self.as_mut().is_some_and(|set| set.next(columns))
    }
}

impl Call {
    /// Returns the result of a set-returning SQL function that makes all its rows in this call.
    /// Calls `fill` once, with a function that adds one row to the result. The argument of this
    /// function has the values of the row's columns, `None` for NULL. Raises an error if the query
    /// does not accept a set here.
    pub fn return_collected(
        &mut self,
        fill: impl FnOnce(&Call, &mut dyn FnMut(&[Option<pg_sys::Datum>])),
    ) -> pg_sys::Datum {
        use pg_sys::SetFunctionReturnMode::{SFRM_Materialize, SFRM_Materialize_Random};
        let modes = self.allowed_modes();
        if modes & SFRM_Materialize == 0 {
            UserError::new(
                PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
                "set-valued function called in a context that cannot accept a set",
            )
            .raise();
        }
        // SAFETY: the caller accepts a set, so it passes a `ReturnSetInfo`.
        let result = unsafe { &mut *(*self.fcinfo()).resultinfo.cast::<pg_sys::ReturnSetInfo>() };
        // SAFETY: the store and its descriptor are made in the memory of the query, and live as
        // long as the query.
        let (store, descriptor) = unsafe {
            let outer = pg_sys::MemoryContextSwitchTo((*result.econtext).ecxt_per_query_memory);
            let descriptor = self.result_descriptor();
            let again = modes & SFRM_Materialize_Random != 0;
            let store = pg_sys::tuplestore_begin_heap(again, false, pg_sys::work_mem);
            pg_sys::MemoryContextSwitchTo(outer);
            (store, descriptor)
        };
        result.returnMode = SFRM_Materialize;
        result.setResult = store;
        result.setDesc = descriptor;
        let mut row = SplitRow::default();
        fill(self, &mut |columns| {
            // SAFETY: the descriptor lives as long as the query.
            let (values, nulls) = row.set(columns, unsafe { descriptor.as_ref() });
            // SAFETY: there are as many values as the descriptor has columns.
            unsafe { pg_sys::tuplestore_putvalues(store, descriptor, values, nulls) };
        });
        self.return_null()
    }

    /// Returns whether the query prefers all rows in one call, as FROM does. Then a fast first row
    /// has no advantage.
    pub fn is_asked_for_all(&self) -> bool {
        use pg_sys::SetFunctionReturnMode::SFRM_Materialize_Preferred;
        self.allowed_modes() & SFRM_Materialize_Preferred != 0
    }

    /// Ways in which the query accepts a set of rows, as flags (`SFRM_...`): row by row, or all
    /// rows in one call. 0 if the query does not accept a set.
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

    /// Returns the result of a set-returning SQL function whose rows come from a [`SetReturning`].
    /// `begin` makes this set. If the query prefers all rows at once, one call returns them all;
    /// otherwise each call returns the next row.
    pub fn return_set<T: SetReturning>(&mut self, begin: impl FnOnce(&Call) -> T) -> pg_sys::Datum {
        if !self.is_asked_for_all() {
            return self.return_next(begin);
        }
        self.return_collected(|call, add| {
            let mut set = begin(call);
            let mut row_memory = OwnContext::new(c"neardup rows");
            let mut columns = Vec::new();
            while row_memory.run(|| set.next(&mut columns)) {
                add(&columns);
                columns.clear();
                row_memory.reset();
                check_interrupts();
            }
        })
    }

    /// Returns the next row of the set. The first call makes the set with `begin`.
    fn return_next<T: SetReturning>(&mut self, begin: impl FnOnce(&Call) -> T) -> pg_sys::Datum {
        let fcinfo = self.fcinfo();
        // SAFETY: the server passes a live call record.
        let function = unsafe { &*(*fcinfo).flinfo };
        if function.fn_extra.is_null() {
            self.begin_set(begin);
        }
        // SAFETY: the first call has set the server's state of the function.
        let context = unsafe { &mut *pg_sys::per_MultiFuncCall(fcinfo) };
        // SAFETY: `init_MultiFuncCall` rejects callers that do not pass a `ReturnSetInfo`.
        let result = unsafe { &mut *(*fcinfo).resultinfo.cast::<pg_sys::ReturnSetInfo>() };
        // SAFETY: `begin_set` has stored a value that begins with a type id.
        let kept = unsafe { &mut *context.user_fctx.cast::<Kept<T>>() };
        assert!(kept.type_id == TypeId::of::<T>());
        let mut columns = Vec::new();
        if !kept.set.next(&mut columns) {
            // SAFETY: the set is no longer used.
            unsafe { pg_sys::end_MultiFuncCall(fcinfo, context) };
            result.isDone = pg_sys::ExprDoneCond::ExprEndResult;
            return self.return_null();
        }
        context.call_cntr += 1;
        result.isDone = pg_sys::ExprDoneCond::ExprMultipleResult;
        // SAFETY: `begin_set` has made the descriptor.
        unsafe { form_record(context.tuple_desc, &columns) }
    }

    /// Makes the set for [`Call::return_next`], in memory that lives until the last row is
    /// returned.
    fn begin_set<T: SetReturning>(&self, begin: impl FnOnce(&Call) -> T) {
        // SAFETY: the server passes a live call record. It rejects callers that accept no set.
        let context = unsafe { &mut *pg_sys::init_MultiFuncCall(self.fcinfo()) };
        let memory = context.multi_call_memory_ctx;
        // SAFETY: the context lives until the last row. An error resets the current context.
        unsafe {
            let outer = pg_sys::MemoryContextSwitchTo(memory);
            context.tuple_desc = pg_sys::BlessTupleDesc(self.result_descriptor());
            pg_sys::MemoryContextSwitchTo(outer);
        }
        let kept = Kept {
            type_id: TypeId::of::<T>(),
            set: begin(self),
        };
        let kept = pgrx::PgMemoryContexts::For(memory).leak_and_drop_on_delete(kept);
        context.user_fctx = kept.cast();
    }
}

/// Set that lives between two calls, and its type. The type detects an attempt to read the set as
/// another type.
#[repr(C)]
struct Kept<T> {
    type_id: TypeId,
    set: T,
}
