//! Functions that return a set of rows: all of them at once, in a tuple store of the server's.
use pgrx::{PgSqlErrorCode, pg_sys};

use super::call::Call;
use super::errors::UserError;

/// The rows that a function returns.
pub struct Rows {
    store: *mut pg_sys::Tuplestorestate,
    descriptor: pg_sys::TupleDesc,
    /// Memory of the row that is being made.
    context: pg_sys::MemoryContext,
}

impl Rows {
    /// Begins the result of a call; error 0A000 where the caller takes no set.
    pub fn begin(call: &Call) -> Self {
        // SAFETY: the record of a live call; what it points to is of the type that its tag tells,
        // and lives as long as the query, as does the memory that the store is made in.
        unsafe {
            let info = (*call.record()).resultinfo.cast::<pg_sys::ReturnSetInfo>();
            let modes = if info.is_null() || (*info).type_ != pg_sys::NodeTag::T_ReturnSetInfo {
                0
            } else {
                (*info).allowedModes as u32
            };
            if modes & pg_sys::SetFunctionReturnMode::SFRM_Materialize == 0 {
                UserError::new(
                    PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
                    "a function that returns a set was called where none can be taken",
                )
                .hint("Call it in FROM.")
                .raise();
            }
            let context = (*(*info).econtext).ecxt_per_query_memory;
            let outer = pg_sys::MemoryContextSwitchTo(context);
            let mut descriptor = core::ptr::null_mut();
            pg_sys::get_call_result_type(call.record(), core::ptr::null_mut(), &raw mut descriptor);
            let random = modes & pg_sys::SetFunctionReturnMode::SFRM_Materialize_Random != 0;
            let store = pg_sys::tuplestore_begin_heap(random, false, pg_sys::work_mem);
            (*info).returnMode = pg_sys::SetFunctionReturnMode::SFRM_Materialize;
            (*info).setResult = store;
            (*info).setDesc = descriptor;
            pg_sys::MemoryContextSwitchTo(outer);
            let context = pg_sys::AllocSetContextCreateExtended(
                outer,
                c"neardup row".as_ptr(),
                pg_sys::ALLOCSET_SMALL_MINSIZE as usize,
                pg_sys::ALLOCSET_SMALL_INITSIZE as usize,
                pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
            );
            Rows {
                store,
                descriptor,
                context,
            }
        }
    }

    /// Adds a row of the columns that the function is declared with, none of them NULL. `columns` may
    /// allocate: its memory is given back at once.
    pub fn push<const N: usize>(&mut self, columns: impl FnOnce() -> [pg_sys::Datum; N]) {
        // SAFETY: the store and the descriptor are the call's; the SQL script declares as many
        // columns, of these types.
        unsafe {
            let outer = pg_sys::MemoryContextSwitchTo(self.context);
            let mut columns = columns();
            assert_eq!(
                (*self.descriptor).natts as usize,
                N,
                "declared in the SQL script"
            );
            let (values, nulls) = (columns.as_mut_ptr(), [false; N].as_mut_ptr());
            pg_sys::tuplestore_putvalues(self.store, self.descriptor, values, nulls);
            pg_sys::MemoryContextSwitchTo(outer);
            pg_sys::MemoryContextReset(self.context);
        }
    }

    /// The result of the call.
    pub fn finish(self, call: &mut Call) -> pg_sys::Datum {
        // SAFETY: made in `begin`; nothing in it is in use.
        unsafe { pg_sys::MemoryContextDelete(self.context) };
        call.return_null()
    }
}
