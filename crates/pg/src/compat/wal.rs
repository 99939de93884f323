//! Version differences in the write-ahead log, and positions of the log on pages.
use pgrx::pg_sys;

/// Id of the resource manager that replays generic log records.
pub const RM_GENERIC_ID: pg_sys::RmgrId = pg_sys::RmgrIds::RM_GENERIC_ID as pg_sys::RmgrId;

/// Adds data of the page that is registered as `block_id` to the log record that is being built.
///
/// # Safety
/// The call is between `XLogBeginInsert` and `XLogInsert`. `data` lives until `XLogInsert`.
pub unsafe fn xlog_register_buffer_data(block_id: u8, data: &[u8]) {
    // SAFETY: the caller's promise; the server only reads.
    unsafe {
        pg_sys::XLogRegisterBufData(block_id, data.as_ptr().cast_mut().cast(), data.len() as _)
    }
}

/// Writes the log position of a page's last change into the page's header (`PageSetLSN`), as two
/// words of 32 bits, the upper word first.
pub fn page_set_lsn(page: &mut [u8; pg_sys::BLCKSZ as usize], lsn: pg_sys::XLogRecPtr) {
    page[..4].copy_from_slice(&((lsn >> 32) as u32).to_ne_bytes());
    page[4..8].copy_from_slice(&(lsn as u32).to_ne_bytes());
}

/// Reads the log position of a page's last change from the page's header (`PageGetLSN`).
pub fn page_lsn(page: &[u8; pg_sys::BLCKSZ as usize]) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = *page;
    let [upper, lower] = [[a, b, c, d], [e, f, g, h]].map(u32::from_ne_bytes);
    u64::from(upper) << 32 | u64::from(lower)
}

/// Writes a log record that contains new pages of a relation, except for the unused middle of each
/// page, and stores the record's log position in the pages.
///
/// # Safety
/// The relation is open. `blocks` has the block number of each of `pages`. There are not more pages
/// than one log record may contain.
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
        #[cfg(feature = "pg15")]
        let file = &raw mut (*relation).rd_node;
        #[cfg(not(feature = "pg15"))]
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
