//! `aminsert`: one row into all tables.
use neardup_blocktree::key::{Position, Tid};
use pgrx::{pg_guard, pg_sys};

use super::state::{Index, Key, WORDS};

/// The address that the server passes, as the tree keeps it.
///
/// # Safety
/// The pointer is to a valid address.
pub unsafe fn tid_of(pointer: pg_sys::ItemPointer) -> Tid {
    // SAFETY: the caller's promise.
    let (block, offset) = pgrx::itemptr::item_pointer_get_both(unsafe { *pointer });
    Tid { block, offset }
}

/// The fingerprint in a datum of a type of 64 bits.
pub fn key_of(datum: pg_sys::Datum) -> Key {
    [datum.value() as u64]
}

/// Adds a row to the index. Several tables are changed one after the other; a crash in between
/// leaves entries of a row that no transaction committed, which VACUUM takes away.
#[pg_guard]
pub unsafe extern "C-unwind" fn insert(
    index: pg_sys::Relation,
    values: *mut pg_sys::Datum,
    isnull: *mut bool,
    heap_tid: pg_sys::ItemPointer,
    _heap: pg_sys::Relation,
    _check_unique: pg_sys::IndexUniqueCheck::Type,
    _index_unchanged: bool,
    _index_info: *mut pg_sys::IndexInfo,
) -> bool {
    // SAFETY: the server passes an open index of one column, and a value and flag for it.
    let (mut index, tid, fingerprint) = unsafe {
        (
            Index::open(index),
            tid_of(heap_tid),
            (!*isnull).then(|| key_of(*values)),
        )
    };
    let tree = index.tree();
    match fingerprint {
        None => {
            let table = index.design.null_table();
            index.sound(tree.insert(&Position {
                table,
                key: [0; WORDS],
                tid,
            }));
        }
        Some(fingerprint) => {
            for (table, permutation) in index.design.tables().iter().enumerate() {
                let key = permutation.permute(&fingerprint);
                index.sound(tree.insert(&Position {
                    table: table as u16,
                    key,
                    tid,
                }));
            }
        }
    }
    let root = tree.root();
    index.remember(root);
    false
}
