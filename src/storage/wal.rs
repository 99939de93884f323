//! Changing pages and logging the changes: all log records of the index but those of a build, which
//! `bulk.rs` writes.
//!
//! All records are of the server's generic kind (access/generic_xlog.h), which every server can
//! replay without this extension: for each page a list of (offset u16, length u16, bytes).
use neardup_blocktree::page::Page;
use neardup_blocktree::store::Patch;
use pgrx::pg_sys;

use super::page_guard::WritePage;
use crate::pg::compat;

unsafe extern "C-unwind" {
    // What an append calls inside its critical section, where an error is a PANIC: nothing comes
    // back that the wrapper which pgrx puts around C functions would have to catch.
    fn XLogBeginInsert();
    fn XLogRegisterBuffer(block: u8, buffer: pg_sys::Buffer, flags: u8);
    fn XLogInsert(manager: pg_sys::RmgrId, info: u8) -> pg_sys::XLogRecPtr;
    fn MarkBufferDirty(buffer: pg_sys::Buffer);
}

/// Bytes of the longest list of fragments that [`write_logged`] can log.
const LONGEST: usize = 160;

/// Writes a few bytes and logs just those.
///
/// `GenericXLogFinish` would find the same fragments by copying the page and comparing it byte by
/// byte, which costs ten times the rest of an insert. So the record is written here, in the form
/// that `generic_redo` reads.
pub fn write_logged(page: &mut WritePage<'_>, patches: &[Patch<'_>], logged: bool) {
    let mut fragments = [0u8; LONGEST];
    let mut length = 0;
    let mut add = |bytes: &[u8]| {
        fragments[length..length + bytes.len()].copy_from_slice(bytes);
        length += bytes.len();
    };
    if logged {
        for patch in patches {
            add(&(patch.offset as u16).to_ne_bytes());
            add(&(patch.bytes.len() as u16).to_ne_bytes());
            add(patch.bytes);
        }
    }
    let buffer = page.buffer();
    // SAFETY: the buffer is pinned and locked exclusively. Between the first changed byte and the
    // end of the critical section nothing of ours can fail; an error of the server there is a
    // PANIC, as for every access method. The fragments live until XLogInsert has copied them.
    unsafe {
        pg_sys::CritSectionCount += 1;
        if logged {
            XLogBeginInsert();
        }
        let target = page.page_mut();
        for patch in patches {
            target[patch.offset..patch.offset + patch.bytes.len()].copy_from_slice(patch.bytes);
        }
        MarkBufferDirty(buffer);
        if logged {
            XLogRegisterBuffer(0, buffer, pg_sys::REGBUF_STANDARD as u8);
            compat::xlog_register_buffer_data(0, &fragments[..length]);
            let lsn = XLogInsert(compat::RM_GENERIC_ID, 0);
            compat::page_set_lsn(page.page_mut(), lsn);
        }
        pg_sys::CritSectionCount -= 1;
    }
}

/// Changes pages together and logs the changes as one record.
pub fn change<const P: usize>(
    relation: pg_sys::Relation,
    pages: [&mut WritePage<'_>; P],
    edit: impl FnOnce([&mut Page; P]),
) {
    const { assert!(P <= pg_sys::MAX_GENERIC_XLOG_PAGES as usize) };
    // SAFETY: the buffers are pinned and locked exclusively, and different from each other, so that
    // the images are too; each has the size of a page and lives until GenericXLogFinish.
    unsafe {
        let state = pg_sys::GenericXLogStart(relation);
        let images = pages.each_ref().map(|page| {
            let flags = if page.is_new() {
                pg_sys::GENERIC_XLOG_FULL_IMAGE as i32
            } else {
                0
            };
            &mut *pg_sys::GenericXLogRegisterBuffer(state, page.buffer(), flags).cast::<Page>()
        });
        edit(images);
        pg_sys::GenericXLogFinish(state);
    }
    for page in pages {
        page.set_logged();
    }
}
