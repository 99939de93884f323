//! SQL functions of this extension as the server's function manager calls them: access to arguments
//! and results ([`Call`]), and the exported symbols ([`export`]).
//!
//! The extension's SQL is written by hand, and many of its functions run once for each row of a
//! scan. So they are exported directly as version-1 C functions, without conversion layers.
use core::cell::Cell;
use std::ffi::CString;

use pgrx::pg_sys::{self, Datum};

use super::cursor::Parameter;
use super::declared_types::DeclaredTypes;
use super::server;
use super::value::{Value, ValueType};

/// One call of an SQL function of this extension by the server, with its arguments.
pub struct Call {
    fcinfo: pg_sys::FunctionCallInfo,
    /// Declared types of the function's arguments; `None` before their first lookup in this call.
    types: Cell<Option<&'static DeclaredTypes>>,
}

impl Call {
    /// Wraps the call record that the server passes to a version-1 function.
    ///
    /// # Safety
    /// `fcinfo` comes from the server and outlives the result.
    #[inline(always)]
    pub unsafe fn new(fcinfo: pg_sys::FunctionCallInfo) -> Self {
        Call {
            fcinfo,
            types: Cell::new(None),
        }
    }

    /// The server's record of this call.
    pub fn fcinfo(&self) -> pg_sys::FunctionCallInfo {
        self.fcinfo
    }

    /// The datum of argument `n`, counted from 0. It has no meaning if the argument is NULL.
    #[inline(always)]
    pub fn arg(&self, n: usize) -> pg_sys::Datum {
        self.slot(n).value
    }

    /// Returns whether argument `n`, counted from 0, is NULL. Strict functions need not call it.
    #[inline(always)]
    pub fn is_null(&self, n: usize) -> bool {
        self.slot(n).isnull
    }

    /// Looks for the declared types of the function's arguments in the backend's cache, without
    /// reading the catalogue. Returns whether the cache has them.
    #[inline(always)]
    pub fn knows_types(&self) -> bool {
        let known = DeclaredTypes::recent(self.function_oid());
        self.types.set(known);
        known.is_some()
    }

    /// The declared type of argument `n`, counted from 0. Reads the catalogue if the backend's
    /// cache does not have the function's types.
    #[inline(always)]
    fn declared_type(&self, n: usize) -> ValueType {
        let types = self.types.get().unwrap_or_else(|| {
            let function = self.function_oid();
            let types =
                DeclaredTypes::recent(function).unwrap_or_else(|| DeclaredTypes::get(function));
            self.types.set(Some(types));
            types
        });
        types.argument(n)
    }

    /// Returns the datum of argument `n`, counted from 0, for a type that is passed by reference.
    /// Raises an internal error if the argument is NULL, or if `fits` returns false for its
    /// declared type.
    #[inline(always)]
    pub(super) fn reference(&self, n: usize, fits: impl FnOnce(ValueType) -> bool) -> Datum {
        let slot = self.slot(n);
        assert!(!slot.isnull, "a NULL is read");
        assert!(fits(self.declared_type(n)), "declared with another type");
        slot.value
    }

    /// The pointer in argument `n`, counted from 0, which must be declared as `internal`. Only
    /// superusers can declare functions that take or return this type.
    #[inline]
    pub(super) fn internal<T>(&self, n: usize) -> *mut T {
        let datum = self.reference(n, |declared| declared.oid() == pg_sys::INTERNALOID);
        datum.cast_mut_ptr()
    }

    /// Argument `n`, counted from 0, as the text of a `name`; `None` for NULL. Raises an internal
    /// error if the argument is declared with another type.
    pub fn name(&self, n: usize) -> Option<CString> {
        if self.is_null(n) {
            return None;
        }
        let name = self.reference(n, |declared| declared.oid() == pg_sys::NAMEOID);
        // SAFETY: a name is a terminated string.
        unsafe { server::owned(name.cast_mut_ptr()) }
    }

    /// Copies the bytes of argument `n`, counted from 0, a `text`, in the encoding of the database;
    /// `None` for NULL. Raises an internal error if the argument is declared with another type.
    pub fn text(&self, n: usize) -> Option<Vec<u8>> {
        if self.is_null(n) {
            return None;
        }
        self.reference(n, |declared| declared.oid() == pg_sys::TEXTOID);
        Some(self.bytes(n).to_vec())
    }

    /// Returns argument `n`, counted from 0, as a parameter for a query. Its type is the type in
    /// this call: for a polymorphic argument, the type of the passed value.
    pub fn parameter(&self, n: usize) -> Parameter<'_> {
        // SAFETY: null in a direct call, or a live record of the function. A value that is not
        // NULL has the argument's type, and lives as long as the call.
        unsafe {
            let type_oid = pg_sys::get_fn_expr_argtype(self.function(), n as i32);
            let value = || Value::typed(self.arg(n), ValueType::from_oid(type_oid));
            Parameter {
                type_oid,
                value: (!self.is_null(n)).then(value),
            }
        }
    }

    /// Number of arguments of this call.
    #[inline(always)]
    pub fn arg_count(&self) -> usize {
        self.record().nargs as usize
    }

    /// Makes the function's result NULL. Returns the datum that the function must return.
    pub fn return_null(&mut self) -> pg_sys::Datum {
        // SAFETY: the caller of `new` promised a live call record.
        unsafe { (*self.fcinfo).isnull = true };
        pg_sys::Datum::from(0)
    }

    /// Makes the function's result this value; `None` makes it NULL. Returns the datum that the
    /// function must return.
    pub fn return_value(&mut self, value: Option<pg_sys::Datum>) -> pg_sys::Datum {
        value.unwrap_or_else(|| self.return_null())
    }

    /// The OID of the SQL function that is called; `InvalidOid` if C code calls it without the
    /// function manager's record.
    #[inline(always)]
    pub fn function_oid(&self) -> pg_sys::Oid {
        // SAFETY: null in a direct call, or a live record of the function.
        unsafe { self.function().as_ref() }.map_or(pg_sys::InvalidOid, |function| function.fn_oid)
    }

    /// The function manager's record of the called function, which all calls from one place in a
    /// query share. Null if C code calls the function without a record.
    #[inline(always)]
    pub fn function(&self) -> *mut pg_sys::FmgrInfo {
        self.record().flinfo
    }

    /// The node that the server passes with the call, such as the data of a trigger or the storage
    /// for a soft error; null if there is none.
    pub fn context(&self) -> *mut pg_sys::Node {
        self.record().context
    }

    /// The memory context of the aggregate that calls this support function, and whether the
    /// function may change the aggregate's state in place; `None` if the call does not come from an
    /// aggregate.
    pub fn aggregate(&self) -> Option<(pg_sys::MemoryContext, bool)> {
        let mut context = core::ptr::null_mut();
        // SAFETY: the caller of `new` promised a live call record.
        let kind = unsafe { pg_sys::AggCheckCallContext(self.fcinfo, &raw mut context) };
        // A window aggregate may still use the present state.
        (kind != 0).then_some((context, kind == pg_sys::AGG_CONTEXT_AGGREGATE as i32))
    }

    #[inline(always)]
    fn record(&self) -> &pg_sys::FunctionCallInfoBaseData {
        // SAFETY: the caller of `new` promised a live call record.
        unsafe { &*self.fcinfo }
    }

    #[inline(always)]
    fn slot(&self, n: usize) -> pg_sys::NullableDatum {
        assert!(n < self.arg_count(), "declared with fewer arguments");
        // SAFETY: the server allocates `nargs` slots behind the record.
        unsafe { *(*self.fcinfo).args.as_ptr().add(n) }
    }
}

/// Exports functions of type `fn(&mut Call) -> Datum` under the symbols that the SQL script names
/// after `'MODULE_PATHNAME'`. A guard turns panics and errors in a function into errors of the
/// server, but takes time at each call. The word before each symbol states when the function has a
/// guard:
///
/// - `plain`: a function that does not call the server, cannot panic and reads no argument by
///   reference. It has no guard.
/// - `checked`: as `plain`, but the function may read arguments by reference. It has a guard only
///   while the backend's cache lacks the declared types of its arguments.
/// - `guarded`: any function. The guard turns panics and errors into errors of the server.
/// - `screened`: a pair of functions. The first function is as for `checked`, and handles the most
///   frequent calls. It returns `None` for all other calls. The second function is as for
///   `guarded`. It handles the calls for which the first function returns `None`, and all calls
///   while the cache lacks the declared types.
#[macro_export]
macro_rules! export_functions {
    ($($mode:ident $symbol:expr => $function:expr;)*) => { $(
        #[allow(unsafe_code, reason = "an exported symbol")]
        const _: () = {
            #[unsafe(export_name = $symbol)]
            unsafe extern "C-unwind" fn call(
                fcinfo: ::pgrx::pg_sys::FunctionCallInfo,
            ) -> ::pgrx::pg_sys::Datum {
                $crate::export_functions!(@body $mode fcinfo $function)
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
        let mut call = unsafe { $crate::fmgr::Call::new($fcinfo) };
        $function(&mut call)
    }};
    (@body checked $fcinfo:ident $function:expr) => {{
        // SAFETY: the server passes a live call record.
        let mut call = unsafe { $crate::fmgr::Call::new($fcinfo) };
        match call.knows_types() {
            true => $function(&mut call),
            false => $crate::export_functions!(@body guarded $fcinfo $function),
        }
    }};
    (@body screened $fcinfo:ident $functions:expr) => {{
        let (screen, function) = $functions;
        // SAFETY: the server passes a live call record.
        let call = unsafe { $crate::fmgr::Call::new($fcinfo) };
        match call.knows_types().then(|| screen(&call)).flatten() {
            Some(result) => result,
            None => $crate::export_functions!(@body guarded $fcinfo function),
        }
    }};
    (@body guarded $fcinfo:ident $function:expr) => {
        // SAFETY: the guard is the outermost frame of Rust, and the server passes a live record.
        unsafe {
            ::pgrx::pg_sys::submodules::panic::pgrx_extern_c_guard(move || {
                let mut call = $crate::fmgr::Call::new($fcinfo);
                $crate::memory::guarded(|| $function(&mut call))
            })
        }
    };
}
pub use export_functions as export;
