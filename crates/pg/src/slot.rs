//! Rows of tables in the executor's slots (`TupleTableSlot`).
use core::marker::PhantomData;

use pgrx::pg_sys;

use super::compat;
use super::rel::Rel;
use super::spi::has_transaction_snapshot;
use super::value::Value;

/// Slot that holds one row of a table at a time.
pub struct Slot<'a> {
    raw: *mut pg_sys::TupleTableSlot,
    table: pg_sys::Oid,
    _table: PhantomData<&'a ()>,
}

impl<'a> Slot<'a> {
    /// Makes an empty slot for rows of a table.
    pub fn new(table: Rel<'a>) -> Self {
        Slot {
            // SAFETY: the table is open as long as the slot lives.
            raw: unsafe { pg_sys::table_slot_create(table.raw(), core::ptr::null_mut()) },
            table: table.oid(),
            _table: PhantomData,
        }
    }

    /// Pointer to the server's slot.
    #[inline]
    pub fn raw(&self) -> *mut pg_sys::TupleTableSlot {
        self.raw
    }

    /// OID of the table.
    #[inline]
    pub fn table(&self) -> pg_sys::Oid {
        self.table
    }

    /// Returns whether the slot holds no row.
    #[inline]
    pub fn is_empty(&self) -> bool {
        u32::from(self.data().tts_flags) & pg_sys::TTS_FLAG_EMPTY != 0
    }

    #[inline]
    fn data(&self) -> &pg_sys::TupleTableSlot {
        // SAFETY: the slot is freed only when `self` is dropped.
        unsafe { &*self.raw }
    }

    /// Value of the column with this number, counted from 1, in the slot's row; `None` for NULL.
    /// Raises an internal error if the slot is empty.
    pub fn get(&self, column: i16) -> Option<Value<'_>> {
        assert!(!self.is_empty(), "no row in the slot");
        // SAFETY: the slot holds a row, and its descriptor has the number of columns. The value
        // lives as long as the row is in the slot.
        unsafe {
            let attribute = compat::attribute(&*(*self.raw).tts_tupleDescriptor, column);
            let mut null = false;
            let value = pg_sys::slot_getattr(self.raw, i32::from(column), &mut null);
            (!null).then(|| Value::new(value, attribute))
        }
    }

    /// Address of the row in its table.
    pub fn address(&self) -> pg_sys::ItemPointerData {
        self.data().tts_tid
    }

    /// Returns whether this transaction has written the row. Raises an internal error if the slot
    /// is empty.
    pub fn is_own(&self) -> bool {
        assert!(!self.is_empty(), "no row in the slot");
        let mut null = false;
        // SAFETY: the slot holds a row of a table.
        unsafe {
            let column = pg_sys::MinTransactionIdAttributeNumber;
            let writer = pg_sys::slot_getsysattr(self.raw, column, &mut null);
            let writer = pg_sys::TransactionId::from(writer.value() as u32);
            !null && pg_sys::TransactionIdIsCurrentTransactionId(writer)
        }
    }

    /// Returns true if another transaction has committed the slot's row too late for the snapshot
    /// of this REPEATABLE READ or SERIALIZABLE transaction. Returns false for a row that the
    /// snapshot sees, and for a row that this transaction has written. Always false in READ
    /// COMMITTED, where each statement takes a snapshot. The row must belong to `table`, and must
    /// be committed or written by this transaction. Raises an internal error if the slot is empty.
    pub fn is_unseen(&self, table: Rel) -> bool {
        if !has_transaction_snapshot() {
            return false;
        }
        assert!(!self.is_empty(), "no row in the slot");
        // The active snapshot may be later than the transaction's: code that compares rows again
        // after a deletion uses the latest snapshot, as foreign key actions do. SAFETY: the slot
        // holds a row of the table; the transaction has taken its snapshot.
        let is_seen = unsafe {
            let snapshot = pg_sys::GetTransactionSnapshot();
            pg_sys::table_tuple_satisfies_snapshot(table.raw(), self.raw, snapshot)
        };
        // A row that the current statement has written is invisible to the snapshot too. `is_own`
        // excludes such a row.
        !is_seen && !self.is_own()
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        // After an error the server drops the slot and releases its pin.
        if !std::thread::panicking() {
            // SAFETY: made by us.
            unsafe { pg_sys::ExecDropSingleTupleTableSlot(self.raw) }
        }
    }
}

/// Scans a whole table. Calls `each` once for every row that the active snapshot sees, with a slot
/// that holds the row.
pub fn for_each_row(table: Rel, mut each: impl FnMut(&Slot)) {
    let slot = Slot::new(table);
    // SAFETY: the table is open. The scan ends here or with an error, before the active snapshot
    // is released.
    unsafe {
        let snapshot = pg_sys::GetActiveSnapshot();
        let scan = pg_sys::table_beginscan(table.raw(), snapshot, 0, core::ptr::null_mut());
        let forward = pg_sys::ScanDirection::ForwardScanDirection;
        while pg_sys::table_scan_getnextslot(scan, forward, slot.raw()) {
            pgrx::check_for_interrupts!();
            each(&slot);
        }
        pg_sys::table_endscan(scan);
    }
}
