//! Descriptors of index scans, and the state that an access method keeps in them.
use core::marker::PhantomData;

use neardup_blocktree::key::Tid;
use pgrx::pg_sys;

use super::compat;
use super::memory_context::small_context;
use super::rel::Rel;
use super::tid::item_pointer;
use super::value::Value;

/// A scan of an index with state of type `S`.
pub struct ScanDesc<'a, S> {
    raw: &'a mut pg_sys::IndexScanDescData,
    _state: PhantomData<&'a mut S>,
}

/// State of a scan, and the memory context that it lives in and goes with.
struct Kept<S> {
    context: pg_sys::MemoryContext,
    state: S,
}

impl<S> ScanDesc<'_, S> {
    /// Begins a scan. Its state is dropped with it, also when an error ends it.
    pub fn begin(
        index: Rel,
        keys: i32,
        order_bys: i32,
        state: impl FnOnce() -> S,
    ) -> pg_sys::IndexScanDesc {
        // SAFETY: the index is open. The state is dropped with the memory context.
        unsafe {
            let scan = pg_sys::RelationGetIndexScan(index.raw(), keys, order_bys);
            let state = state();
            // A context of its own: constraints begin and end a scan for each row of a statement.
            let context = small_context(c"neardup scan");
            let kept = Kept { context, state };
            let kept = pgrx::PgMemoryContexts::For(context).leak_and_drop_on_delete(kept);
            (*scan).opaque = kept.cast();
            (*scan).xs_itupdesc = (*index.raw()).rd_att;
            scan
        }
    }

    /// Wraps what the server passes.
    ///
    /// # Safety
    /// The scan was begun by [`ScanDesc::begin`] with state of this type, and has not ended.
    pub unsafe fn new(raw: pg_sys::IndexScanDesc) -> Self {
        ScanDesc {
            // SAFETY: the caller's promise.
            raw: unsafe { &mut *raw },
            _state: PhantomData,
        }
    }

    fn kept(&mut self) -> &mut Kept<S> {
        // SAFETY: put there by `begin`.
        unsafe { &mut *self.raw.opaque.cast() }
    }

    /// The state.
    #[inline]
    pub fn state(&mut self) -> &mut S {
        &mut self.kept().state
    }

    /// Counts a search in the statistics. Copies keys and orders to where the scan keeps them,
    /// unless they are null, and returns those, with the state; and whether the rows of
    /// transactions that have not ended are wanted as well.
    ///
    /// # Safety
    /// There are as many as the scan was begun with.
    pub unsafe fn restart(
        &mut self,
        keys: pg_sys::ScanKey,
        order_bys: pg_sys::ScanKey,
    ) -> (&mut S, [&[pg_sys::ScanKeyData]; 2], bool) {
        let scan = &mut *self.raw;
        let places = [
            (keys, scan.keyData, scan.numberOfKeys as usize),
            (order_bys, scan.orderByData, scan.numberOfOrderBys as usize),
        ];
        // SAFETY: the caller's promise. The server sets the snapshot when it begins the scan, which
        // it outlives, or leaves null.
        let (snapshot, lists) = unsafe {
            compat::count_index_search(scan);
            let lists = places.map(|(from, to, count)| {
                if count == 0 {
                    return &[][..];
                }
                if !from.is_null() {
                    core::ptr::copy(from, to, count);
                }
                core::slice::from_raw_parts(to, count)
            });
            (scan.xs_snapshot.as_ref(), lists)
        };
        let dirty = pg_sys::SnapshotType::SNAPSHOT_DIRTY;
        let sees_uncommitted = snapshot.is_some_and(|snapshot| snapshot.snapshot_type == dirty);
        (self.state(), lists, sees_uncommitted)
    }

    /// Returns whether rows will be used without the table being read.
    pub fn is_index_only(&self) -> bool {
        self.raw.xs_want_itup
    }

    /// Makes a row the current one. The server checks it again if `recheck` says so, or if the
    /// snapshot is not one of a moment: then the row may have been replaced.
    #[inline]
    pub fn give(&mut self, tid: Tid, recheck: bool) {
        self.raw.xs_heaptid = item_pointer(tid);
        // SAFETY: null, as in scans for a bitmap, or a snapshot.
        let snapshot = unsafe { self.raw.xs_snapshot.as_ref() };
        self.raw.xs_recheck = recheck || !snapshot.is_some_and(compat::is_mvcc_snapshot);
        self.raw.xs_recheckorderby = false;
    }

    /// Makes the index tuple of the current row: the value of the last column, and NULL for all
    /// others. Raises an internal error if the value is not as long as those of the column.
    pub fn give_tuple(&mut self, last: impl FnOnce(&S) -> Option<Value<'_>>) {
        let descriptor = self.raw.xs_itupdesc;
        let before = core::mem::replace(&mut self.raw.xs_itup, core::ptr::null_mut());
        let kept = self.kept();
        // SAFETY: the descriptor is that of the index, with as many columns; the tuple before was
        // made here, in this scan's context.
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
            let outer = pg_sys::MemoryContextSwitchTo(kept.context);
            let (values, nulls) = (values.as_mut_ptr(), nulls.as_mut_ptr());
            let tuple = pg_sys::index_form_tuple(descriptor, values, nulls);
            pg_sys::MemoryContextSwitchTo(outer);
            tuple
        };
    }

    /// Drops the state.
    pub fn end(mut self) {
        let context = self.kept().context;
        self.raw.opaque = core::ptr::null_mut();
        // SAFETY: the context was made by `begin`.
        unsafe { pg_sys::MemoryContextDelete(context) }
    }
}

/// Bitmap of rows that a scan fills.
pub struct Bitmap(*mut pg_sys::TIDBitmap);

impl Bitmap {
    /// Wraps what the server passes.
    ///
    /// # Safety
    /// The bitmap lives as long.
    pub unsafe fn new(raw: *mut pg_sys::TIDBitmap) -> Self {
        Bitmap(raw)
    }

    /// Adds rows, which the server checks again if `recheck` says so.
    pub fn add(&mut self, rows: &mut [pg_sys::ItemPointerData], recheck: bool) {
        // SAFETY: the bitmap lives.
        unsafe { pg_sys::tbm_add_tuples(self.0, rows.as_mut_ptr(), rows.len() as i32, recheck) }
    }
}
