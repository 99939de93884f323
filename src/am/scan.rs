//! Scans: `ambeginscan`, `amrescan`, `amgettuple`, `amgetbitmap`, `amendscan`.
use neardup_blocktree::key::{Tid, distance};
use neardup_blocktree::nearest::Nearest;
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

    /// The condition that a scan key makes; `None` if nothing fulfils it.
    ///
    /// # Safety
    /// The key is for an operator of this access method's operator classes.
    unsafe fn of(key: &pg_sys::ScanKeyData) -> Option<Condition> {
        if key.sk_flags as u32 & pg_sys::SK_ISNULL != 0 {
            return None;
        }
        let center = || key_of(key.sk_argument);
        match key.sk_strategy {
            validate::WITHIN => {
                // SAFETY: this strategy's operators have a ball on their right side, and the balls
                // of all types of 64 bits are laid out alike.
                let ball = unsafe { Ball::<Fingerprint64>::from_datum(key.sk_argument) };
                let radius = u32::try_from(ball.radius).ok()?;
                Some(Condition {
                    center: [ball.center.0],
                    radius,
                })
            }
            validate::NEAR => Some(Condition {
                center: center(),
                radius: validate::NEAR_RADIUS,
            }),
            _ => Some(Condition {
                center: center(),
                radius: 0,
            }),
        }
    }
}

/// How rows are found.
enum Source {
    /// None, or no more.
    Nothing,
    /// All of them.
    All(AllRows<WORDS>),
    /// Those near a query, in no order.
    Near(Scan<WORDS>),
    /// By distance from a query, up to a radius if there is one, and then those without any.
    Ordered {
        nearest: Box<Nearest<WORDS>>,
        up_to: Option<u32>,
        then_nulls: bool,
    },
    /// Those of a set that is sorted already, the next one last.
    Sorted(Vec<Tid>),
}

/// A scan between its calls. It holds no lock and no pin: MVCC keeps rows that it may return from
/// being replaced by others that its snapshot could see.
struct State {
    index: Index,
    /// Rows in the index when the scan began, for choosing plans.
    rows: f64,
    source: Source,
    /// Conditions that the source does not see to.
    also: Vec<Condition>,
    matches: Vec<Match<WORDS>>,
    tids: Vec<Tid>,
    given: usize,
}

impl State {
    /// Fills `tids` with what comes next, perhaps nothing. False: there is no more.
    fn step(&mut self) -> bool {
        self.tids.clear();
        self.matches.clear();
        self.given = 0;
        let index = &self.index;
        let tree = index.tree();
        let plan = |radius| plan_of(&index.meta, &index.design, radius, self.rows);
        let mut next = None;
        let more = match &mut self.source {
            Source::Nothing => false,
            Source::All(scan) => index.sound(scan.step(&tree, &mut self.tids)),
            Source::Near(scan) => index.sound(scan.step(&tree, &mut self.matches)),
            Source::Ordered {
                nearest,
                up_to,
                then_nulls,
            } => {
                let row = index.sound(nearest.next(&tree, plan));
                let row = row.filter(|row| up_to.is_none_or(|up_to| row.distance <= up_to));
                match row {
                    Some(row) => self.matches.push(row),
                    None if *then_nulls => next = Some(Source::All(AllRows::nulls(&index.design))),
                    None => next = Some(Source::Nothing),
                }
                true
            }
            Source::Sorted(rows) => {
                self.tids.extend(rows.pop());
                !self.tids.is_empty()
            }
        };
        let also = &self.also;
        self.tids.extend(
            (self.matches.iter())
                .filter(|found| {
                    also.iter()
                        .all(|condition| condition.holds(&found.fingerprint))
                })
                .map(|found| found.tid),
        );
        let root = tree.root();
        self.index.remember(root);
        if let Some(next) = next {
            self.source = next;
        }
        more
    }

    /// Begins anew with these conditions, of which `None` is one that nothing fulfils, and in the
    /// order of the distance to the first of some keys, then to the next.
    fn restart(&mut self, conditions: Option<Vec<Condition>>, order: &[Key]) {
        self.tids.clear();
        self.given = 0;
        let Some(mut conditions) = conditions else {
            self.source = Source::Nothing;
            return;
        };
        let narrowest = (0..conditions.len()).min_by_key(|&i| conditions[i].radius);
        let narrowest = narrowest.map(|i| conditions.swap_remove(i));
        self.also = conditions;
        match (narrowest, order) {
            (None, []) => self.source = Source::All(AllRows::new(&self.index.design)),
            (Some(near), []) => self.search(near),
            (None, [query, then_by @ ..]) => self.search_in_order(*query, then_by, None, true),
            (Some(near), [query, then_by @ ..]) if near.center == *query => {
                self.search_in_order(*query, then_by, Some(near.radius), false);
            }
            (Some(near), order) => self.search_and_sort(near, order),
        }
    }

    fn search(&mut self, near: Condition) {
        let plan = plan_of(&self.index.meta, &self.index.design, near.radius, self.rows);
        match &mut self.source {
            // The usual case of a nested loop, which begins anew for each outer row.
            Source::Near(scan) => scan.restart(plan, near.center),
            source => {
                *source = Source::Near(Scan::new(self.index.design.clone(), plan, near.center));
            }
        }
    }

    fn search_in_order(
        &mut self,
        query: Key,
        then_by: &[Key],
        up_to: Option<u32>,
        then_nulls: bool,
    ) {
        let design = &self.index.design;
        let first = design.distance().min(up_to.unwrap_or(u32::MAX));
        let plan = plan_of(&self.index.meta, design, first, self.rows);
        let scan = Scan::new(design.clone(), plan, query);
        let nearest = Box::new(Nearest::new(scan, then_by.to_vec()));
        self.source = Source::Ordered {
            nearest,
            up_to,
            then_nulls,
        };
    }

    /// Rows near one thing in the order of their distance to another.
    fn search_and_sort(&mut self, near: Condition, order: &[Key]) {
        self.search(near);
        let mut rows: Vec<(Vec<u32>, Tid)> = Vec::new();
        while self.step() {
            pgrx::check_for_interrupts!();
            rows.extend(
                (self.matches.iter())
                    .filter(|found| self.also.iter().all(|c| c.holds(&found.fingerprint)))
                    .map(|found| {
                        let far = |key: &Key| distance(key, &found.fingerprint);
                        (order.iter().map(far).collect(), found.tid)
                    }),
            );
        }
        rows.sort_unstable_by(|a, b| b.cmp(a));
        self.tids.clear();
        self.source = Source::Sorted(rows.into_iter().map(|(_, tid)| tid).collect());
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
            source: Source::Nothing,
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
    _key_count: i32,
    order_bys: pg_sys::ScanKey,
    _order_by_count: i32,
) {
    // SAFETY: the server passes a scan that `begin` made, with as many keys as it was begun with,
    // or null for those of last time.
    unsafe {
        let scan = &mut *scan;
        let keys = copy_keys(keys, scan.keyData, scan.numberOfKeys);
        let order_bys = copy_keys(order_bys, scan.orderByData, scan.numberOfOrderBys);
        let conditions = keys.iter().map(|key| Condition::of(key)).collect();
        // The distance to NULL is NULL for all rows: it orders nothing.
        let order: Vec<Key> = (order_bys.iter())
            .filter(|key| key.sk_flags as u32 & pg_sys::SK_ISNULL == 0)
            .map(|key| key_of(key.sk_argument))
            .collect();
        (*scan.opaque.cast::<State>()).restart(conditions, &order);
        compat::count_index_scan(scan);
    }
}

/// Copies scan keys to where the scan keeps them, unless they are null, and returns those.
unsafe fn copy_keys<'a>(
    from: pg_sys::ScanKey,
    to: pg_sys::ScanKey,
    count: i32,
) -> &'a [pg_sys::ScanKeyData] {
    if count <= 0 {
        return &[];
    }
    // SAFETY: the caller passes two arrays of that length, the first of which may be null.
    unsafe {
        if !from.is_null() {
            core::ptr::copy(from, to, count as usize);
        }
        core::slice::from_raw_parts(to, count as usize)
    }
}

/// `amgettuple`: the next row.
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
                scan.xs_recheckorderby = false;
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
        state.source = Source::Nothing;
        state.also = Vec::new();
        state.matches = Vec::new();
        state.tids = Vec::new();
    }
}
