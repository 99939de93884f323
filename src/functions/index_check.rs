//! Verification of an index: `neardup_index_check`.
use neardup_blocktree::check::CheckStats;
use neardup_blocktree::key::{Key, Tid};
use pgrx::{PgSqlErrorCode, pg_sys};

use crate::am::index::{Index, name, words_of};
use crate::am::inspection::each_visible_row;
use crate::am::keys::with_words;
use crate::pg::acl;
use crate::pg::errors::UserError;
use crate::pg::fmgr::{Call, export};
use crate::pg::locked_index::LockedIndex;

export! {
    guarded "neardup_index_check" => index_check;
}

/// `neardup_index_check(index, heap)`: checks every invariant of the tree and, with `heap`, that
/// each visible row of the table occurs once in each of its tables. The latter takes memory for
/// each row: 24 bytes and the words of the index's keys.
fn index_check(call: &mut Call) -> pg_sys::Datum {
    let (index, with_heap) = (call.oid(0), call.bool(1));
    // As amcheck's bt_index_parent_check: no writers meanwhile.
    let lock = pg_sys::ShareLock as pg_sys::LOCKMODE;
    acl::check_owner(index);
    let relations = LockedIndex::open(index, lock);
    let stats =
        with_words!(words_of(relations.index()), N => check_index::<N>(&relations, with_heap));
    let counts = [
        stats.rows,
        stats.null_rows,
        stats.entries,
        stats.leaves,
        stats.inner_pages,
    ];
    call.return_record(&counts.map(|count| Some(pg_sys::Datum::from(count as i64))))
}

/// A row of the index.
struct IndexedRow<const N: usize> {
    /// Its address, packed.
    tid: u64,
    /// Its fingerprint with its scope; `None` for a row of the nulls.
    key: Option<Key<N>>,
    /// Number of the tables that it was found in so far, and the last of them.
    tables: u16,
    last: u16,
}

fn check_index<const N: usize>(relations: &LockedIndex, with_heap: bool) -> CheckStats {
    let index = Index::<N>::open(relations.index());
    let mut rows: Vec<IndexedRow<N>> = Vec::new();
    let null_table = index.block_layout.null_table();
    let mut sorted = false;
    let stats = index.or_corrupt(index.tree().check(&index.block_layout, |table, tid, key| {
        if !with_heap {
            return;
        }
        let tid = tid.packed();
        if rows.try_reserve(1).is_err() {
            UserError::out_of_memory().raise();
        }
        if table == 0 {
            rows.push(IndexedRow {
                tid,
                key: Some(*key),
                tables: 1,
                last: 0,
            });
            return;
        }
        if !sorted {
            rows.sort_unstable_by_key(|row| row.tid);
            if let Some(pair) = rows.windows(2).find(|pair| pair[0].tid == pair[1].tid) {
                damaged(
                    relations,
                    pair[0].tid,
                    "stands in a table of the index twice",
                );
            }
            sorted = true;
        }
        if table == null_table {
            rows.push(IndexedRow {
                tid,
                key: None,
                tables: 0,
                last: 0,
            });
        } else if let Ok(i) = rows.binary_search_by_key(&tid, |row| row.tid) {
            if rows[i].last == table {
                damaged(relations, tid, "stands in a table of the index twice");
            }
            if rows[i].key == Some(*key) {
                rows[i].tables += 1;
                rows[i].last = table;
            }
        }
    }));
    if with_heap {
        rows.sort_unstable_by_key(|row| row.tid);
        check_heap(relations, &index, &rows);
    }
    stats
}

/// Checks that each row of the table that a new snapshot sees is among those of the index.
fn check_heap<const N: usize>(relations: &LockedIndex, index: &Index<N>, rows: &[IndexedRow<N>]) {
    let tables = index.block_layout.null_table();
    each_visible_row(relations, index, &mut |tid, key| {
        let tid = tid.packed();
        let found = rows.binary_search_by_key(&tid, |row| row.tid);
        let error = match found.map(|at| &rows[at]) {
            Err(_) => "is missing in the index",
            Ok(row) if row.key != key => "has another fingerprint in the index",
            Ok(row) if key.is_some() && row.tables != tables => {
                "is missing in a table of the index"
            }
            Ok(_) => return,
        };
        damaged(relations, tid, error);
    });
}

fn damaged(relations: &LockedIndex, packed: u64, error: &str) -> ! {
    let name = name(relations.index());
    let Tid { block, offset } = Tid::from_packed(packed);
    UserError::new(
        PgSqlErrorCode::ERRCODE_INDEX_CORRUPTED,
        format!(
            "index \"{}\" does not agree with its table",
            relations.index().shown()
        ),
    )
    .detail(format!("The row ({block},{offset}) {error}."))
    .hint(format!("REINDEX INDEX {name} rebuilds it from the table."))
    .raise()
}
