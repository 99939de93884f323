//! Index scan descriptors, and the access method's state in them.
use core::any::TypeId;
use core::cell::Cell;
use core::ffi::CStr;
use core::marker::PhantomData;
use core::ptr::NonNull;
use std::rc::Rc;

use neardup_blocktree::key::Tid;
use pgrx::pg_sys;

use super::compat;
use super::memory_context::{Parent, set_parent, small_context};
use super::rel::Rel;
use super::scan_key::ScanKeys;
use super::tid::item_pointer;
use super::value::Value;

/// Name of the memory contexts of scan states.
const NAME: &CStr = c"neardup scan";

/// Index scan with state of type `S`.
pub struct ScanDesc<'a, S> {
    raw: &'a mut pg_sys::IndexScanDescData,
    _state: PhantomData<&'a mut S>,
}

/// Cache for the state of an ended scan. The next scan of the same index reuses the state, because
/// constraints and triggers begin and end a scan for each row.
#[derive(Default)]
pub struct Rest {
    resting: Cell<Option<NonNull<Head>>>,
    is_closed: Cell<bool>,
}

/// First part of a scan's state, which does not depend on its type.
struct Head {
    /// Memory context of the state. Deleting it drops the state, also after an error.
    context: pg_sys::MemoryContext,
    /// Cache for the state after the scan; `None` if the parent of its context is the context of
    /// the scan descriptor.
    rest: Option<Rc<Rest>>,
    type_id: TypeId,
}

/// State of a scan.
#[repr(C)]
struct Kept<S> {
    head: Head,
    state: S,
}

impl Drop for Head {
    fn drop(&mut self) {
        let own = NonNull::from(&*self);
        if let Some(rest) = &self.rest
            && rest.resting.get() == Some(own)
        {
            rest.resting.set(None);
        }
    }
}

impl Rest {
    /// Drops the cached state, and stops caching.
    pub fn close(&self) {
        self.is_closed.set(true);
        if let Some(head) = self.resting.take() {
            drop_state(head);
        }
    }

    /// Caches a state that is not used by a scan. Returns false if there is no room for it.
    fn put(&self, head: NonNull<Head>) -> bool {
        let has_room = !self.is_closed.get() && self.resting.get().is_none();
        if has_room {
            // SAFETY: the scan has ended within its transaction. If the state stayed below the
            // subtransaction's context, each committed subtransaction would keep the memory of
            // that context until the transaction ends.
            unsafe { set_parent(live(head).context, Parent::Transaction) };
            self.resting.set(Some(head));
        }
        has_room
    }
}

/// Reference to a live state or its head. The state is cached or used by one scan, and lives until
/// that ends, also by an error.
#[inline]
fn live<'a, T>(mut state: NonNull<T>) -> &'a mut T {
    // SAFETY: the pointer was made by `make`, and this file has one reference to it at a time. The
    // cache forgets a state whose memory context is deleted: see `Head::drop`.
    unsafe { state.as_mut() }
}

/// Scan state that an access method defines.
pub trait ScanState: Sized + 'static {
    /// The cache for scan states of an index.
    fn rest(index: Rel) -> Rc<Rest>;

    /// Makes a state for an open index.
    fn new(index: Rel<'static>) -> Self;

    /// Prepares the state of an earlier scan of the index for a new scan.
    fn resume(&mut self, index: Rel<'static>);
}

/// Returns the cached state or a new one, for a scan that begins and ends in the same
/// subtransaction.
fn take_or_make<S: ScanState>(index: Rel<'static>) -> NonNull<Kept<S>> {
    let rest = S::rest(index);
    if let Some(head) = rest.resting.take() {
        assert!(live(head).type_id == TypeId::of::<S>());
        // SAFETY: a cached state lives until its transaction ends at most. An error in the scan
        // must drop the state, even if it ends only a subtransaction.
        unsafe { set_parent(live(head).context, Parent::Subtransaction) };
        let kept = head.cast::<Kept<S>>();
        live(kept).state.resume(index);
        return kept;
    }
    let context = small_context(Parent::Subtransaction, NAME);
    make(index, context, Some(rest))
}

/// Makes a scan state in a memory context. Deleting the context drops the state.
fn make<S: ScanState>(
    index: Rel<'static>,
    context: pg_sys::MemoryContext,
    rest: Option<Rc<Rest>>,
) -> NonNull<Kept<S>> {
    let head = Head {
        context,
        rest,
        type_id: TypeId::of::<S>(),
    };
    let state = S::new(index);
    let kept = Kept { head, state };
    let kept = pgrx::PgMemoryContexts::For(context).leak_and_drop_on_delete(kept);
    NonNull::new(kept).expect("memory, or an error")
}

/// Searches with a scan state but without a scan. For searches that rarely find rows.
pub fn without_scan<S: ScanState, T>(index: Rel, search: impl FnOnce(&mut S) -> T) -> T {
    // SAFETY: the index is open during the call. A cached state does not use it.
    let kept = take_or_make(unsafe { Rel::new(index.raw()) });
    let result = search(&mut live(kept).state);
    end(kept);
    result
}

/// Caches the state of an ended scan for the next scan, or drops it.
fn end<S>(kept: NonNull<Kept<S>>) {
    let head = kept.cast::<Head>();
    let rest = live(head).rest.clone();
    if !rest.is_some_and(|rest| rest.put(head)) {
        drop_state(head);
    }
}

/// Drops the state of an ended scan.
fn drop_state(head: NonNull<Head>) {
    let context = live(head).context;
    // SAFETY: the context was made for this state, and is never the current context.
    unsafe { pg_sys::MemoryContextDelete(context) }
}

impl<S: ScanState> ScanDesc<'_, S> {
    /// Begins a scan. The scan has no state until [`ScanDesc::restart`].
    pub fn begin(index: Rel, [keys, order_bys]: [i32; 2]) -> pg_sys::IndexScanDesc {
        // SAFETY: the index is open.
        unsafe {
            let scan = pg_sys::RelationGetIndexScan(index.raw(), keys, order_bys);
            (*scan).xs_itupdesc = (*index.raw()).rd_att;
            scan
        }
    }

    /// Wraps what the server passes.
    ///
    /// # Safety
    /// The scan was begun by [`ScanDesc::begin`] with state of this type, and has not ended.
    #[inline]
    pub unsafe fn new(raw: pg_sys::IndexScanDesc) -> Self {
        ScanDesc {
            // SAFETY: the caller's promise.
            raw: unsafe { &mut *raw },
            _state: PhantomData,
        }
    }

    #[inline]
    fn kept(&mut self) -> &mut Kept<S> {
        let kept = NonNull::new(self.raw.opaque.cast::<Kept<S>>());
        live(kept.expect("a scan that has not ended"))
    }

    /// The state.
    #[inline]
    pub fn state(&mut self) -> &mut S {
        &mut self.kept().state
    }

    /// Counts a search in the statistics, and copies keys and orders into the scan unless they are
    /// null. Returns the state, the keys and orders, and the scan's snapshot, if it has one.
    ///
    /// # Safety
    /// The numbers of keys and orders are those passed to [`ScanDesc::begin`]. Their operators
    /// belong to the operator classes of the index, which is open.
    pub unsafe fn restart(
        &mut self,
        keys: pg_sys::ScanKey,
        order_bys: pg_sys::ScanKey,
    ) -> (&mut S, [ScanKeys<'_>; 2], Option<&pg_sys::SnapshotData>) {
        let scan = &mut *self.raw;
        let copies = [
            (keys, scan.keyData, scan.numberOfKeys as usize),
            (order_bys, scan.orderByData, scan.numberOfOrderBys as usize),
        ];
        // SAFETY: the caller's promise. The snapshot is null, or the server sets it when the scan
        // begins, and it outlives the scan.
        let (snapshot, lists, index, own) = unsafe {
            compat::count_index_search(scan);
            let index = Rel::new(scan.indexRelation);
            let lists = copies.map(|(from, to, count)| {
                if count == 0 {
                    return ScanKeys::new(index, &[]);
                }
                if !from.is_null() {
                    core::ptr::copy(from, to, count);
                }
                ScanKeys::new(index, core::slice::from_raw_parts(to, count))
            });
            let own = pg_sys::GetMemoryChunkContext((&raw mut *scan).cast());
            (scan.xs_snapshot.as_ref(), lists, index, own)
        };
        if self.raw.opaque.is_null() {
            // A cursor's scan may begin in a subtransaction and outlive it, even after a rollback.
            // Code that scans with a dirty snapshot ends the scan before it returns.
            let kept = match snapshot.is_some_and(compat::is_dirty_snapshot) {
                true => take_or_make::<S>(index),
                false => make(index, small_context(Parent::Context(own), NAME), None),
            };
            self.raw.opaque = kept.as_ptr().cast();
        }
        (self.state(), lists, snapshot)
    }

    /// Returns whether this is an index-only scan.
    #[inline]
    pub fn is_index_only(&self) -> bool {
        self.raw.xs_want_itup
    }

    /// Sets the current row. The server rechecks the conditions if `recheck` is true. It also does
    /// so if the snapshot is not an MVCC snapshot, because the row may have been replaced.
    #[inline]
    pub fn give(&mut self, tid: Tid, recheck: bool) {
        self.raw.xs_heaptid = item_pointer(tid);
        // SAFETY: null, as in scans for a bitmap, or a snapshot.
        let snapshot = unsafe { self.raw.xs_snapshot.as_ref() };
        self.raw.xs_recheck = recheck || !snapshot.is_some_and(compat::is_mvcc_snapshot);
        self.raw.xs_recheckorderby = false;
    }

    /// Makes the index tuple of the current row: the value of the last column, and NULL for all
    /// others. Raises an internal error if the value's length differs from the column's.
    pub fn give_tuple(&mut self, last: impl FnOnce(&S) -> Option<Value<'_>>) {
        let descriptor = self.raw.xs_itupdesc;
        let before = core::mem::replace(&mut self.raw.xs_itup, core::ptr::null_mut());
        let kept = self.kept();
        // SAFETY: the descriptor describes the columns of the index. The previous tuple was made
        // here, in this scan's context.
        self.raw.xs_itup = unsafe {
            let columns = (*descriptor).natts as usize;
            let mut values = vec![pg_sys::Datum::from(0); columns];
            let mut nulls = vec![true; columns];
            if let Some(value) = last(&kept.state) {
                let attribute = compat::attribute(&*descriptor, columns as i16);
                assert_eq!(value.length(), attribute.attlen);
                (values[columns - 1], nulls[columns - 1]) = (value.datum(), false);
            }
            if !before.is_null() {
                pg_sys::pfree(before.cast());
            }
            let outer = pg_sys::MemoryContextSwitchTo(kept.head.context);
            let (values, nulls) = (values.as_mut_ptr(), nulls.as_mut_ptr());
            let tuple = pg_sys::index_form_tuple(descriptor, values, nulls);
            pg_sys::MemoryContextSwitchTo(outer);
            tuple
        };
    }

    /// Ends the scan after calling `tell` with its state. Caches or drops the state.
    pub fn end(self, tell: impl FnOnce(&mut S)) {
        let Some(kept) = NonNull::new(self.raw.opaque.cast::<Kept<S>>()) else {
            return;
        };
        self.raw.opaque = core::ptr::null_mut();
        tell(&mut live(kept).state);
        end(kept);
    }
}

/// Bitmap of rows that a scan fills.
pub struct Bitmap(*mut pg_sys::TIDBitmap);

impl Bitmap {
    /// Wraps what the server passes.
    ///
    /// # Safety
    /// The bitmap outlives the value.
    #[inline]
    pub unsafe fn new(raw: *mut pg_sys::TIDBitmap) -> Self {
        Bitmap(raw)
    }

    /// Adds rows. The server rechecks their conditions if `recheck` is true.
    pub fn add(&mut self, rows: &mut [pg_sys::ItemPointerData], recheck: bool) {
        // SAFETY: the bitmap lives.
        unsafe { pg_sys::tbm_add_tuples(self.0, rows.as_mut_ptr(), rows.len() as i32, recheck) }
    }
}
