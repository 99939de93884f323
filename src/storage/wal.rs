//! Changing pages and logging the changes: all log records of the index but those of a build, which
//! `bulk.rs` writes.
//!
//! All records are of the server's generic kind (access/generic_xlog.h), which every server can
//! replay without this extension: for each page a list of (offset u16, length u16, bytes).
use neardup_blocktree::page::Page;
use neardup_blocktree::store::{PAGES_PER_RECORD, PageChange};
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

const _: () = assert!(PAGES_PER_RECORD == pg_sys::MAX_GENERIC_XLOG_PAGES as usize);

/// The change of a page, as `generic_redo` reads it.
struct Fragments {
    bytes: [u8; LONGEST],
    length: usize,
}

impl Fragments {
    fn of(change: &PageChange<'_, WritePage<'_>>) -> Self {
        let (mut bytes, mut length) = ([0; LONGEST], 0);
        let mut add = |more: &[u8]| {
            bytes[length..length + more.len()].copy_from_slice(more);
            length += more.len();
        };
        for patch in &change.patches {
            add(&(patch.offset as u16).to_ne_bytes());
            add(&(patch.bytes.len() as u16).to_ne_bytes());
            add(patch.bytes);
        }
        Fragments { bytes, length }
    }
}

/// Writes a few bytes of each of some pages and logs just those, by one record.
///
/// `GenericXLogFinish` would find the same fragments by copying the pages and comparing them byte
/// by byte, which costs ten times the rest of an insert. So the record is written here, in the form
/// that `generic_redo` reads. Most of a record is not the change but its header and the names of
/// file and block: those of one file follow each other, so that it is named once.
pub fn write_logged(changes: &mut [PageChange<'_, WritePage<'_>>], logged: bool) {
    assert!(changes.len() <= PAGES_PER_RECORD);
    let mut fragments: [Option<Fragments>; PAGES_PER_RECORD] = [const { None }; PAGES_PER_RECORD];
    if logged {
        for (fragments, change) in fragments.iter_mut().zip(&*changes) {
            *fragments = Some(Fragments::of(change));
        }
    }
    // SAFETY: the buffers are pinned and locked exclusively. Between the first changed byte and the
    // end of the critical section nothing of ours can fail; an error of the server there is a
    // PANIC, as for every access method. The fragments live until XLogInsert has copied them.
    unsafe {
        pg_sys::CritSectionCount += 1;
        if logged {
            XLogBeginInsert();
        }
        for (number, change) in changes.iter_mut().enumerate() {
            let buffer = change.page.buffer();
            let target = change.page.page_mut();
            for patch in &change.patches {
                target[patch.offset..patch.offset + patch.bytes.len()].copy_from_slice(patch.bytes);
            }
            MarkBufferDirty(buffer);
            if let Some(fragments) = &fragments[number] {
                let bytes = &fragments.bytes[..fragments.length];
                XLogRegisterBuffer(number as u8, buffer, pg_sys::REGBUF_STANDARD as u8);
                compat::xlog_register_buffer_data(number as u8, bytes);
            }
        }
        if logged {
            let lsn = XLogInsert(compat::RM_GENERIC_ID, 0);
            for change in changes {
                compat::page_set_lsn(change.page.page_mut(), lsn);
            }
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
