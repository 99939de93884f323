//! The only place that knows differences between PostgreSQL versions.
use pgrx::{PgSqlErrorCode, pg_sys};

#[cfg(not(feature = "pg14"))]
unsafe extern "C-unwind" {
    fn ssup_datum_unsigned_cmp(
        x: pg_sys::Datum,
        y: pg_sys::Datum,
        ssup: pg_sys::SortSupport,
    ) -> core::ffi::c_int;
}

#[cfg(feature = "pg14")]
unsafe extern "C-unwind" fn ssup_datum_unsigned_cmp(
    x: pg_sys::Datum,
    y: pg_sys::Datum,
    _ssup: pg_sys::SortSupport,
) -> core::ffi::c_int {
    x.value().cmp(&y.value()) as core::ffi::c_int
}

/// The comparison of two datums as unsigned integers, for sorting. From version 15 on it is the
/// server's own function, which the server recognises by its address and replaces by a
/// specialised sort; so it is named without the wrapper that pgrx puts around C functions.
pub fn unsigned_datum_comparator() -> unsafe extern "C-unwind" fn(
    pg_sys::Datum,
    pg_sys::Datum,
    pg_sys::SortSupport,
) -> core::ffi::c_int {
    ssup_datum_unsigned_cmp
}

/// Hands an input error to a caller that wants it as data instead of an exception. False if
/// there is no such caller; before version 16 there never is.
#[cfg(any(feature = "pg14", feature = "pg15"))]
pub fn save_soft_error(
    _context: *mut pg_sys::Node,
    _code: PgSqlErrorCode,
    _message: &str,
    _detail: Option<&str>,
    _hint: Option<&str>,
) -> bool {
    false
}

/// Hands an input error to a caller that wants it as data instead of an exception. False if
/// there is no such caller.
#[cfg(not(any(feature = "pg14", feature = "pg15")))]
pub fn save_soft_error(
    context: *mut pg_sys::Node,
    code: PgSqlErrorCode,
    message: &str,
    detail: Option<&str>,
    hint: Option<&str>,
) -> bool {
    // SAFETY: the context of a call is null or a node, whose tag says what it is. The record is
    // allocated whole, in the memory context that the caller has chosen for the answer.
    unsafe {
        if context.is_null() || (*context).type_ != pg_sys::NodeTag::T_ErrorSaveContext {
            return false;
        }
        let save = context.cast::<pg_sys::ErrorSaveContext>();
        (*save).error_occurred = true;
        if (*save).details_wanted {
            let data = pg_sys::palloc0(size_of::<pg_sys::ErrorData>()).cast::<pg_sys::ErrorData>();
            (*data).elevel = pgrx::PgLogLevel::ERROR as core::ffi::c_int;
            (*data).sqlerrcode = code as core::ffi::c_int;
            (*data).message = copy(message);
            (*data).detail = detail.map_or(core::ptr::null_mut(), copy);
            (*data).hint = hint.map_or(core::ptr::null_mut(), copy);
            (*data).assoc_context = pg_sys::CurrentMemoryContext;
            (*save).error_data = data;
        }
        true
    }
}

/// A copy of `text` as a C string in the current memory context.
#[cfg(not(any(feature = "pg14", feature = "pg15")))]
fn copy(text: &str) -> *mut core::ffi::c_char {
    // SAFETY: `pnstrdup` reads as many bytes as the text has, and adds the terminator.
    unsafe { pg_sys::pnstrdup(text.as_ptr().cast(), text.len()) }
}

/// Refuses settings whose names begin with a prefix and that are not defined by now.
#[cfg(not(feature = "pg14"))]
pub fn reserve_settings(prefix: &'static core::ffi::CStr) {
    // SAFETY: the server copies the terminated name.
    unsafe { pg_sys::MarkGUCPrefixReserved(prefix.as_ptr()) }
}

/// Warns of settings whose names begin with a prefix and that are not defined by now. Version 14
/// cannot refuse later ones.
#[cfg(feature = "pg14")]
pub fn reserve_settings(prefix: &'static core::ffi::CStr) {
    // SAFETY: the server reads the terminated name.
    unsafe { pg_sys::EmitWarningsOnPlaceholders(prefix.as_ptr()) }
}

/// Whether a role owns a relation, or is a member of the role that does.
#[cfg(any(feature = "pg14", feature = "pg15"))]
pub fn owns_relation(relation: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    // SAFETY: catalogue look-ups.
    unsafe { pg_sys::pg_class_ownercheck(relation, role) }
}

/// Whether a role owns a relation, or is a member of the role that does.
#[cfg(not(any(feature = "pg14", feature = "pg15")))]
pub fn owns_relation(relation: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    // SAFETY: catalogue look-ups.
    unsafe { pg_sys::object_ownercheck(pg_sys::RelationRelationId, relation, role) }
}

/// An integer among the options of an index (`relopt_parse_elt`): its name, and where in the struct
/// of options the server puts its value.
pub fn int_option(name: &'static core::ffi::CStr, offset: usize) -> pg_sys::relopt_parse_elt {
    pg_sys::relopt_parse_elt {
        optname: name.as_ptr(),
        opttype: pg_sys::relopt_type::RELOPT_TYPE_INT,
        offset: offset as core::ffi::c_int,
        // 0: nobody asks whether the option was written or took its default.
        #[cfg(feature = "pg18")]
        isset_offset: 0,
    }
}

/// A floating-point number among the options of an index, likewise.
pub fn real_option(name: &'static core::ffi::CStr, offset: usize) -> pg_sys::relopt_parse_elt {
    pg_sys::relopt_parse_elt {
        opttype: pg_sys::relopt_type::RELOPT_TYPE_REAL,
        ..int_option(name, offset)
    }
}

/// The resource manager that replays generic records.
pub const RM_GENERIC_ID: pg_sys::RmgrId = pg_sys::RmgrIds::RM_GENERIC_ID as pg_sys::RmgrId;

/// Whether changes to a relation go into the write-ahead log (`RelationNeedsWAL`).
///
/// # Safety
/// The relation is open.
pub unsafe fn relation_needs_wal(relation: pg_sys::Relation) -> bool {
    // SAFETY: the caller's promise. What a C macro tests is tested here: a permanent relation,
    // unless its file is new in this transaction and `wal_level` is `minimal`.
    unsafe {
        let permanent =
            (*(*relation).rd_rel).relpersistence as u8 == pg_sys::RELPERSISTENCE_PERMANENT;
        // 0 is InvalidSubTransactionId.
        let new_file = (*relation).rd_createSubid != 0 || first_locator_subid(relation) != 0;
        permanent && (pg_sys::wal_level >= pg_sys::WalLevel::WAL_LEVEL_REPLICA as i32 || !new_file)
    }
}

#[cfg(any(feature = "pg14", feature = "pg15"))]
unsafe fn first_locator_subid(relation: pg_sys::Relation) -> pg_sys::SubTransactionId {
    // SAFETY: the relation is open.
    unsafe { (*relation).rd_firstRelfilenodeSubid }
}

#[cfg(not(any(feature = "pg14", feature = "pg15")))]
unsafe fn first_locator_subid(relation: pg_sys::Relation) -> pg_sys::SubTransactionId {
    // SAFETY: the relation is open.
    unsafe { (*relation).rd_firstRelfilelocatorSubid }
}

/// The storage manager's handle of a relation.
///
/// # Safety
/// The relation is open. The handle is good until the next call that may take in invalidations.
pub unsafe fn smgr(relation: pg_sys::Relation) -> pg_sys::SMgrRelation {
    // SAFETY: the caller's promise.
    unsafe { pg_sys::RelationGetSmgr(relation) }
}

/// Adds a page of zeroes to a relation and returns it pinned and locked exclusively.
///
/// # Safety
/// The relation is open.
#[cfg(any(feature = "pg14", feature = "pg15"))]
pub unsafe fn extend_relation(relation: pg_sys::Relation) -> pg_sys::Buffer {
    // SAFETY: the caller's promise. InvalidBlockNumber asks for a new page (P_NEW); the lock keeps
    // two backends from adding the same one.
    unsafe {
        pg_sys::LockRelationForExtension(relation, pg_sys::ExclusiveLock as pg_sys::LOCKMODE);
        let buffer = pg_sys::ReadBuffer(relation, pg_sys::InvalidBlockNumber);
        pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_EXCLUSIVE as i32);
        pg_sys::UnlockRelationForExtension(relation, pg_sys::ExclusiveLock as pg_sys::LOCKMODE);
        buffer
    }
}

/// Adds a page of zeroes to a relation and returns it pinned and locked exclusively.
///
/// # Safety
/// The relation is open.
#[cfg(not(any(feature = "pg14", feature = "pg15")))]
pub unsafe fn extend_relation(relation: pg_sys::Relation) -> pg_sys::Buffer {
    let target = pg_sys::BufferManagerRelation {
        rel: relation,
        ..Default::default()
    };
    // SAFETY: the caller's promise.
    unsafe {
        pg_sys::ExtendBufferedRel(
            target,
            pg_sys::ForkNumber::MAIN_FORKNUM,
            core::ptr::null_mut(),
            pg_sys::ExtendBufferedFlags::EB_LOCK_FIRST,
        )
    }
}

/// Waits as `vacuum_cost_delay` asks.
///
/// # Safety
/// No lock on a page is held.
pub unsafe fn vacuum_delay_point() {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        pg_sys::vacuum_delay_point();
        #[cfg(feature = "pg18")]
        pg_sys::vacuum_delay_point(false);
    }
}

/// Whether a vacuum of this index's table may take the strongest lock for a moment, to give space
/// back: not if the table's option `vacuum_truncate` forbids it, nor while several processes work,
/// as such a lock needs a transaction id then.
///
/// # Safety
/// The index is open, and its table is locked.
pub unsafe fn vacuum_may_truncate(index: pg_sys::Relation) -> bool {
    // SAFETY: the caller's promise. The options are null or those of a table.
    unsafe {
        if pg_sys::IsInParallelMode() {
            return false;
        }
        let table = (*(*index).rd_index).indrelid;
        let table = pg_sys::table_open(table, pg_sys::NoLock as pg_sys::LOCKMODE);
        let options = (*table).rd_options.cast::<pg_sys::StdRdOptions>().as_ref();
        #[cfg(not(feature = "pg18"))]
        let may = options.is_none_or(|options| options.vacuum_truncate);
        #[cfg(feature = "pg18")]
        let may = options
            .filter(|options| options.vacuum_truncate_set)
            .map_or(pg_sys::vacuum_truncate, |options| options.vacuum_truncate);
        pg_sys::table_close(table, pg_sys::NoLock as pg_sys::LOCKMODE);
        may
    }
}

/// Waits for a moment, as a vacuum does between its attempts to lock a table so strongly that it
/// may cut off the table's end.
///
/// # Safety
/// No lock on a page is held.
pub unsafe fn vacuum_truncate_nap() {
    #[cfg(feature = "pg14")]
    use pg_sys::WaitEventTimeout::WAIT_EVENT_PG_SLEEP as REASON;
    #[cfg(not(feature = "pg14"))]
    use pg_sys::WaitEventTimeout::WAIT_EVENT_VACUUM_TRUNCATE as REASON;
    /// VACUUM_TRUNCATE_LOCK_WAIT_INTERVAL of the server, in milliseconds.
    const INTERVAL: core::ffi::c_long = 50;
    let events = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
    // SAFETY: the caller's promise; a backend's latch is its own.
    unsafe {
        pg_sys::WaitLatch(pg_sys::MyLatch, events as i32, INTERVAL, REASON);
        pg_sys::ResetLatch(pg_sys::MyLatch);
    }
    pgrx::check_for_interrupts!();
}

/// Whether the server asks for an index's rows (`ambulkdelete`) only to learn which it has: for the
/// last phase of CREATE INDEX CONCURRENTLY and REINDEX CONCURRENTLY. An index that is not valid is
/// vacuumed as well, in a vacuum, with what that has found dead.
///
/// # Safety
/// The index is open.
pub unsafe fn is_validating(index: pg_sys::Relation) -> bool {
    // SAFETY: the caller's promise. A backend has its entry from its start to its end, and changes
    // these flags alone.
    unsafe {
        let in_vacuum = u32::from((*pg_sys::MyProc).statusFlags) & pg_sys::PROC_IN_VACUUM != 0;
        !(*(*index).rd_index).indisvalid && !in_vacuum
    }
}

/// Registers data of a page for the log record under way.
///
/// # Safety
/// Between `XLogBeginInsert` and `XLogInsert`; the data lives until then.
pub unsafe fn xlog_register_buffer_data(block_id: u8, data: &[u8]) {
    // SAFETY: the caller's promise; the server only reads.
    unsafe {
        pg_sys::XLogRegisterBufData(block_id, data.as_ptr().cast_mut().cast(), data.len() as _)
    }
}

/// Notes the log position that a page's last change has (`PageSetLSN`): two halves, the upper
/// first.
pub fn page_set_lsn(page: &mut [u8; pg_sys::BLCKSZ as usize], lsn: pg_sys::XLogRecPtr) {
    page[..4].copy_from_slice(&((lsn >> 32) as u32).to_ne_bytes());
    page[4..8].copy_from_slice(&(lsn as u32).to_ne_bytes());
}

/// Logs new pages whole, but for their holes, and notes the log position on them.
///
/// # Safety
/// The relation is open; `blocks` and `pages` are equally long, and not longer than one record
/// allows.
pub unsafe fn log_new_pages(
    relation: pg_sys::Relation,
    fork: pg_sys::ForkNumber::Type,
    blocks: &[pg_sys::BlockNumber],
    pages: &mut [[u8; pg_sys::BLCKSZ as usize]],
) {
    let mut starts: Vec<_> = pages
        .iter_mut()
        .map(|page| page.as_mut_ptr().cast())
        .collect();
    // SAFETY: the caller's promise; the server does not change the block numbers.
    unsafe {
        #[cfg(any(feature = "pg14", feature = "pg15"))]
        let file = &raw mut (*relation).rd_node;
        #[cfg(not(any(feature = "pg14", feature = "pg15")))]
        let file = &raw mut (*relation).rd_locator;
        let count = blocks.len() as core::ffi::c_int;
        pg_sys::log_newpages(
            file,
            fork,
            count,
            blocks.as_ptr().cast_mut(),
            starts.as_mut_ptr(),
            true,
        );
    }
}

/// Reads from a temporary file exactly what is asked for, or raises an error.
///
/// # Safety
/// The file is open.
pub unsafe fn buf_file_read_exact(file: *mut pg_sys::BufFile, bytes: &mut [u8]) {
    // SAFETY: the caller's promise; there is room for as many bytes.
    unsafe {
        #[cfg(not(any(feature = "pg14", feature = "pg15")))]
        pg_sys::BufFileReadExact(file, bytes.as_mut_ptr().cast(), bytes.len());
        #[cfg(any(feature = "pg14", feature = "pg15"))]
        {
            let read = pg_sys::BufFileRead(file, bytes.as_mut_ptr().cast(), bytes.len());
            if read != bytes.len() {
                super::errors::UserError::new(
                    PgSqlErrorCode::ERRCODE_IO_ERROR,
                    "could not read a temporary file of an index build",
                )
                .detail(format!("Got {read} of {} bytes.", bytes.len()))
                .raise();
            }
        }
    }
}

/// Counts a search of an index in the statistics (`pgstat_count_index_scan`), and from version 18
/// on in what EXPLAIN ANALYZE shows.
///
/// # Safety
/// The scan is one that the server has begun, of an open index.
pub unsafe fn count_index_scan(scan: pg_sys::IndexScanDesc) {
    // SAFETY: the caller's promise; without statistics for it the relation has none to count in.
    unsafe {
        let relation = (*scan).indexRelation;
        #[cfg(feature = "pg18")]
        if let Some(instrument) = (*scan).instrument.as_mut() {
            instrument.nsearches += 1;
        }
        if let Some(statistics) = statistics_of(relation) {
            #[cfg(any(feature = "pg14", feature = "pg15"))]
            {
                statistics.t_counts.t_numscans += 1;
            }
            #[cfg(not(any(feature = "pg14", feature = "pg15")))]
            {
                statistics.counts.numscans += 1;
            }
        }
    }
}

/// Whether bitmap scans that need no column skip the rows of pages that are all visible, although
/// VACUUM may have removed a row since its address came into the bitmap. The server did so until
/// the minor releases of May 2025.
pub fn bitmap_scans_trust_visibility_map() -> bool {
    static ANSWER: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *ANSWER.get_or_init(|| {
        // SAFETY: a setting that always exists; its text is read at once.
        let version = unsafe {
            let text = pg_sys::GetConfigOption(c"server_version_num".as_ptr(), false, false);
            core::ffi::CStr::from_ptr(text).to_str().ok()
        };
        let version: u32 = version.and_then(|text| text.parse().ok()).unwrap_or(0);
        match (version / 10_000, version % 10_000) {
            (14, minor) => minor < 18,
            (15, minor) => minor < 13,
            (16, minor) => minor < 9,
            (17, minor) => minor < 5,
            _ => false,
        }
    })
}

/// Whether a snapshot sees the rows of one moment (`IsMVCCSnapshot`).
///
/// # Safety
/// Null, as in bitmap scans' descriptors, or a snapshot.
pub unsafe fn is_mvcc_snapshot(snapshot: pg_sys::Snapshot) -> bool {
    // SAFETY: the caller's promise.
    unsafe { snapshot.as_ref() }.is_some_and(|snapshot| {
        snapshot.snapshot_type == pg_sys::SnapshotType::SNAPSHOT_MVCC
            || snapshot.snapshot_type == pg_sys::SnapshotType::SNAPSHOT_HISTORIC_MVCC
    })
}

/// A column of a row's description, counted from 0 (`TupleDescAttr`).
///
/// # Safety
/// The descriptor has such a column; the result lives as long as it.
pub unsafe fn attribute(
    descriptor: pg_sys::TupleDesc,
    column: usize,
) -> *const pg_sys::FormData_pg_attribute {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        return (*descriptor).attrs.as_ptr().add(column);
        #[cfg(feature = "pg18")]
        return pg_sys::TupleDescAttr(descriptor, column as i32);
    }
}

/// The number of elements that an array expression is expected to have.
///
/// # Safety
/// The planner's state and an expression of it.
pub unsafe fn estimate_array_length(
    root: *mut pg_sys::PlannerInfo,
    array: *mut pg_sys::Node,
) -> f64 {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(any(feature = "pg17", feature = "pg18"))]
        return pg_sys::estimate_array_length(root, array);
        #[cfg(not(any(feature = "pg17", feature = "pg18")))]
        {
            let _ = root;
            f64::from(pg_sys::estimate_array_length(array))
        }
    }
}

/// A memory context for little, below the current one.
///
/// # Safety
/// The caller deletes it, or leaves that to the current context's end.
pub unsafe fn small_context(name: &'static core::ffi::CStr) -> pg_sys::MemoryContext {
    // SAFETY: the name lives for ever, as the server asks for.
    unsafe {
        pg_sys::AllocSetContextCreateInternal(
            pg_sys::CurrentMemoryContext,
            name.as_ptr(),
            pg_sys::ALLOCSET_SMALL_MINSIZE as usize,
            pg_sys::ALLOCSET_SMALL_INITSIZE as usize,
            pg_sys::ALLOCSET_SMALL_MAXSIZE as usize,
        )
    }
}

/// The transaction that made an index's catalogue entry.
///
/// # Safety
/// The relation is an open index.
pub unsafe fn creation_xid(index: pg_sys::Relation) -> pg_sys::TransactionId {
    // SAFETY: the caller's promise; the header of the entry lies before its data.
    unsafe { pg_sys::submodules::htup::HeapTupleHeaderGetXmin((*(*index).rd_indextuple).t_data) }
}

/// The number of the transaction among those of this backend.
pub fn local_transaction() -> u32 {
    // SAFETY: a backend has its entry from its start to its end, and changes this part alone.
    unsafe {
        #[cfg(any(feature = "pg14", feature = "pg15", feature = "pg16"))]
        return (*pg_sys::MyProc).lxid;
        #[cfg(not(any(feature = "pg14", feature = "pg15", feature = "pg16")))]
        return (*pg_sys::MyProc).vxid.lxid;
    }
}

/// The number of a relation's file (`relfilenode`).
///
/// # Safety
/// The relation is open.
pub unsafe fn file_number(relation: pg_sys::Relation) -> u32 {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(any(feature = "pg14", feature = "pg15"))]
        return (*relation).rd_node.relNode.to_u32();
        #[cfg(not(any(feature = "pg14", feature = "pg15")))]
        return (*relation).rd_locator.relNumber.to_u32();
    }
}

/// Pins a page of the main fork in the buffer where it was once; false if it is not there now.
/// It is counted in the statistics as any page found in the cache, which the server leaves to its
/// other function for reading.
///
/// # Safety
/// The relation is open.
pub unsafe fn read_recent_buffer(
    relation: pg_sys::Relation,
    block: pg_sys::BlockNumber,
    buffer: pg_sys::Buffer,
) -> bool {
    let fork = pg_sys::ForkNumber::MAIN_FORKNUM;
    // SAFETY: the caller's promise; the server compares the buffer's tag under its lock.
    unsafe {
        #[cfg(any(feature = "pg14", feature = "pg15"))]
        let found = pg_sys::ReadRecentBuffer((*relation).rd_node, fork, block, buffer);
        #[cfg(not(any(feature = "pg14", feature = "pg15")))]
        let found = pg_sys::ReadRecentBuffer((*relation).rd_locator, fork, block, buffer);
        if found && let Some(statistics) = statistics_of(relation) {
            #[cfg(any(feature = "pg14", feature = "pg15"))]
            {
                statistics.t_counts.t_blocks_fetched += 1;
                statistics.t_counts.t_blocks_hit += 1;
            }
            #[cfg(not(any(feature = "pg14", feature = "pg15")))]
            {
                statistics.counts.blocks_fetched += 1;
                statistics.counts.blocks_hit += 1;
            }
        }
        found
    }
}

/// Where a relation's use is counted; `None` if it is not (`pgstat_should_count_relation`).
///
/// # Safety
/// The relation is open, and nobody else holds a reference to its statistics.
unsafe fn statistics_of<'a>(
    relation: pg_sys::Relation,
) -> Option<&'a mut pg_sys::PgStat_TableStatus> {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(not(feature = "pg14"))]
        if (*relation).pgstat_info.is_null() && (*relation).pgstat_enabled {
            pg_sys::pgstat_assoc_relation(relation);
        }
        (*relation).pgstat_info.as_mut()
    }
}

/// Begins a scan of an index and its table.
///
/// # Safety
/// Both relations are open and stay so, as does the snapshot, until the scan ends.
pub unsafe fn index_beginscan(
    table: pg_sys::Relation,
    index: pg_sys::Relation,
    snapshot: pg_sys::Snapshot,
    keys: i32,
    order_bys: i32,
) -> pg_sys::IndexScanDesc {
    // SAFETY: the caller's promise. Since version 18 the scan may count its index searches.
    unsafe {
        #[cfg(feature = "pg18")]
        let scan = pg_sys::index_beginscan(
            table,
            index,
            snapshot,
            core::ptr::null_mut(),
            keys,
            order_bys,
        );
        #[cfg(not(feature = "pg18"))]
        let scan = pg_sys::index_beginscan(table, index, snapshot, keys, order_bys);
        scan
    }
}

/// Sets a `search_path` of safe schemas until the level of settings ends, as the server does since
/// version 17 where it runs the expressions of indexes.
pub fn restrict_search_path() {
    #[cfg(any(feature = "pg17", feature = "pg18"))]
    // SAFETY: changes a setting of this backend.
    unsafe {
        pg_sys::RestrictSearchPath()
    }
}

/// Whether a unique index takes NULLs for equal (`NULLS NOT DISTINCT`, from version 15 on).
pub fn nulls_not_distinct(index: &pg_sys::FormData_pg_index) -> bool {
    #[cfg(feature = "pg14")]
    {
        let _ = index;
        false
    }
    #[cfg(not(feature = "pg14"))]
    index.indnullsnotdistinct
}

/// A segment of shared memory that all of the server's processes find under a name; the first one
/// makes it and calls `initialize`, while all others wait. It stays mapped as long as the process
/// lives, and lives as long as the server. Raises an error if there is no memory for it.
///
/// Before version 17 the server has no such names. There a handle of the segment lies in the main
/// shared memory, of which the server keeps a little for whoever comes after its start, as
/// `contrib/pg_prewarm` uses it.
///
/// # Safety
/// In a transaction; the size and what initializes are the same in all processes.
#[cfg(any(feature = "pg14", feature = "pg15", feature = "pg16"))]
pub unsafe fn named_segment(
    name: &'static core::ffi::CStr,
    size: usize,
    initialize: unsafe extern "C-unwind" fn(*mut core::ffi::c_void),
) -> *mut core::ffi::c_void {
    /// The place of `AddinShmemInitLock` in the server's array (lwlocknames.txt).
    const ADDIN_SHMEM_INIT_LOCK: usize = 21;
    // SAFETY: the caller's promise. Errors release the lock; the handle is written last, so that
    // one in the midst leaves it as it was, and the server drops a segment that is not pinned.
    unsafe {
        let lock = &raw mut (*pg_sys::MainLWLockArray.add(ADDIN_SHMEM_INIT_LOCK)).lock;
        pg_sys::LWLockAcquire(lock, pg_sys::LWLockMode::LW_EXCLUSIVE);
        let mut found = false;
        let size_of_handle = size_of::<pg_sys::dsm_handle>();
        let handle = pg_sys::ShmemInitStruct(name.as_ptr(), size_of_handle, &mut found)
            .cast::<pg_sys::dsm_handle>();
        if !found {
            *handle = 0;
        }
        let segment = match *handle {
            // DSM_HANDLE_INVALID.
            0 => {
                let segment = pg_sys::dsm_create(size, 0);
                initialize(pg_sys::dsm_segment_address(segment));
                pg_sys::dsm_pin_segment(segment);
                *handle = pg_sys::dsm_segment_handle(segment);
                segment
            }
            handle => pg_sys::dsm_attach(handle),
        };
        if segment.is_null() {
            super::errors::UserError::new(
                PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
                "could not map a segment of shared memory",
            )
            .detail("It has been made since the server started, and has gone.")
            .raise();
        }
        pg_sys::dsm_pin_mapping(segment);
        pg_sys::LWLockRelease(lock);
        pg_sys::dsm_segment_address(segment)
    }
}

/// A segment of shared memory that all of the server's processes find under a name; the first one
/// makes it and calls `initialize`, while all others wait. It stays mapped as long as the process
/// lives, and lives as long as the server. Raises an error if there is no memory for it.
///
/// # Safety
/// In a transaction; the size and what initializes are the same in all processes.
#[cfg(any(feature = "pg17", feature = "pg18"))]
pub unsafe fn named_segment(
    name: &'static core::ffi::CStr,
    size: usize,
    initialize: unsafe extern "C-unwind" fn(*mut core::ffi::c_void),
) -> *mut core::ffi::c_void {
    let mut found = false;
    // SAFETY: the caller's promise.
    unsafe { pg_sys::GetNamedDSMSegment(name.as_ptr(), size, Some(initialize), &mut found) }
}
