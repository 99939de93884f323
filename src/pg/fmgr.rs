//! Functions that the server calls from SQL: their arguments, and the symbols it finds them by.
//!
//! The extension's SQL is written by hand, and many of its functions run once for each row of a
//! scan. So they are exported straight as version-1 C functions, without conversion layers.
use std::ffi::CString;

use pgrx::pg_sys;

use super::catalog;
use super::cursor::Parameter;
use super::value::{Value, ValueType};

/// One call of a function by the server, with its arguments.
pub struct Call(pg_sys::FunctionCallInfo);

impl Call {
    /// Wraps what the server passes to a version-1 function.
    ///
    /// # Safety
    /// `fcinfo` comes from the server and outlives the result.
    #[inline(always)]
    pub unsafe fn new(fcinfo: pg_sys::FunctionCallInfo) -> Self {
        Call(fcinfo)
    }

    /// The call record.
    pub fn fcinfo(&self) -> pg_sys::FunctionCallInfo {
        self.0
    }

    /// The argument at position `n`, counted from 0.
    #[inline(always)]
    pub fn arg(&self, n: usize) -> pg_sys::Datum {
        self.slot(n).value
    }

    /// Returns whether the argument at position `n` is SQL NULL. A strict function need not ask.
    pub fn is_null(&self, n: usize) -> bool {
        self.slot(n).isnull
    }

    /// Returns whether the argument at position `n` is declared with this type, or may be NULL.
    fn has_type(&self, n: usize, wanted: pg_sys::Oid) -> bool {
        let (types, _) = catalog::function_signature(self.function_oid());
        types[n] == wanted
    }

    /// The argument at position `n` as a `name`; `None` for NULL. Raises an internal error if the
    /// function is declared with another type.
    pub fn name(&self, n: usize) -> Option<CString> {
        if self.is_null(n) {
            return None;
        }
        assert!(self.has_type(n, pg_sys::NAMEOID));
        // A name is a C string of fixed size.
        CString::new(self.cstring(n)).ok()
    }

    /// The argument at position `n` as the bytes of a `text`, in the encoding of the server; `None`
    /// for NULL. Raises an internal error if the function is declared with another type.
    pub fn text(&self, n: usize) -> Option<Vec<u8>> {
        if self.is_null(n) {
            return None;
        }
        assert!(self.has_type(n, pg_sys::TEXTOID));
        Some(self.bytes(n).to_vec())
    }

    /// The argument at position `n`, with the type that it has in this call: of a polymorphic one
    /// that of the value passed.
    pub fn parameter(&self, n: usize) -> Parameter<'_> {
        // SAFETY: null in a direct call, or a live record of the function. A value that is not NULL
        // is of the argument's type, and lives as long as the call.
        unsafe {
            let type_oid = pg_sys::get_fn_expr_argtype(self.function(), n as i32);
            let value = || Value::typed(self.arg(n), ValueType::of(type_oid));
            Parameter {
                type_oid,
                value: (!self.is_null(n)).then(value),
            }
        }
    }

    /// Number of arguments.
    pub fn len(&self) -> usize {
        self.record().nargs as usize
    }

    /// Makes the function's result SQL NULL.
    pub fn return_null(&mut self) -> pg_sys::Datum {
        // SAFETY: `new` was promised a live call record, and the server reads this flag afterwards.
        unsafe { (*self.0).isnull = true };
        pg_sys::Datum::from(0)
    }

    /// Makes the function's result this value, or SQL NULL.
    pub fn return_value(&mut self, value: Option<pg_sys::Datum>) -> pg_sys::Datum {
        value.unwrap_or_else(|| self.return_null())
    }

    /// The function's result as a row of its declared columns; `None` is NULL.
    pub fn return_record(&mut self, columns: &[Option<pg_sys::Datum>]) -> pg_sys::Datum {
        // SAFETY: `new` was promised a live call record. The SQL script declares the function with
        // as many columns, of the types passed.
        unsafe {
            let mut descriptor = core::ptr::null_mut();
            pg_sys::get_call_result_type(self.0, core::ptr::null_mut(), &raw mut descriptor);
            let descriptor = pg_sys::BlessTupleDesc(descriptor);
            assert_eq!(
                (*descriptor).natts as usize,
                columns.len(),
                "declared in the SQL script"
            );
            let mut nulls: Vec<bool> = columns.iter().map(Option::is_none).collect();
            let mut values: Vec<pg_sys::Datum> = columns
                .iter()
                .map(|column| column.unwrap_or(pg_sys::Datum::from(0)))
                .collect();
            let (values, nulls) = (values.as_mut_ptr(), nulls.as_mut_ptr());
            let tuple = pg_sys::heap_form_tuple(descriptor, values, nulls);
            pg_sys::HeapTupleHeaderGetDatum((*tuple).t_data)
        }
    }

    /// The OID of the SQL function that is being called.
    pub fn function_oid(&self) -> pg_sys::Oid {
        // SAFETY: null in a direct call, or a live record of the function.
        unsafe { self.function().as_ref() }.map_or(pg_sys::InvalidOid, |function| function.fn_oid)
    }

    /// The server's record of the function, kept from call to call; null in a direct call.
    pub fn function(&self) -> *mut pg_sys::FmgrInfo {
        self.record().flinfo
    }

    /// The node that the caller passed along, such as a place to keep a soft error.
    pub fn context(&self) -> *mut pg_sys::Node {
        self.record().context
    }

    /// The memory context of the aggregate that calls this function with its state in front, and
    /// whether nobody else uses that state, so that it may be changed in place. `None` if no
    /// aggregate calls.
    pub fn aggregate(&self) -> Option<(pg_sys::MemoryContext, bool)> {
        let mut context = core::ptr::null_mut();
        // SAFETY: `new` was promised a live call record.
        let kind = unsafe { pg_sys::AggCheckCallContext(self.0, &raw mut context) };
        // A window may still show the state of the rows so far.
        (kind != 0).then_some((context, kind == pg_sys::AGG_CONTEXT_AGGREGATE as i32))
    }

    #[inline(always)]
    fn record(&self) -> &pg_sys::FunctionCallInfoBaseData {
        // SAFETY: `new` was promised a live call record.
        unsafe { &*self.0 }
    }

    #[inline(always)]
    fn slot(&self, n: usize) -> pg_sys::NullableDatum {
        debug_assert!(n < self.len());
        // SAFETY: the server allocates `nargs` slots behind the record, and the SQL declaration of
        // each exported function says how many those are.
        unsafe { *(*self.0).args.as_ptr().add(n) }
    }
}

/// Exports functions of the shape `fn(&mut Call) -> Datum` under the symbols that the SQL script
/// names after `'MODULE_PATHNAME'`.
///
/// `plain` is for those that call nothing of the server and cannot panic: they carry no guard.
/// `guarded` turns panics and errors into errors of the server. `screened` takes two functions: one
/// as for `plain`, which returns the result of the calls that are most frequent, and one as for
/// `guarded`, which is called where the first returns `None`.
macro_rules! export {
    ($($mode:ident $symbol:expr => $function:expr;)*) => { $(
        #[allow(unsafe_code, reason = "an exported symbol")]
        const _: () = {
            #[unsafe(export_name = $symbol)]
            unsafe extern "C-unwind" fn call(
                fcinfo: ::pgrx::pg_sys::FunctionCallInfo,
            ) -> ::pgrx::pg_sys::Datum {
                $crate::pg::fmgr::export!(@body $mode fcinfo $function)
            }
            #[unsafe(export_name = concat!("pg_finfo_", $symbol))]
            extern "C" fn finfo() -> &'static ::pgrx::pg_sys::Pg_finfo_record {
                const VERSION_1: ::pgrx::pg_sys::Pg_finfo_record =
                    ::pgrx::pg_sys::Pg_finfo_record { api_version: 1 };
                &VERSION_1
            }
        };
    )* };
    (@body plain $fcinfo:ident $function:expr) => {{
        // SAFETY: the server passes a live call record.
        let mut call = unsafe { $crate::pg::fmgr::Call::new($fcinfo) };
        $function(&mut call)
    }};
    (@body screened $fcinfo:ident $functions:expr) => {{
        let (screen, function) = $functions;
        match $crate::pg::fmgr::export!(@body plain $fcinfo screen) {
            Some(result) => result,
            None => $crate::pg::fmgr::export!(@body guarded $fcinfo function),
        }
    }};
    (@body guarded $fcinfo:ident $function:expr) => {
        // SAFETY: the guard is the outermost frame of Rust, and the server passes a live record.
        unsafe {
            ::pgrx::pg_sys::submodules::panic::pgrx_extern_c_guard(move || {
                let mut call = $crate::pg::fmgr::Call::new($fcinfo);
                $crate::pg::memory::guarded(|| $function(&mut call))
            })
        }
    };
}
pub(crate) use export;
