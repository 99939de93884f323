//! Looking inside an index, for anyone who has doubts: `neardup_index_check`.
use core::ffi::c_void;

use neardup_blocktree::check::CheckStats;
use neardup_blocktree::key::{Key, Tid};
use pgrx::{PgSqlErrorCode, pg_guard, pg_sys};

use crate::am::bands;
use crate::am::index::{Index, name, words_of};
use crate::am::keys::with_words;
use crate::pg::acl;
use crate::pg::errors::UserError;
use crate::pg::fmgr::{Call, export};
use crate::pg::relation::LockedIndex;
use crate::pg::security_context::AsOwner;
use crate::pg::tid::tid_of;

export! {
    guarded "neardup_index_check" => index_check;
}

/// `neardup_index_check(index, heap)`: every invariant of the tree and, with `heap`, that each
/// visible row of the table stands once in each of its tables. For the latter it takes memory for
/// each row: 24 bytes and the words of the index's keys.
fn index_check(call: &mut Call) -> pg_sys::Datum {
    let with_heap = call.arg(1).value() != 0;
    // As amcheck's bt_index_parent_check: nobody writes meanwhile.
    let lock = pg_sys::ShareLock as pg_sys::LOCKMODE;
    // SAFETY: the server passes an OID; what it names is checked and stays locked and open until
    // the end of this function.
    unsafe {
        let index = pg_sys::Oid::from(call.arg(0).value() as u32);
        acl::check_owner(index);
        let relations = LockedIndex::open(index, lock);
        let stats = with_words!(words_of(relations.index()), N => {
            check_index::<N>(&relations, with_heap)
        });
        let counts = [
            stats.rows,
            stats.null_rows,
            stats.entries,
            stats.leaves,
            stats.inner_pages,
        ];
        call.return_record(&counts.map(|count| Some(pg_sys::Datum::from(count as i64))))
    }
}

/// A row as the index has it.
struct IndexedRow<const N: usize> {
    /// Its address, packed.
    tid: u64,
    /// Its fingerprint with its scope; `None` for a row of the nulls.
    key: Option<Key<N>>,
    /// The tables that it stands in, as far as they have been seen, and the last of them.
    tables: u16,
    last: u16,
}

unsafe fn check_index<const N: usize>(relations: &LockedIndex, with_heap: bool) -> CheckStats {
    let index = Index::<N>::open(relations.index());
    let mut rows: Vec<IndexedRow<N>> = Vec::new();
    let null_table = index.design.null_table();
    let mut sorted = false;
    let stats = index.or_corrupt(index.tree().check(&index.design, |table, tid, key| {
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
        // SAFETY: as above.
        unsafe { check_heap(&index, relations, rows) };
    }
    stats
}

/// What the scan of the table compares with.
struct Comparison<'a, const N: usize> {
    relations: &'a LockedIndex,
    opened: &'a Index<'a, N>,
    /// The number of tables.
    tables: u16,
    rows: Vec<IndexedRow<N>>,
}

/// Checks that each row of the table that a new snapshot sees is among those of the index.
unsafe fn check_heap<const N: usize>(
    index: &Index<N>,
    relations: &LockedIndex,
    rows: Vec<IndexedRow<N>>,
) {
    // SAFETY: both relations are open and locked; the scan ends within this function, and so does
    // the snapshot's registration.
    unsafe {
        let _as_owner = AsOwner::of(relations.table());
        let opened = index;
        let tables = index.design.null_table();
        let (heap, index) = (relations.table().raw(), relations.index().raw());
        let snapshot = pg_sys::RegisterSnapshot(pg_sys::GetTransactionSnapshot());
        // As amcheck: a snapshot from before the build may see rows that the index left out.
        relations.check_age(snapshot);
        let scan =
            pg_sys::table_beginscan_strat(heap, snapshot, 0, core::ptr::null_mut(), true, true);
        // As amcheck does it: with a snapshot of our own, and no constraint to check.
        let info = pg_sys::BuildIndexInfo(index);
        (*info).ii_Concurrent = true;
        (*info).ii_Unique = false;
        (*info).ii_ExclusionOps = core::ptr::null_mut();
        (*info).ii_ExclusionProcs = core::ptr::null_mut();
        (*info).ii_ExclusionStrats = core::ptr::null_mut();
        let mut comparison = Comparison {
            relations,
            opened,
            tables,
            rows,
        };
        pg_sys::table_index_build_scan(
            heap,
            index,
            info,
            true,
            false,
            Some(compare_row::<N>),
            (&raw mut comparison).cast(),
            scan,
        );
        pg_sys::UnregisterSnapshot(snapshot);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn compare_row<const N: usize>(
    _index: pg_sys::Relation,
    tid: pg_sys::ItemPointer,
    values: *mut pg_sys::Datum,
    isnull: *mut bool,
    _tuple_is_alive: bool,
    state: *mut c_void,
) {
    // SAFETY: the server passes a row and what `check_heap` gave it.
    unsafe {
        let comparison = &*state.cast::<Comparison<N>>();
        let opened = comparison.opened;
        let (key, has_fingerprint) = if opened.layout.signatures {
            bands::row_key(opened, values, isnull)
        } else {
            opened.layout.key::<N>(opened.relation(), values, isnull)
        };
        let key = has_fingerprint.then_some(key);
        let tid = tid_of(*tid).packed();
        let what = match comparison.rows.binary_search_by_key(&tid, |row| row.tid) {
            Err(_) => "is missing in the index",
            Ok(i) if comparison.rows[i].key != key => "has another fingerprint in the index",
            Ok(i) if key.is_some() && comparison.rows[i].tables != comparison.tables => {
                "is missing in a table of the index"
            }
            Ok(_) => return,
        };
        damaged(comparison.relations, tid, what);
    }
}

fn damaged(relations: &LockedIndex, packed: u64, what: &str) -> ! {
    let name = name(relations.index());
    let Tid { block, offset } = Tid::from_packed(packed);
    UserError::new(
        PgSqlErrorCode::ERRCODE_INDEX_CORRUPTED,
        format!("index {name} does not agree with its table"),
    )
    .detail(format!("The row ({block},{offset}) {what}."))
    .hint(format!(
        "REINDEX INDEX {name} makes it anew from the table."
    ))
    .raise()
}
