//! Changes of index pages in shared buffers, and their records in the write-ahead log. `bulk.rs`
//! logs the pages of a new index.
//!
//! All records are of the server's generic kind (access/generic_xlog.h), which every server can
//! replay without this extension: for each page a list of (offset u16, length u16, bytes).
use neardup_blocktree::page::Page;
use neardup_blocktree::store::{PAGES_PER_RECORD, PageChange};
use pgrx::pg_sys;

use super::page_guard::WritePage;
use crate::compat;

unsafe extern "C-unwind" {
    // Calls that [`write_logged`] makes inside its critical section, where an error is a PANIC.
    // They never raise an error that pgrx's wrapper around C functions would have to catch.
    fn XLogBeginInsert();
    fn XLogRegisterBuffer(block: u8, buffer: pg_sys::Buffer, flags: u8);
    fn XLogInsert(manager: pg_sys::RmgrId, info: u8) -> pg_sys::XLogRecPtr;
    fn MarkBufferDirty(buffer: pg_sys::Buffer);
}

/// Maximum size in bytes of a list of changes ([`Fragments`]) that [`write_logged`] can log for one
/// page. A longer list is a bug, and panics.
const LONGEST: usize = 160;

const _: () = assert!(PAGES_PER_RECORD == pg_sys::MAX_GENERIC_XLOG_PAGES as usize);

/// List of the changes of one page, in the format of a generic log record, as the server's
/// `generic_redo` reads it.
struct Fragments {
    /// For each change its offset in the page, its length in bytes, and the new bytes.
    bytes: [u8; LONGEST],
    /// Number of bytes that are used.
    length: usize,
}

impl Fragments {
    fn from_change(change: &PageChange<'_, WritePage<'_>>) -> Self {
        let (mut bytes, mut length) = ([0; LONGEST], 0);
        for patch in &change.patches {
            bytes[length..length + 2].copy_from_slice(&(patch.offset as u16).to_ne_bytes());
            let size = patch.bytes.len();
            bytes[length + 2..length + 4].copy_from_slice(&(size as u16).to_ne_bytes());
            put(&mut bytes[length + 4..length + 4 + size], patch.bytes);
            length += 4 + size;
        }
        Fragments { bytes, length }
    }
}

/// Copies a few bytes to a slice of the same length. The `match` over the length makes the usual
/// lengths known to the compiler, which avoids calls that would take longer than the copy.
#[inline(always)]
fn put(target: &mut [u8], bytes: &[u8]) {
    match bytes.len() {
        4 => target[..4].copy_from_slice(&bytes[..4]),
        6 => target[..6].copy_from_slice(&bytes[..6]),
        8 => target[..8].copy_from_slice(&bytes[..8]),
        16 => target[..16].copy_from_slice(&bytes[..16]),
        _ => target.copy_from_slice(bytes),
    }
}

/// Writes the few bytes in `changes` to the pages that they belong to, and logs just these bytes in
/// one record. Writes no record if `logged` is false.
///
/// The server's own function, `GenericXLogFinish`, would find the changes by comparing copies of
/// the pages byte by byte. That takes ten times as long as all other work of an insert. So this
/// function makes the record itself, in the format that the server's `generic_redo` reads.
///
/// Most of a record is its header and the names of files and blocks. Blocks of one file are
/// registered one after the other, so the record names the file only once.
pub fn write_logged(changes: &mut [PageChange<'_, WritePage<'_>>], logged: bool) {
    assert!(changes.len() <= PAGES_PER_RECORD);
    let mut fragments: [Option<Fragments>; PAGES_PER_RECORD] = [const { None }; PAGES_PER_RECORD];
    // SAFETY: the buffers are pinned and locked exclusively. Between the first changed byte and
    // the end of the critical section nothing of ours can fail; an error of the server there is a
    // PANIC, as for every access method. The fragments live until XLogInsert has copied them. A
    // prefetch changes nothing.
    unsafe {
        // Prefetches the bytes to be changed on all pages at once, while the record is made.
        #[cfg(target_arch = "x86_64")]
        for change in &*changes {
            use core::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
            for patch in &change.patches {
                _mm_prefetch::<_MM_HINT_ET0>(
                    change.page.as_ptr().wrapping_add(patch.offset).cast(),
                );
            }
        }
        if logged {
            for (fragments, change) in fragments.iter_mut().zip(&*changes) {
                *fragments = Some(Fragments::from_change(change));
            }
        }
        pg_sys::CritSectionCount += 1;
        if logged {
            XLogBeginInsert();
        }
        for (number, change) in changes.iter_mut().enumerate() {
            let buffer = change.page.buffer();
            let target = change.page.page_mut();
            for patch in &change.patches {
                put(
                    &mut target[patch.offset..patch.offset + patch.bytes.len()],
                    patch.bytes,
                );
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

/// Returns whether the log record of the next change of a page will contain the whole page. With
/// `full_page_writes`, the first record after a checkpoint does. This is an estimate, because a
/// checkpoint may begin at any time.
pub fn logs_whole_page(page: &WritePage<'_>) -> bool {
    // SAFETY: the buffer is pinned and locked.
    unsafe { pg_sys::XLogCheckBufferNeedsBackup(page.buffer()) }
}

/// Changes `P` pages of `relation` by the function `edit`, and logs the changes in one record.
/// `edit` gets copies of the pages and changes the copies. After a crash, either all of the pages
/// are changed or none is.
pub fn change<const P: usize>(
    relation: pg_sys::Relation,
    pages: [&mut WritePage<'_>; P],
    edit: impl FnOnce([&mut Page; P]),
) {
    const { assert!(P <= pg_sys::MAX_GENERIC_XLOG_PAGES as usize) };
    // SAFETY: the buffers are pinned and locked exclusively. They differ from each other, so the
    // images do too. Each image has the size of a page and lives until GenericXLogFinish.
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
