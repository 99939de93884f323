//! The look for the nearest row that is there, or may be once another transaction commits.
use std::collections::HashSet;

use pgrx::{PgSqlErrorCode, pg_sys};

use super::columns::Columns;
use super::flight::Flight;
use super::row_lock::{Locked, Mode, SeenRow};
use super::same_row::SameRow;
use crate::am::strategies;
use crate::pg::compat;
use crate::pg::errors::UserError;

/// What is looked for.
pub struct Query<'a> {
    pub fingerprint: pg_sys::Datum,
    /// The values of the scope columns, in the index's order.
    pub scope: &'a [pg_sys::Datum],
    pub own_row: OwnRow<'a>,
}

/// What is no other row.
pub enum OwnRow<'a> {
    /// The version of the row that is being replaced.
    Version(pg_sys::ItemPointerData),
    /// Whatever has a unique key of this new row. It is for ON CONFLICT to say what becomes of it,
    /// and an error otherwise.
    Key(SameRow<'a>),
}

/// The nearest row.
pub struct Found {
    /// In bits, or mismatches.
    pub distance: u32,
    /// Its key, if rows have one; `None` for NULL as well.
    pub key: Option<pg_sys::Datum>,
    /// Whether it was committed after the transaction's snapshot was taken, in a transaction that
    /// sees only what was there then.
    pub unseen: bool,
    pub row: SeenRow,
}

/// What a look comes to.
enum LookupResult {
    /// No other row; with near rows that are the new one own_row by a unique key.
    Nothing(Vec<SeenRow>),
    Found(Found),
    /// A near row that this transaction writes or deletes and has not ended yet; with the token of
    /// a speculative insertion, or 0.
    Undecided(pg_sys::TransactionId, u32),
}

/// The nearest row within the distance, once every transaction that could change the answer has
/// ended. When it returns `None`, the row is published as one in flight, so that the answer stays
/// true; the caller withdraws it if it is not to be written after all.
///
/// # Safety
/// The relation is the one that the columns are of, and the query's values of their types.
pub unsafe fn find_existing(
    relation: pg_sys::Relation,
    columns: &Columns,
    query: &Query,
    flight: &Flight,
) -> Option<Found> {
    // SAFETY: the caller's promise.
    unsafe {
        let row = flight.row(columns, query.fingerprint, query.scope);
        loop {
            let ahead = flight.publish(&row).err();
            match (settled_lookup(relation, columns, query), ahead) {
                // Also if a row in flight may come to be nearer still: this one is near enough.
                (LookupResult::Found(found), _) => return Some(found),
                (LookupResult::Undecided(transaction, token), _) => {
                    // It may have to wait for this row before it can end.
                    flight.withdraw();
                    if token != 0 {
                        pg_sys::SpeculativeInsertionWait(transaction, token);
                    } else {
                        let mut nowhere = pg_sys::ItemPointerData::default();
                        let operation = pg_sys::XLTW_Oper::XLTW_None;
                        pg_sys::XactLockTableWait(transaction, relation, &mut nowhere, operation);
                    }
                }
                (LookupResult::Nothing(_), Some(ahead)) => ahead.wait(),
                (LookupResult::Nothing(same), None) => match keep_same(relation, &same) {
                    Ok(()) => return None,
                    Err(None) => {
                        flight.withdraw();
                        pgrx::check_for_interrupts!();
                    }
                    Err(Some(busy)) => {
                        // Who holds it may have to wait for this row before it can end.
                        flight.withdraw();
                        busy.lock(relation, Mode::NoKeyUpdate, true);
                    }
                },
            }
        }
    }
}

/// Locks the rows that are the new one by a unique key, so that they keep that key until the new
/// row's is written, or the conflict with it found. An error is a row to wait for, or `None` if one
/// has changed since the look.
unsafe fn keep_same(relation: pg_sys::Relation, same: &[SeenRow]) -> Result<(), Option<SeenRow>> {
    for row in same {
        // SAFETY: the caller's promise.
        match unsafe { row.lock(relation, Mode::NoKeyUpdate, false) } {
            Locked::Yes => {}
            Locked::Changed => return Err(None),
            Locked::Busy => return Err(Some(*row)),
        }
    }
    Ok(())
}

/// Looks until no near row can have moved past the look.
unsafe fn settled_lookup(
    relation: pg_sys::Relation,
    columns: &Columns,
    query: &Query,
) -> LookupResult {
    let mut vanished = HashSet::new();
    loop {
        let known = core::mem::take(&mut vanished);
        // SAFETY: the caller's promise.
        let result = unsafe { lookup(relation, columns, query, &mut vanished) };
        // A version that has vanished since the last look may have a successor, which stands in the
        // index where this look had passed already. It need not be published: an update that leaves
        // the fingerprint as it is does not come by here.
        if !matches!(result, LookupResult::Nothing(_)) || vanished.is_subset(&known) {
            return result;
        }
        pgrx::check_for_interrupts!();
    }
}

/// One look. `vanished` gets the addresses of versions that nobody will see any more who comes later,
/// but that have not vanished so long ago that all who are there now came later.
unsafe fn lookup(
    relation: pg_sys::Relation,
    columns: &Columns,
    query: &Query,
    vanished: &mut HashSet<(u32, u16)>,
) -> LookupResult {
    // SAFETY: what is opened here is closed here, and by the server after an error. The snapshot
    // needs nothing set but its type.
    unsafe {
        let index = pg_sys::index_open(columns.index, pg_sys::RowExclusiveLock as pg_sys::LOCKMODE);
        let mut snapshot = pg_sys::SnapshotData {
            snapshot_type: pg_sys::SnapshotType::SNAPSHOT_DIRTY,
            ..Default::default()
        };
        let (mut keys, mut order) = conditions(columns, query);
        let slot = pg_sys::table_slot_create(relation, core::ptr::null_mut());
        let scan = compat::index_beginscan(
            relation,
            index,
            &mut snapshot,
            keys.len() as i32,
            order.len() as i32,
        );
        pg_sys::index_rescan(
            scan,
            keys.as_mut_ptr(),
            keys.len() as i32,
            order.as_mut_ptr(),
            order.len() as i32,
        );
        let forward = pg_sys::ScanDirection::ForwardScanDirection;
        let in_order = columns.metric.comes_in_order();
        let mut result = LookupResult::Nothing(Vec::new());
        let mut same = Vec::new();
        let mut nearest = None;
        loop {
            let another_version = (*scan).xs_heap_continue;
            if !another_version && pg_sys::index_getnext_tid(scan, forward).is_null() {
                break;
            }
            let address = pgrx::itemptr::item_pointer_get_both((*scan).xs_heaptid);
            if !pg_sys::index_fetch_heap(scan, slot) {
                // The server would take the entry away for a version that is dead to all.
                if !another_version && !(*scan).kill_prior_tuple {
                    vanished.insert(address);
                }
                continue;
            }
            let values = Values::of(slot);
            let Some(distance) = values.distance(columns, query) else {
                continue;
            };
            // A row that another transaction is inserting has to be waited for even so: that
            // transaction may give it another key.
            let is_inserted = snapshot.xmin != pg_sys::InvalidTransactionId;
            if !is_inserted && query.own_row.is_same(slot) {
                same.push(SeenRow::of(slot));
                continue;
            }
            // Of rows that are equally near one that will stay is better than one that may not.
            let is_undecided = matches!(result, LookupResult::Undecided(..));
            if nearest.is_some_and(|best| best < distance || best == distance && !is_undecided) {
                continue;
            }
            // Set by the look at this row.
            let other = match snapshot.xmin {
                pg_sys::InvalidTransactionId => snapshot.xmax,
                writer => writer,
            };
            result = if other == pg_sys::InvalidTransactionId {
                LookupResult::Found(Found {
                    distance,
                    key: columns.key.and_then(|key| values.copy(key)),
                    unseen: is_unseen(relation, slot),
                    row: SeenRow::of(slot),
                })
            } else {
                LookupResult::Undecided(other, snapshot.speculativeToken)
            };
            nearest = Some(distance);
            if in_order || distance == 0 && matches!(result, LookupResult::Found(_)) {
                break;
            }
        }
        pg_sys::index_endscan(scan);
        pg_sys::ExecDropSingleTupleTableSlot(slot);
        pg_sys::index_close(index, pg_sys::NoLock as pg_sys::LOCKMODE);
        match result {
            LookupResult::Nothing(_) => LookupResult::Nothing(same),
            other => other,
        }
    }
}

/// The scan keys: equality for each scope column, a ball, and the order by distance if there is
/// one.
unsafe fn conditions(
    columns: &Columns,
    query: &Query,
) -> (Vec<pg_sys::ScanKeyData>, Vec<pg_sys::ScanKeyData>) {
    let key = |column: usize, strategy: u16, argument| pg_sys::ScanKeyData {
        sk_attno: column as i16,
        sk_strategy: strategy,
        sk_argument: argument,
        ..Default::default()
    };
    let mut keys: Vec<_> = (query.scope.iter().enumerate())
        .map(|(i, &value)| key(i + 1, strategies::EQUAL, value))
        .collect();
    let last = query.scope.len() + 1;
    // SAFETY: the caller's promise.
    let ball = unsafe { columns.metric.ball(query.fingerprint) };
    keys.push(key(last, strategies::WITHIN, ball));
    let order = match columns.metric.comes_in_order() {
        true => vec![key(last, strategies::DISTANCE, query.fingerprint)],
        false => Vec::new(),
    };
    (keys, order)
}

/// The values of a row in a slot.
struct Values<'a> {
    slot: &'a pg_sys::TupleTableSlot,
}

impl<'a> Values<'a> {
    unsafe fn of(slot: *mut pg_sys::TupleTableSlot) -> Values<'a> {
        // SAFETY: the slot holds a row.
        unsafe {
            pg_sys::slot_getallattrs(slot);
            Values { slot: &*slot }
        }
    }

    /// The value in a column, counted from 1; `None` for NULL.
    fn get(&self, column: i16) -> Option<pg_sys::Datum> {
        let at = column as usize - 1;
        // SAFETY: all columns have been taken apart.
        unsafe { (!*self.slot.tts_isnull.add(at)).then(|| *self.slot.tts_values.add(at)) }
    }

    /// The same as a copy in the current memory context.
    unsafe fn copy(&self, column: i16) -> Option<pg_sys::Datum> {
        // SAFETY: the value is of the column's type.
        unsafe {
            let value = self.get(column)?;
            let form = &*compat::attribute(self.slot.tts_tupleDescriptor, column as usize - 1);
            Some(match form.attlen {
                _ if form.attbyval => value,
                -1 => pg_sys::Datum::from(pg_sys::pg_detoast_datum_copy(value.cast_mut_ptr())),
                -2 => pg_sys::Datum::from(pg_sys::pstrdup(value.cast_mut_ptr())),
                length => {
                    let place = pg_sys::palloc(length as usize).cast::<u8>();
                    core::ptr::copy_nonoverlapping(
                        value.cast_mut_ptr::<u8>(),
                        place,
                        length as usize,
                    );
                    pg_sys::Datum::from(place)
                }
            })
        }
    }

    /// The distance to what is looked for; `None` if this row does not count.
    unsafe fn distance(&self, columns: &Columns, query: &Query) -> Option<u32> {
        if let OwnRow::Version(own_row) = query.own_row
            && pgrx::itemptr::item_pointer_get_both(own_row)
                == pgrx::itemptr::item_pointer_get_both(self.slot.tts_tid)
        {
            return None;
        }
        // What is marked is a near-duplicate own_row, and no original.
        if columns.mark.is_some_and(|mark| self.get(mark).is_some()) {
            return None;
        }
        // SAFETY: the values are of the columns' types.
        unsafe {
            // The index keeps but a hash of the scope.
            let same_scope = (columns.scope.iter().zip(query.scope)).all(|(scope, &value)| {
                self.get(scope.column)
                    .is_some_and(|own| scope.equal(own, value))
            });
            let fingerprint = self.get(columns.fingerprint)?;
            if !same_scope {
                return None;
            }
            let distance = columns.metric.distance(fingerprint, query.fingerprint)?;
            columns.metric.is_near(distance).then_some(distance)
        }
    }
}

impl OwnRow<'_> {
    /// Whether a unique key says that a row is the one that is to be inserted.
    unsafe fn is_same(&self, slot: *mut pg_sys::TupleTableSlot) -> bool {
        match self {
            OwnRow::Version(_) => false,
            // SAFETY: the slot holds a row of the table.
            OwnRow::Key(row) => unsafe { row.is(slot) },
        }
    }
}

/// Whether a row that is committed is not in the transaction's snapshot, if it has one for all of
/// its statements.
unsafe fn is_unseen(relation: pg_sys::Relation, slot: *mut pg_sys::TupleTableSlot) -> bool {
    // SAFETY: the slot holds a row of the relation.
    unsafe {
        if pg_sys::XactIsoLevel < pg_sys::XACT_REPEATABLE_READ as i32 {
            return false;
        }
        let snapshot = pg_sys::GetActiveSnapshot();
        if pg_sys::table_tuple_satisfies_snapshot(relation, slot, snapshot) {
            return false;
        }
        // The statement's own rows are not in its snapshot either.
        let mut null = false;
        let system_column = pg_sys::MinTransactionIdAttributeNumber;
        let writer = pg_sys::slot_getsysattr(slot, system_column, &mut null);
        let writer = pg_sys::TransactionId::from(writer.value() as u32);
        null || !pg_sys::TransactionIdIsCurrentTransactionId(writer)
    }
}

/// 40001, as the server's own ON CONFLICT DO NOTHING has it: the answer would be a row that the
/// transaction cannot see.
pub fn refuse_unseen() -> ! {
    UserError::new(
        PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE,
        "could not serialize access due to a near-duplicate inserted meanwhile",
    )
    .detail("Another transaction has committed it since this transaction's snapshot was taken.")
    .hint("Repeat the transaction.")
    .raise()
}
