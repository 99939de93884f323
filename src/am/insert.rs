//! `aminsert`: one row into all tables.
use neardup_blocktree::key::{EntryKey, Key, Tid};
use pgrx::pg_sys;

use super::bands;
use super::index::{Index, words_of};
use super::keys::{Layout, with_words};
use crate::pg::rel::Rel;
use crate::pg::tid::tid_of;
use crate::registry;
use crate::storage::heap_fetch;

/// Adds a row to the index. Several tables are changed one after the other; a crash in between
/// leaves entries of a row that no transaction committed, which VACUUM takes away.
#[expect(clippy::too_many_arguments, reason = "the server's signature")]
pub unsafe fn insert(
    relation: pg_sys::Relation,
    values: *mut pg_sys::Datum,
    isnull: *mut bool,
    heap_tid: pg_sys::ItemPointer,
    heap: pg_sys::Relation,
    _check_unique: pg_sys::IndexUniqueCheck::Type,
    _index_unchanged: bool,
    _index_info: *mut pg_sys::IndexInfo,
) -> bool {
    // SAFETY: the server passes an open index, and a value and flag for each of its columns.
    unsafe {
        let index = Rel::new(relation);
        with_words!(words_of(index), N => {
            let index = Index::<N>::open_cached(index);
            let layout = index.layout;
            if layout.signatures {
                bands::insert(index, values, isnull, tid_of(*heap_tid));
            } else {
                let (key, has_fingerprint) = layout.key(index.relation(), values, isnull);
                insert_key(index, &key, has_fingerprint, tid_of(*heap_tid));
            }
            if registry::awaits((*relation).rd_id) {
                in_flight::<N>(&layout, heap, heap_tid, (*relation).rd_id, values, isnull);
            }
        });
    }
    false
}

/// Withdraws a row from those in flight: a search for near-duplicates finds it in the index
/// now.
///
/// # Safety
/// The row with these values has just been added to this index, whose layout it is.
unsafe fn in_flight<const N: usize>(
    layout: &Layout,
    heap: pg_sys::Relation,
    tid: pg_sys::ItemPointer,
    index: pg_sys::Oid,
    values: *const pg_sys::Datum,
    isnull: *const bool,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let column = layout.scope_columns;
        // The server may take a speculative insertion back, and then write the row without firing
        // the trigger again.
        if layout.balls || *isnull.add(column) || heap_fetch::is_speculative(heap, tid) {
            return;
        }
        let value = if layout.signatures {
            bands::with_signature(*values.add(column), registry::Value::of_signature)
        } else {
            let mut key: Key<N> = [0; N];
            layout.put_fingerprint(&mut key, *values.add(column));
            registry::Value::of_words(&key[layout.scope_words()..])
        };
        registry::written(index, &value);
    }
}

fn insert_key<const N: usize>(mut index: Index<N>, key: &Key<N>, has_fingerprint: bool, tid: Tid) {
    let tree = index.tree();
    if has_fingerprint {
        let positions = (index.design.tables().iter().enumerate()).map(|(table, permutation)| {
            let key = permutation.permute(key);
            EntryKey {
                table: table as u16,
                key,
                tid,
            }
        });
        index.or_corrupt(tree.prepare(positions.clone()));
        for position in positions {
            index.or_corrupt(tree.insert(&position));
        }
    } else {
        let table = index.design.null_table();
        index.or_corrupt(tree.insert(&EntryKey {
            table,
            key: *key,
            tid,
        }));
    }
    let root = tree.root();
    index.remember_root(root);
}
