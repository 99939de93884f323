//! Scans: `ambeginscan`, `amrescan`, `amgettuple`, `amgetbitmap`, `amendscan`.
use neardup_blocktree::key::{Tid, distance};
use neardup_blocktree::scan::{AllRows, Match, Scan};
use pgrx::{pg_guard, pg_sys};

use super::insert::key_of;
use super::state::{Index, Key, WORDS, plan_of};
use super::validate;
use crate::pg::compat;
use crate::types::{Ball, Fingerprint64};

/// A condition on the column: a ball, of which an equality is the smallest.
#[derive(Clone, Copy)]
struct Condition {
    center: Key,
    radius: u32,
}

impl Condition {
    fn holds(&self, fingerprint: &Key) -> bool {
        distance(&self.center, fingerprint) <= self.radius
    }
}

/// How rows are found.
enum Source {
    /// `amrescan` has not been called yet.
    Unset,
    /// A condition that nothing fulfils.
    Nothing,
    /// No condition.
    All(AllRows<WORDS>),
    /// The narrowest condition.
    Near(Scan<WORDS>),
}

/// A scan between its calls. It holds no lock and no pin: MVCC keeps rows that it may return from
/// being replaced by others that its snapshot could see.
struct State {
    index: Index,
    /// Rows in the index when the scan began, for choosing plans.
    rows: f64,
    source: Source,
    /// The other conditions.
    also: Vec<Condition>,
    matches: Vec<Match<WORDS>>,
    tids: Vec<Tid>,
    given: usize,
}

impl State {
    /// Fills `tids` with what the next leaf has. False: there is no other leaf.
    fn step(&mut self) -> bool {
        self.tids.clear();
        self.given = 0;
        let tree = self.index.tree();
        let more = match &mut self.source {
            Source::Unset | Source::Nothing => false,
            Source::All(scan) => self.index.sound(scan.step(&tree, &mut self.tids)),
            Source::Near(scan) => {
                self.matches.clear();
                let more = self.index.sound(scan.step(&tree, &mut self.matches));
                let also = &self.also;
                self.tids.extend(
                    (self.matches.iter())
                        .filter(|found| also.iter().all(|c| c.holds(&found.fingerprint)))
                        .map(|found| found.tid),
                );
                more
            }
        };
        let root = tree.root();
        self.index.remember(root);
        more
    }

    /// Begins anew with these conditions; `None` is one that nothing fulfils.
    fn restart(&mut self, conditions: Option<Vec<Condition>>) {
        self.tids.clear();
        self.given = 0;
        let Some(mut conditions) = conditions else {
            self.source = Source::Nothing;
            return;
        };
        let narrowest = (0..conditions.len()).min_by_key(|&i| conditions[i].radius);
        let Some(narrowest) = narrowest.map(|i| conditions.swap_remove(i)) else {
            self.source = Source::All(AllRows::new(&self.index.design));
            return;
        };
        let plan = plan_of(&self.index.meta, &self.index.design, narrowest.radius, self.rows);
        match &mut self.source {
            Source::Near(scan) => scan.restart(plan, narrowest.center),
            source => {
                let design = self.index.design.clone();
                *source = Source::Near(Scan::new(design, plan, narrowest.center));
            }
        }
        self.also = conditions;
    }
}

/// The condition that a scan key makes; `None` if nothing fulfils it.
unsafe fn condition(key: &pg_sys::ScanKeyData) -> Option<Condition> {
    if key.sk_flags as u32 & pg_sys::SK_ISNULL != 0 {
        return None;
    }
    match key.sk_strategy {
        validate::WITHIN => {
            // SAFETY: this strategy's operators have a ball on their right side, and the balls of
            // all types of 64 bits are laid out alike.
            let ball = unsafe { Ball::<Fingerprint64>::from_datum(key.sk_argument) };
            let radius = u32::try_from(ball.radius).ok()?;
            Some(Condition { center: [ball.center.0], radius })
        }
        validate::NEAR => {
            Some(Condition { center: key_of(key.sk_argument), radius: validate::NEAR_RADIUS })
        }
        _ => Some(Condition { center: key_of(key.sk_argument), radius: 0 }),
    }
}

/// `ambeginscan`.
#[pg_guard]
pub unsafe extern "C-unwind" fn begin(
    relation: pg_sys::Relation,
    keys: i32,
    order_bys: i32,
) -> pg_sys::IndexScanDesc {
    // SAFETY: the server passes an open index, which stays open until `amendscan`. The state is
    // dropped with the memory context, that is also when an error ends the scan.
    unsafe {
        let scan = pg_sys::RelationGetIndexScan(relation, keys, order_bys);
        let index = Index::open(relation);
        let rows = index.rows();
        let state = State {
            index,
            rows,
            source: Source::Unset,
            also: Vec::new(),
            matches: Vec::new(),
            tids: Vec::new(),
            given: 0,
        };
        let state = pgrx::PgMemoryContexts::CurrentMemoryContext.leak_and_drop_on_delete(state);
        (*scan).opaque = state.cast();
        scan
    }
}

/// `amrescan`.
#[pg_guard]
pub unsafe extern "C-unwind" fn restart(
    scan: pg_sys::IndexScanDesc,
    keys: pg_sys::ScanKey,
    key_count: i32,
    _order_bys: pg_sys::ScanKey,
    _order_by_count: i32,
) {
    // SAFETY: the server passes a scan that `begin` made, and as many keys as it says.
    unsafe {
        let scan = &mut *scan;
        if key_count > 0 && scan.numberOfKeys > 0 {
            core::ptr::copy(keys, scan.keyData, scan.numberOfKeys as usize);
        }
        let keys = if scan.numberOfKeys > 0 {
            core::slice::from_raw_parts(scan.keyData, scan.numberOfKeys as usize)
        } else {
            &[]
        };
        let conditions = keys.iter().map(|key| condition(key)).collect();
        (*scan.opaque.cast::<State>()).restart(conditions);
        compat::count_index_scan(scan.indexRelation);
    }
}

/// `amgettuple`: the next row, in no particular order.
#[pg_guard]
pub unsafe extern "C-unwind" fn next_row(
    scan: pg_sys::IndexScanDesc,
    _direction: pg_sys::ScanDirection::Type,
) -> bool {
    // SAFETY: the server passes a scan that `begin` made.
    unsafe {
        let scan = &mut *scan;
        let state = &mut *scan.opaque.cast::<State>();
        loop {
            if let Some(tid) = state.tids.get(state.given) {
                state.given += 1;
                let pointer = &mut scan.xs_heaptid;
                pgrx::itemptr::item_pointer_set_all(pointer, tid.block, tid.offset);
                // The index has measured the distance itself. Under a snapshot without MVCC the
                // row may have been replaced since.
                scan.xs_recheck = !compat::is_mvcc_snapshot(scan.xs_snapshot);
                return true;
            }
            if !state.step() {
                return false;
            }
            pgrx::check_for_interrupts!();
        }
    }
}

/// `amgetbitmap`: all rows.
#[pg_guard]
pub unsafe extern "C-unwind" fn all_rows(
    scan: pg_sys::IndexScanDesc,
    bitmap: *mut pg_sys::TIDBitmap,
) -> i64 {
    // SAFETY: the server passes a scan that `begin` made, and a bitmap.
    unsafe {
        let state = &mut *(*scan).opaque.cast::<State>();
        let mut pointers: Vec<pg_sys::ItemPointerData> = Vec::new();
        let mut count = 0;
        while state.step() {
            pgrx::check_for_interrupts!();
            pointers.clear();
            pointers.extend(state.tids.iter().map(|tid| {
                let mut pointer = pg_sys::ItemPointerData::default();
                pgrx::itemptr::item_pointer_set_all(&mut pointer, tid.block, tid.offset);
                pointer
            }));
            if !pointers.is_empty() {
                let (start, length) = (pointers.as_mut_ptr(), pointers.len());
                pg_sys::tbm_add_tuples(bitmap, start, length as i32, false);
                count += length as i64;
            }
        }
        count
    }
}

/// `amendscan`.
#[pg_guard]
pub unsafe extern "C-unwind" fn end(scan: pg_sys::IndexScanDesc) {
    // SAFETY: the server passes a scan that `begin` made. What the scan holds goes now; the empty
    // state goes with its memory context.
    unsafe {
        let state = &mut *(*scan).opaque.cast::<State>();
        state.source = Source::Unset;
        state.also = Vec::new();
        state.matches = Vec::new();
        state.tids = Vec::new();
    }
}
