//! Looking inside an index, for anyone who has doubts: `neardup_index_check`.
use core::ffi::c_void;

use neardup_blocktree::key::Tid;
use pgrx::{PgSqlErrorCode, pg_guard, pg_sys};

use crate::am::insert::{key_of, tid_of};
use crate::am::state::{Index, name};
use crate::pg::call::{Call, export};
use crate::pg::errors::UserError;
use crate::pg::relation::LockedIndex;

export! {
    guarded "neardup_index_check" => index_check;
}

/// A row as the index has it: its address, packed, and its fingerprint.
type IndexedRow = (u64, Option<u64>);

/// `neardup_index_check(index, heap)`: every invariant of the tree and, with `heap`, that each
/// visible row of the table stands in it once. Takes 24 bytes of memory a row for the latter.
fn index_check(call: &mut Call) -> pg_sys::Datum {
    let with_heap = call.arg(1).value() != 0;
    // As amcheck's bt_index_parent_check: nobody writes meanwhile.
    let lock = pg_sys::ShareLock as pg_sys::LOCKMODE;
    // SAFETY: the server passes an OID; what it names is checked and stays locked and open until
    // the end of this function.
    unsafe {
        let relations = LockedIndex::open(pg_sys::Oid::from(call.arg(0).value() as u32), lock);
        let index = Index::open(relations.index());
        let mut rows: Vec<IndexedRow> = Vec::new();
        let null_table = index.design.null_table();
        let stats = index.sound(index.tree().check(&index.design, |table, tid, key| {
            if with_heap && (table == 0 || table == null_table) {
                rows.push((tid.packed(), (table == 0).then_some(key[0])));
            }
        }));
        if with_heap {
            rows.sort_unstable();
            if let Some(pair) = rows.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                damaged(&relations, pair[0].0, "stands in the index twice");
            }
            check_heap(&relations, rows);
        }
        let counts = [
            stats.rows,
            stats.null_rows,
            stats.entries,
            stats.leaves,
            stats.inner_pages,
        ];
        call.return_record(&counts.map(|count| pg_sys::Datum::from(count as i64)))
    }
}

/// What the scan of the table compares with.
struct Comparison<'a> {
    relations: &'a LockedIndex,
    rows: Vec<IndexedRow>,
}

/// Checks that each row of the table that a new snapshot sees is among those of the index.
unsafe fn check_heap(relations: &LockedIndex, rows: Vec<IndexedRow>) {
    // SAFETY: both relations are open and locked; the scan ends within this function, and so does
    // the snapshot's registration.
    unsafe {
        let (heap, index) = (relations.table(), relations.index());
        let snapshot = pg_sys::RegisterSnapshot(pg_sys::GetTransactionSnapshot());
        let scan =
            pg_sys::table_beginscan_strat(heap, snapshot, 0, core::ptr::null_mut(), true, true);
        // As amcheck does it: with a snapshot of our own, and no constraint to check.
        let info = pg_sys::BuildIndexInfo(index);
        (*info).ii_Concurrent = true;
        (*info).ii_Unique = false;
        (*info).ii_ExclusionOps = core::ptr::null_mut();
        (*info).ii_ExclusionProcs = core::ptr::null_mut();
        (*info).ii_ExclusionStrats = core::ptr::null_mut();
        let mut comparison = Comparison { relations, rows };
        pg_sys::table_index_build_scan(
            heap,
            index,
            info,
            true,
            false,
            Some(compare_row),
            (&raw mut comparison).cast(),
            scan,
        );
        pg_sys::UnregisterSnapshot(snapshot);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn compare_row(
    _index: pg_sys::Relation,
    tid: pg_sys::ItemPointer,
    values: *mut pg_sys::Datum,
    isnull: *mut bool,
    _tuple_is_alive: bool,
    state: *mut c_void,
) {
    // SAFETY: the server passes a row and what `check_heap` gave it.
    unsafe {
        let comparison = &*state.cast::<Comparison>();
        let row = (tid_of(tid).packed(), (!*isnull).then(|| key_of(*values)[0]));
        match comparison.rows.binary_search_by_key(&row.0, |row| row.0) {
            Err(_) => damaged(comparison.relations, row.0, "is missing in the index"),
            Ok(i) if comparison.rows[i] != row => {
                damaged(
                    comparison.relations,
                    row.0,
                    "has another fingerprint in the index",
                );
            }
            Ok(_) => (),
        }
    }
}

fn damaged(relations: &LockedIndex, packed: u64, what: &str) -> ! {
    // SAFETY: the relation is open.
    let name = unsafe { name(relations.index()) };
    let Tid { block, offset } = Tid::from_packed(packed);
    UserError::new(
        PgSqlErrorCode::ERRCODE_INDEX_CORRUPTED,
        format!("index \"{name}\" does not agree with its table"),
    )
    .detail(format!("The row ({block},{offset}) {what}."))
    .hint(format!(
        "REINDEX INDEX {name} makes it anew from the table."
    ))
    .raise()
}
