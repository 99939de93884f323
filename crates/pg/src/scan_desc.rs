//! Index scan descriptors of the server (`IndexScanDesc`), and the state that the access method
//! keeps in them.
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

/// Name of the memory contexts of scan states, in the server's memory reports.
const NAME: &CStr = c"neardup scan";

/// Index scan of the server, with a state of type `S` made by the access method.
pub struct ScanDesc<'a, S> {
    raw: &'a mut pg_sys::IndexScanDescData,
    _state: PhantomData<&'a mut S>,
}

/// Cache for the state of one ended scan of an index. The next scan of the same index uses the
/// state. Constraints and triggers begin and end a scan for each row, and making a state takes
/// time.
#[derive(Default)]
pub struct StateCache {
    /// State of an ended scan; `None` if there is none.
    cached: Cell<Option<NonNull<Head>>>,
    /// True after [`StateCache::close`]: the cache keeps no state any more.
    is_closed: Cell<bool>,
}

/// Fields that come before each scan state in memory, whatever the type of the state is.
struct Head {
    /// Memory context that holds the state. Deleting the context drops the state, even after an
    /// error.
    context: pg_sys::MemoryContext,
    /// Cache that keeps the state after the scan. `None` if the state is dropped with the scan. In
    /// this case `context` is a child of the memory context of the scan descriptor.
    cache: Option<Rc<StateCache>>,
    /// Type of the state. It detects an attempt to read the state as another type.
    type_id: TypeId,
}

/// State of a scan as it is in memory, behind its head.
#[repr(C)]
struct Kept<S> {
    head: Head,
    state: S,
}

impl Drop for Head {
    fn drop(&mut self) {
        let own = NonNull::from(&*self);
        if let Some(cache) = &self.cache
            && cache.cached.get() == Some(own)
        {
            cache.cached.set(None);
        }
    }
}

impl StateCache {
    /// Drops the kept state. From now on the cache keeps none, and ended scans drop their states.
    pub fn close(&self) {
        self.is_closed.set(true);
        if let Some(head) = self.cached.take() {
            drop_state(head);
        }
    }

    /// Keeps the state of an ended scan, and returns true. Returns false, without keeping the
    /// state, if the cache has a state already or [`StateCache::close`] was called.
    fn put(&self, head: NonNull<Head>) -> bool {
        let has_room = !self.is_closed.get() && self.cached.get().is_none();
        if has_room {
            // SAFETY: the scan has ended within its transaction. If the state stayed below the
            // subtransaction's context, each committed subtransaction would keep the memory of
            // that context until the transaction ends.
            unsafe { set_parent(live(head).context, Parent::Transaction) };
            self.cached.set(Some(head));
        }
        has_room
    }
}

/// Returns a reference to a scan state that has not been dropped, or to the head of such a state.
#[inline]
fn live<'a, T>(mut state: NonNull<T>) -> &'a mut T {
    // SAFETY: `make` made the pointer, and this file has one reference to the state at a time. The
    // state lives as long as a `StateCache` keeps it or a scan uses it. An error drops the state
    // with its memory context, and then the `StateCache` forgets the pointer: see `Head::drop`.
    unsafe { state.as_mut() }
}

/// State that an access method keeps in each of its index scans.
pub trait ScanState: Sized + 'static {
    /// Returns the cache in which ended scans of this index keep their state.
    fn state_cache(index: Rel) -> Rc<StateCache>;

    /// Makes a state for scans of an open index.
    fn new(index: Rel<'static>) -> Self;

    /// Prepares the kept state of an ended scan for a new scan of the same index.
    fn resume(&mut self, index: Rel<'static>);
}

/// Returns the kept state of an earlier scan of the index, or else a new state. The state is
/// dropped if the current subtransaction is rolled back. So a scan that uses it must end in the
/// subtransaction in which it began.
fn take_or_make<S: ScanState>(index: Rel<'static>) -> NonNull<Kept<S>> {
    let cache = S::state_cache(index);
    if let Some(head) = cache.cached.take() {
        assert!(live(head).type_id == TypeId::of::<S>());
        // SAFETY: a kept state lives until its transaction ends at most. An error in the scan must
        // drop the state, even if it ends only a subtransaction.
        unsafe { set_parent(live(head).context, Parent::Subtransaction) };
        let kept = head.cast::<Kept<S>>();
        live(kept).state.resume(index);
        return kept;
    }
    let context = small_context(Parent::Subtransaction, NAME);
    make(index, context, Some(cache))
}

/// Makes a scan state in the memory context `context`. Deleting the context drops the state.
/// `cache` is the cache that keeps the state after the scan. If it is `None`, the state lives until
/// its context is deleted.
fn make<S: ScanState>(
    index: Rel<'static>,
    context: pg_sys::MemoryContext,
    cache: Option<Rc<StateCache>>,
) -> NonNull<Kept<S>> {
    let head = Head {
        context,
        cache,
        type_id: TypeId::of::<S>(),
    };
    let state = S::new(index);
    let kept = Kept { head, state };
    let kept = pgrx::PgMemoryContexts::For(context).leak_and_drop_on_delete(kept);
    NonNull::new(kept).expect("memory, or an error")
}

/// Calls `search` with a scan state of the index, and returns its result. Does not begin an index
/// scan of the server. That saves time for callers whose searches rarely find a row, and which
/// begin a scan only when they do. Does not count a search in the server's statistics.
pub fn without_scan<S: ScanState, T>(index: Rel, search: impl FnOnce(&mut S) -> T) -> T {
    // SAFETY: the index is open during the call. A cached state does not use it.
    let kept = take_or_make(unsafe { Rel::new(index.raw()) });
    let result = search(&mut live(kept).state);
    end(kept);
    result
}

/// Keeps the state of an ended scan for the next scan, or drops it.
fn end<S>(kept: NonNull<Kept<S>>) {
    let head = kept.cast::<Head>();
    let cache = live(head).cache.clone();
    if !cache.is_some_and(|cache| cache.put(head)) {
        drop_state(head);
    }
}

/// Drops the state of an ended scan, by deleting its memory context.
fn drop_state(head: NonNull<Head>) {
    let context = live(head).context;
    // SAFETY: the context was made for this state, and is never the current context.
    unsafe { pg_sys::MemoryContextDelete(context) }
}

impl<S: ScanState> ScanDesc<'_, S> {
    /// Makes a scan descriptor for `ambeginscan`. `keys` is the number of conditions of the scan,
    /// and `order_bys` is the number of its ORDER BY operators. The scan has no state before
    /// [`ScanDesc::restart`].
    pub fn begin(index: Rel, [keys, order_bys]: [i32; 2]) -> pg_sys::IndexScanDesc {
        // SAFETY: the index is open.
        unsafe {
            let scan = pg_sys::RelationGetIndexScan(index.raw(), keys, order_bys);
            (*scan).xs_itupdesc = (*index.raw()).rd_att;
            scan
        }
    }

    /// Wraps a scan descriptor that the server passes to a callback.
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

    /// State of the scan.
    #[inline]
    pub fn state(&mut self) -> &mut S {
        &mut self.kept().state
    }

    /// Starts or restarts the scan, for `amrescan`. `keys` has the conditions of the scan, and
    /// `order_bys` has its ORDER BY operators; null means that they are the same as before. Counts
    /// a search in the server's statistics. Returns the scan's state, its conditions and ORDER BY
    /// operators, and its snapshot if it has one.
    ///
    /// # Safety
    /// The numbers of conditions and ORDER BY operators are those passed to [`ScanDesc::begin`].
    /// The operators belong to the operator classes of the index, which is open.
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
            // So its state lives as long as the scan descriptor. Code that scans with a dirty
            // snapshot ends the scan before it returns.
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

    /// Makes the row at the address `tid` the current row of the scan, which the server reads next.
    /// If `recheck` is true, the server checks the scan's conditions again on this row. It always
    /// does so if the scan's snapshot is not an MVCC snapshot, because the row may have been
    /// replaced.
    #[inline]
    pub fn set_row(&mut self, tid: Tid, recheck: bool) {
        self.raw.xs_heaptid = item_pointer(tid);
        // SAFETY: null, as in scans for a bitmap, or a snapshot.
        let snapshot = unsafe { self.raw.xs_snapshot.as_ref() };
        self.raw.xs_recheck = recheck || !snapshot.is_some_and(compat::is_mvcc_snapshot);
        self.raw.xs_recheckorderby = false;
    }

    /// Sets the index tuple of the current row. In an index-only scan the server reads the row's
    /// columns from this tuple. `searched` returns the value of the searched column
    /// ([`Rel::searched_column`]), `None` for NULL. `column` is the position of this column,
    /// counted from 0. All other columns of the tuple are NULL. Raises an internal error if the
    /// value's length differs from the column's.
    pub fn set_index_tuple(
        &mut self,
        column: usize,
        searched: impl FnOnce(&S) -> Option<Value<'_>>,
    ) {
        let descriptor = self.raw.xs_itupdesc;
        let before = core::mem::replace(&mut self.raw.xs_itup, core::ptr::null_mut());
        let kept = self.kept();
        // SAFETY: the descriptor describes the columns of the index. The previous tuple was made
        // here, in this scan's context.
        self.raw.xs_itup = unsafe {
            let columns = (*descriptor).natts as usize;
            let mut values = vec![pg_sys::Datum::from(0); columns];
            let mut nulls = vec![true; columns];
            if let Some(value) = searched(&kept.state) {
                let attribute = compat::attribute(&*descriptor, column as i16 + 1);
                assert_eq!(value.length(), attribute.attlen);
                (values[column], nulls[column]) = (value.datum(), false);
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

    /// Ends the scan, for `amendscan`. Calls `tell` with the scan's state, in which the caller can
    /// read results of the scan. Then drops the state, unless its [`StateCache`] keeps it for the
    /// next scan.
    pub fn end(self, tell: impl FnOnce(&mut S)) {
        let Some(kept) = NonNull::new(self.raw.opaque.cast::<Kept<S>>()) else {
            return;
        };
        self.raw.opaque = core::ptr::null_mut();
        tell(&mut live(kept).state);
        end(kept);
    }
}

/// Bitmap of row addresses that a bitmap index scan fills.
pub struct Bitmap(*mut pg_sys::TIDBitmap);

impl Bitmap {
    /// Wraps the bitmap that the server passes to `amgetbitmap`.
    ///
    /// # Safety
    /// The bitmap outlives the value.
    #[inline]
    pub unsafe fn new(raw: *mut pg_sys::TIDBitmap) -> Self {
        Bitmap(raw)
    }

    /// Adds the addresses of rows to the bitmap. If `recheck` is true, the server checks the
    /// conditions again for each of these rows.
    pub fn add(&mut self, rows: &mut [pg_sys::ItemPointerData], recheck: bool) {
        // SAFETY: the bitmap lives.
        unsafe { pg_sys::tbm_add_tuples(self.0, rows.as_mut_ptr(), rows.len() as i32, recheck) }
    }
}
