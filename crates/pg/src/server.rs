//! Functions and variables of the server that are safe to use with any arguments: the state of the
//! backend, and catalogue lookups, which raise an error or report that the object does not exist.
//!
//! They have the server's names and signatures, except that texts are Rust strings.
use core::ffi::{CStr, c_char};
use std::ffi::CString;

use pgrx::pg_sys::{self, AclMode, AclResult, LOCKMODE, Oid, Relation};

/// Copies a C string of the server; `None` for a null pointer.
///
/// # Safety
/// The pointer is null or points to a C string.
pub unsafe fn owned(text: *const c_char) -> Option<CString> {
    // SAFETY: the caller's promise.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_owned())
}

/// Expands to the argument that a wrapper passes to the server's function: the expression `$passed`
/// if there is one, otherwise the wrapper's parameter `$arg`.
macro_rules! passed {
    ($arg:ident) => {
        $arg
    };
    ($arg:ident, $passed:expr) => {
        $passed
    };
}

/// Defines wrappers of the server's functions that take numbers, flags, OIDs and texts. An entry is
/// the signature of a function. A parameter with `= $passed` is converted: the wrapper passes the
/// expression `$passed` instead of it.
macro_rules! plain {
    ($($name:ident($($arg:ident: $type:ty $(= $passed:expr)?),*) $(-> $result:ty)?;)*) => { $(
        #[doc = concat!("`", stringify!($name), "` of the server.")]
        #[inline]
        #[allow(non_snake_case, reason = "the server's name")]
        pub fn $name($($arg: $type),*) $(-> $result)? {
            // SAFETY: texts are terminated, all other arguments may have any value, and the server
            // has a single thread.
            unsafe { pg_sys::$name($(passed!($arg $(, $passed)?)),*) }
        }
    )* };
}

plain! {
    AtEOXact_GUC(commits: bool, level: i32);
    FindDefaultConversionProc(from: i32, to: i32) -> Oid;
    GetAuthenticatedUserId() -> Oid;
    GetDatabaseEncoding() -> i32;
    GetSessionUserId() -> Oid;
    GetTopTransactionIdIfAny() -> pg_sys::TransactionId;
    GetUserId() -> Oid;
    IndexGetRelation(index: Oid, missing_ok: bool) -> Oid;
    IsBinaryCoercible(from: Oid, to: Oid) -> bool;
    IsInParallelMode() -> bool;
    IsTransactionState() -> bool;
    MarkGUCPrefixReserved(prefix: &CStr = prefix.as_ptr());
    NewGUCNestLevel() -> i32;
    RecoveryInProgress() -> bool;
    ResetPlanCache();
    SetUserIdAndSecContext(user: Oid, context: i32);
    check_enable_rls(relation: Oid, user: Oid, no_error: bool) -> i32;
    func_parallel(function: Oid) -> c_char;
    getBaseType(oid: Oid) -> Oid;
    getExtensionOfObject(class: Oid, object: Oid) -> Oid;
    get_element_type(array: Oid) -> Oid;
    get_extension_oid(name: &CStr = name.as_ptr(), missing_ok: bool) -> Oid;
    get_func_namespace(function: Oid) -> Oid;
    get_index_column_opclass(index: Oid, column: i32) -> Oid;
    get_op_opfamily_strategy(operator: Oid, family: Oid) -> i32;
    get_op_rettype(operator: Oid) -> Oid;
    get_opcode(operator: Oid) -> Oid;
    get_opfamily_member(family: Oid, left: Oid, right: Oid, strategy: i16) -> Oid;
    get_rel_namespace(relation: Oid) -> Oid;
    get_rel_relkind(relation: Oid) -> c_char;
    get_typtype(oid: Oid) -> c_char;
    geterrcode() -> i32;
    has_privs_of_role(member: Oid, role: Oid) -> bool;
    index_open(index: Oid, mode: LOCKMODE) -> Relation;
    pg_attribute_aclcheck(relation: Oid, column: i16, role: Oid, mode: AclMode)
        -> AclResult::Type;
    pg_attribute_aclcheck_all(
        relation: Oid, role: Oid, mode: AclMode, how: pg_sys::AclMaskHow::Type
    ) -> AclResult::Type;
    pg_class_aclcheck(relation: Oid, role: Oid, mode: AclMode) -> AclResult::Type;
    pgstat_progress_update_param(parameter: i32, value: i64);
    relation_open(relation: Oid, mode: LOCKMODE) -> Relation;
    table_open(table: Oid, mode: LOCKMODE) -> Relation;
}

unsafe extern "C-unwind" {
    // Declared without pgrx's wrapper around C functions: this one only reads a variable and raises
    // no error.
    safe fn GetCurrentSubTransactionId() -> pg_sys::SubTransactionId;
}

/// Hash value of a type in the system cache of types (`TYPEOID`).
pub fn type_hash(oid: Oid) -> u32 {
    let (cache, unused) = (pg_sys::SysCacheIdentifier::TYPEOID, pg_sys::Datum::from(0));
    // SAFETY: the cache has one key, an OID.
    unsafe { pg_sys::GetSysCacheHashValue(cache as i32, oid.into(), unused, unused, unused) }
}

/// Id of the current subtransaction.
pub fn subtransaction() -> pg_sys::SubTransactionId {
    GetCurrentSubTransactionId()
}

/// Locks a relation in this mode until the transaction ends, or until the current subtransaction is
/// rolled back.
///
/// After `LockRelationOid` alone, the server could release the lock earlier. During a query, the
/// owner of a new lock is the query's portal, which can be a cursor. A later subtransaction can
/// read from this cursor. If the query then fails, the server rolls back only this subtransaction,
/// but releases all locks of the portal.
pub fn lock_for_transaction(relation: Oid, mode: LOCKMODE) {
    let _owner = TransactionOwner::begin();
    // SAFETY: the arguments may have any value.
    unsafe { pg_sys::LockRelationOid(relation, mode) }
}

/// Makes the current (sub)transaction the owner of new locks and other resources until this value
/// is dropped. An error that unwinds the stack drops it, too.
struct TransactionOwner {
    outer: pg_sys::ResourceOwner,
}

impl TransactionOwner {
    fn begin() -> Self {
        // SAFETY: the server has a single thread, so its variables can be accessed.
        unsafe {
            let outer = pg_sys::CurrentResourceOwner;
            pg_sys::CurrentResourceOwner = pg_sys::CurTransactionResourceOwner;
            TransactionOwner { outer }
        }
    }
}

impl Drop for TransactionOwner {
    fn drop(&mut self) {
        // SAFETY: the outer owner lives at least as long as the call in which it was current.
        unsafe { pg_sys::CurrentResourceOwner = self.outer };
    }
}

/// Defines wrappers of functions that return a C string or null. Parameters are as in `plain`.
macro_rules! texts {
    ($($name:ident($($arg:ident: $type:ty $(= $passed:expr)?),*);)*) => { $(
        #[doc = concat!("`", stringify!($name), "` of the server; `None` for null.")]
        #[allow(non_snake_case, reason = "the server's name")]
        pub fn $name($($arg: $type),*) -> Option<CString> {
            // SAFETY: texts are terminated, and all other arguments may have any value. The result
            // is null or a C string, which is copied at once.
            unsafe { owned(pg_sys::$name($(passed!($arg $(, $passed)?)),*)) }
        }
    )* };
}

texts! {
    GetConfigOption(name: &CStr = name.as_ptr(), missing_ok: bool, restrict_privileged: bool);
    format_type_be(oid: Oid);
    format_type_extended(oid: Oid, modifier: i32, flags: u16);
    get_am_name(access_method: Oid);
    get_attname(relation: Oid, column: i16, missing_ok: bool);
    get_func_name(function: Oid);
    get_namespace_name(schema: Oid);
    get_rel_name(relation: Oid);
    makeObjectName(
        first: &CStr = first.as_ptr(),
        second: Option<&CStr> = second.map_or(core::ptr::null(), CStr::as_ptr),
        label: &CStr = label.as_ptr()
    );
    pg_get_indexdef_columns(index: Oid, pretty: bool);
    quote_identifier(name: &CStr = name.as_ptr());
    quote_literal_cstr(text: &CStr = text.as_ptr());
    quote_qualified_identifier(schema: &CStr = schema.as_ptr(), name: &CStr = name.as_ptr());
}

/// Defines functions that read variables of the server. An entry consists of the function's name,
/// the variable's name and its type.
macro_rules! variables {
    ($($name:ident = $variable:ident: $type:ty;)*) => { $(
        #[doc = concat!("`", stringify!($variable), "` of the server.")]
        #[inline]
        pub fn $name() -> $type {
            // SAFETY: the variable has a plain type, and the server has a single thread.
            unsafe { pg_sys::$variable }
        }
    )* };
}

variables! {
    cpu_index_tuple_cost = cpu_index_tuple_cost: f64;
    cpu_operator_cost = cpu_operator_cost: f64;
    current_memory_context = CurrentMemoryContext: pg_sys::MemoryContext;
    database = MyDatabaseId: Oid;
    interval_style = IntervalStyle: i32;
    is_preloading = process_shared_preload_libraries_in_progress: bool;
    isolation_level = XactIsoLevel: i32;
    maintenance_work_mem = maintenance_work_mem: i32;
    max_backends = MaxBackends: i32;
    max_parallel_workers_per_gather = max_parallel_workers_per_gather: i32;
    min_parallel_index_scan_size = min_parallel_index_scan_size: i32;
    parallel_leader_participation = parallel_leader_participation: bool;
    parallel_setup_cost = parallel_setup_cost: f64;
    parallel_worker_number = ParallelWorkerNumber: i32;
    process_id = MyProcPid: i32;
    standard_conforming_strings = standard_conforming_strings: bool;
    wal_level = wal_level: i32;
    work_mem = work_mem: i32;
}
