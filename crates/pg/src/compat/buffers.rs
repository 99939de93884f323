//! Version differences in buffers, temporary files and the statistics of a relation's pages.
use pgrx::pg_sys;

/// Adds a page of zeroes to the main fork of a relation. Returns the page's buffer, pinned and
/// locked exclusively.
///
/// # Safety
/// The relation is open.
#[cfg(feature = "pg15")]
pub unsafe fn extend_relation(relation: pg_sys::Relation) -> pg_sys::Buffer {
    // SAFETY: the caller's promise. InvalidBlockNumber requests a new page (P_NEW). The lock keeps
    // two backends from adding the same page.
    unsafe {
        pg_sys::LockRelationForExtension(relation, pg_sys::ExclusiveLock as pg_sys::LOCKMODE);
        let buffer = pg_sys::ReadBuffer(relation, pg_sys::InvalidBlockNumber);
        pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_EXCLUSIVE as i32);
        pg_sys::UnlockRelationForExtension(relation, pg_sys::ExclusiveLock as pg_sys::LOCKMODE);
        buffer
    }
}

/// Adds a page of zeroes to the main fork of a relation. Returns the page's buffer, pinned and
/// locked exclusively.
///
/// # Safety
/// The relation is open.
#[cfg(not(feature = "pg15"))]
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

/// Fills `bytes` from the current position of a temporary file. Raises an error if the file has
/// fewer bytes left.
///
/// # Safety
/// The file is open.
pub unsafe fn buf_file_read_exact(file: *mut pg_sys::BufFile, bytes: &mut [u8]) {
    // SAFETY: the caller's promise; `bytes` has room for this number of bytes.
    unsafe {
        #[cfg(not(feature = "pg15"))]
        pg_sys::BufFileReadExact(file, bytes.as_mut_ptr().cast(), bytes.len());
        #[cfg(feature = "pg15")]
        {
            let read = pg_sys::BufFileRead(file, bytes.as_mut_ptr().cast(), bytes.len());
            if read != bytes.len() {
                crate::errors::UserError::new(
                    pgrx::PgSqlErrorCode::ERRCODE_IO_ERROR,
                    "could not read a temporary file of an index build",
                )
                .detail(format!(
                    "Only {read} of {} bytes could be read.",
                    bytes.len()
                ))
                .raise();
            }
        }
    }
}

/// Pins a page of a relation's main fork if `buffer` still holds the page. Returns whether the page
/// is pinned. Counts a cache hit in the relation's statistics, because `ReadRecentBuffer` does not.
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
        #[cfg(feature = "pg15")]
        let found = pg_sys::ReadRecentBuffer((*relation).rd_node, fork, block, buffer);
        #[cfg(not(feature = "pg15"))]
        let found = pg_sys::ReadRecentBuffer((*relation).rd_locator, fork, block, buffer);
        if found && let Some(statistics) = statistics_of(relation) {
            #[cfg(feature = "pg15")]
            {
                statistics.t_counts.t_blocks_fetched += 1;
                statistics.t_counts.t_blocks_hit += 1;
            }
            #[cfg(not(feature = "pg15"))]
            {
                statistics.counts.blocks_fetched += 1;
                statistics.counts.blocks_hit += 1;
            }
        }
        found
    }
}

/// The statistics entry in which the server counts uses of a relation; `None` if it does not count
/// them for this relation (`pgstat_should_count_relation`).
///
/// # Safety
/// The relation is open, and no other reference to its statistics exists.
pub(super) unsafe fn statistics_of<'a>(
    relation: pg_sys::Relation,
) -> Option<&'a mut pg_sys::PgStat_TableStatus> {
    // SAFETY: the caller's promise.
    unsafe {
        if (*relation).pgstat_info.is_null() && (*relation).pgstat_enabled {
            pg_sys::pgstat_assoc_relation(relation);
        }
        (*relation).pgstat_info.as_mut()
    }
}
