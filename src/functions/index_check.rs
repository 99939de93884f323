//! `neardup_index_check`: verification of an index. An index consists of permutations, which are
//! ordered copies of all keys, so a row has an entry in each permutation. In an index on arrays, a
//! row has an entry for each element of its array instead.
use neardup_blocktree::check::CheckStats;
use neardup_blocktree::key::{Key, Tid};
use neardup_blocktree::sets;
use pgrx::{PgSqlErrorCode, pg_sys};

use crate::am::index::{Index, name, words_of};
use crate::am::inspection::{self, each_visible_row, open_for_one_pass};
use crate::am::keys::with_words;
use neardup_pg::acl;
use neardup_pg::build_scan::VisibleRows;
use neardup_pg::compat::OldSnapshotCheck;
use neardup_pg::errors::UserError;
use neardup_pg::fmgr::{Call, export};
use neardup_pg::locked_index::LockedIndex;

export! {
    guarded "neardup_index_check" => index_check;
}

/// `neardup_index_check(index, heap, concurrently)`: checks every invariant of the tree. If `heap`
/// is true, also checks that each visible row of the table occurs once in each permutation or, in
/// an index on arrays, once under each of its elements. The check of rows needs memory for each
/// row: 24 bytes and the words of a key, and 8 bytes more in an index on arrays. If `concurrently`
/// is true, other sessions may write meanwhile, and pages are not compared with their parents.
fn index_check(call: &mut Call) -> pg_sys::Datum {
    let (index, with_heap, concurrently) = (call.oid(0), call.bool(1), call.bool(2));
    // The locks are those of amcheck: bt_index_parent_check blocks writers, and bt_index_check does
    // not.
    let lock = match concurrently {
        true => {
            acl::check_owner_or_monitor(index);
            pg_sys::AccessShareLock
        }
        false => {
            acl::check_owner(index);
            pg_sys::ShareLock
        }
    };
    let relations = LockedIndex::open(index, lock as pg_sys::LOCKMODE);
    let stats = with_words!(words_of(relations.index()), N => {
        check_index::<N>(&relations, with_heap, concurrently)
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

/// Row of the table, with the permutations (ordered copies of all keys) of the index that contain
/// it.
struct IndexedRow<const N: usize> {
    /// Address of the row, packed into a number.
    tid: u64,
    /// Key of the row: its scope and its value. `None` for a row whose value is NULL.
    key: Option<Key<N>>,
    /// Number of permutations in which the row was found so far.
    permutations: u16,
    /// Last permutation in which the row was found.
    last: u16,
    /// True if the row was found twice in the same permutation.
    is_twice: bool,
}

/// Rows of an index, collected from one permutation after the other.
struct IndexedRows<'a, const N: usize> {
    relations: &'a LockedIndex,
    rows: Vec<IndexedRow<N>>,
    /// Number of the permutation that contains the rows whose values are NULL. It is the last one.
    null_permutation: u16,
    /// Sums for the rows of an index on arrays, in the order of `rows`. `None` for other indexes.
    /// The sum of a row adds up the hashes of the array elements under which the row was found. The
    /// row's key has the sum for the whole array. [`IndexedRows::compare_sums`] compares the two
    /// sums to find missing elements, and then sets this field to `None`.
    sums: Option<Vec<u64>>,
    /// True if other sessions may write. Then the address of a row may be reused while the index is
    /// read, so only rows that are still visible must occur exactly once.
    concurrently: bool,
    /// True if `rows` is sorted by address.
    sorted: bool,
}

impl<const N: usize> IndexedRows<'_, N> {
    /// Records that the permutation with the number `permutation` contains the row at `tid` under
    /// `key`.
    fn add(&mut self, permutation: u16, tid: Tid, key: &Key<N>) {
        let tid = tid.packed();
        if self.rows.try_reserve(1).is_err() {
            UserError::out_of_memory().raise();
        }
        if permutation == 0 {
            self.rows.push(IndexedRow {
                tid,
                key: Some(*key),
                permutations: 1,
                last: 0,
                is_twice: false,
            });
            return;
        }
        if !self.sorted {
            self.sort();
            let mut pairs = self.rows.windows(2);
            let twice = pairs.find(|pair| pair[0].tid == pair[1].tid);
            if let Some(pair) = twice.filter(|_| !self.concurrently) {
                damaged(self.relations, pair[0].tid, TWICE);
            }
        }
        if permutation == self.null_permutation {
            self.compare_sums();
            self.rows.push(IndexedRow {
                tid,
                key: None,
                permutations: 0,
                last: 0,
                is_twice: false,
            });
        } else if let Ok(i) = self.rows.binary_search_by_key(&tid, |row| row.tid) {
            if let Some(sums) = &mut self.sums {
                sums[i] = sums[i].wrapping_add(sets::sum_contribution(permutation, key));
                return;
            }
            let row = &mut self.rows[i];
            if row.last == permutation {
                if !self.concurrently {
                    damaged(self.relations, tid, TWICE);
                }
                row.is_twice = true;
            }
            if row.key == Some(*key) {
                row.permutations += 1;
                row.last = permutation;
            }
        }
    }

    /// Sorts the rows by address. For an index on arrays, the first call also creates `sums`, with
    /// 0 for each row.
    fn sort(&mut self) {
        self.rows.sort_unstable_by_key(|row| row.tid);
        self.sorted = true;
        if let Some(sums) = self.sums.as_mut().filter(|sums| sums.is_empty()) {
            if sums.try_reserve_exact(self.rows.len()).is_err() {
                UserError::out_of_memory().raise();
            }
            sums.resize(self.rows.len(), 0);
        }
    }

    /// Compares the sum in `sums` for each row with the sum in the row's key. If they are equal,
    /// the row was found under all elements of its array. The entries for these elements then count
    /// as one more permutation that contains the row. Does nothing if `sums` is `None`.
    fn compare_sums(&mut self) {
        for (row, sum) in self
            .rows
            .iter_mut()
            .zip(self.sums.take().unwrap_or_default())
        {
            let own = row.key.map(|key| sets::number(&key));
            row.permutations += u16::from(own == Some(sum));
        }
    }

    /// Checks that the index contains each row of the table that the snapshot of `visible` sees,
    /// once in each permutation. Raises an error otherwise.
    fn check_heap(&mut self, index: &Index<N>, visible: &VisibleRows) {
        if !self.sorted {
            self.sort();
        }
        self.compare_sums();
        self.sort();
        let (rows, permutations) = (&self.rows, self.null_permutation);
        each_visible_row(visible, index, &mut |tid, key| {
            let tid = tid.packed();
            let first = rows.partition_point(|row| row.tid < tid);
            let mut same = rows[first..].iter().take_while(|row| row.tid == tid);
            let error = match same.next() {
                None => "is missing from the index",
                Some(row) if row.is_twice || same.next().is_some() => TWICE,
                Some(row) if row.key != key => "has another value in the index",
                Some(row) if key.is_some() && row.permutations != permutations => {
                    "is missing from a permutation"
                }
                Some(_) => return,
            };
            damaged(self.relations, tid, error);
        });
    }
}

/// Checks the tree and, if `with_heap` is true, that the index contains the rows of the table.
/// `concurrently` is true if other sessions may write meanwhile. Returns the numbers of rows,
/// entries and pages that the check has read.
fn check_index<const N: usize>(
    relations: &LockedIndex,
    with_heap: bool,
    concurrently: bool,
) -> CheckStats {
    // The snapshot is taken before the index is read, so the index already contains all rows that
    // the snapshot sees.
    let visible = with_heap.then(|| VisibleRows::new(relations));
    let check = visible.as_ref().map(VisibleRows::old_snapshot_check);
    let check = check.unwrap_or(OldSnapshotCheck::NONE);
    let index = match concurrently {
        true => open_for_one_pass::<N>(relations, check),
        false => inspection::open::<N>(relations, check),
    };
    let mut rows = IndexedRows {
        relations,
        rows: Vec::new(),
        null_permutation: index.block_layout.null_permutation(),
        sums: index.block_layout.has_elements().then(Vec::new),
        concurrently,
        sorted: false,
    };
    let each = |permutation, tid, key: &Key<N>| {
        if with_heap {
            rows.add(permutation, tid, key);
        }
    };
    let (tree, layout) = (index.tree(), &index.block_layout);
    let stats = index.or_corrupt(match concurrently {
        true => tree.check_shared(layout, each),
        false => tree.check(layout, each),
    });
    if let Some(visible) = visible {
        rows.check_heap(&index, &visible);
    }
    stats
}

const TWICE: &str = "occurs twice in a permutation";

/// Raises the error that the row at the packed address `packed` is not in the index as it should
/// be. `error` completes the sentence "The row ...".
fn damaged(relations: &LockedIndex, packed: u64, error: &str) -> ! {
    let name = name(relations.index());
    let Tid { block, offset } = Tid::from_packed(packed);
    UserError::new(
        PgSqlErrorCode::ERRCODE_INDEX_CORRUPTED,
        format!(
            "index \"{}\" does not match its table",
            relations.index().shown()
        ),
    )
    .detail(format!("The row ({block},{offset}) {error}."))
    .hint(format!(
        "REINDEX INDEX {name} rebuilds the index from the table."
    ))
    .raise()
}
