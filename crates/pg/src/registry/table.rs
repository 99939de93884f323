//! The table of rows in flight, in shared memory that all backends read and write. It is an array
//! of slots. A row in flight uses one slot or more.
//!
//! The server has one segment of shared memory for it. The first backend that needs the segment
//! creates it:
//!
//! ```text
//! | head: lock, number of slots in use | group of each slot | slots |
//! ```
//! All parts after the lock are read and written only while the lock is held, for less than a
//! microsecond. No code under the lock can raise an error or wait.
//!
//! A group is a hash of everything that two near-duplicates must have in common. A row has a slot
//! for each of its groups. A value longer than one [`ValuePiece`] continues in more slots, which
//! the slots of all groups of the row share.
use std::cell::Cell;

use pgrx::{PgSqlErrorCode, PgTryBuilder, pg_sys};

use super::value::{Value, ValuePiece};
use crate::errors::UserError;
use crate::{compat, server};

/// Maximum number of slots that a backend uses at the same time. Callers raise an error before a
/// backend exceeds the limit (`quota`). The table has this many slots for each backend that the
/// server allows, so a backend always finds free slots, regardless of other backends.
pub const SLOTS_PER_BACKEND: usize = 128;

/// Name of the segment of shared memory. It ends with the version of the segment's layout.
/// Increment the version with every change of the layout. After an update of the library and until
/// the server restarts, backends may have two versions of the library, which must not share a
/// segment.
const NAME: &core::ffi::CStr = c"neardup_rows_in_flight_3";

unsafe extern "C-unwind" {
    // These functions raise no error unless a backend takes a lock that it already holds. So they
    // are declared without pgrx's wrapper around C functions, as in `crate::storage::page_guard`.
    fn LWLockAcquire(lock: *mut pg_sys::LWLock, mode: pg_sys::LWLockMode::Type) -> bool;
    fn LWLockRelease(lock: *mut pg_sys::LWLock);
}

/// Identifies a row in flight. Two rows in flight never have the same token at the same time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(C)]
pub struct Token {
    /// Process id of the backend that writes the row.
    pub process: i32,
    /// Serial number of the row among the rows that the backend has published.
    pub number: u32,
}

/// Row to publish. Other backends compare its value with the values of their own rows.
pub struct Row {
    /// Hash of everything that two near-duplicates must have in common: the table, the column, the
    /// values in the scope (the columns that must be equal) and the kind of value. The row is
    /// compared with those rows of other backends that have this group. A collision of hashes can
    /// cause an unnecessary wait.
    pub group: u64,
    /// Further groups, hashed like `group`, in which other backends find this row. They belong to
    /// triggers that do not fire for this row, but that may compare other rows with it. This row
    /// itself is compared only with rows in `group`.
    pub other_groups: Vec<u64>,
    /// The value that decides whether two rows are near.
    pub value: Value,
    /// OID of the row's table, or partition.
    pub table: pg_sys::Oid,
    /// Attribute number of the column that `value` is from.
    pub column: i16,
}

/// Row in flight, as `neardup_expert_rows_in_flight` shows it.
pub struct Listed {
    /// Process id of the backend that writes the row.
    pub process: i32,
    /// OID of the row's table, or partition.
    pub table: pg_sys::Oid,
    /// Attribute number of the column whose value is compared.
    pub column: i16,
}

/// First part of the segment: the lock, and the number of slots in use.
#[repr(C, align(128))]
struct Head {
    lock: pg_sys::LWLock,
    /// Number of slots up to and including the last slot in use. Later slots are free.
    used: usize,
}

/// Slot of the table. A row has one slot for each of its groups, with the first piece of the row's
/// value. Further slots have the later pieces of a long value. The group of a slot is in a separate
/// array.
#[derive(Clone, Copy)]
#[repr(C)]
struct Slot {
    /// First piece of the row's value, or a later piece if the slot continues the value.
    piece: ValuePiece,
    /// Token of the row that uses the slot.
    token: Token,
    /// Number of the slot with the next piece of the value, or [`END`].
    next: u32,
    database: u32,
    table: u32,
    column: i16,
    /// 1 if another backend has read the token and may wait for the row, otherwise 0.
    token_was_read: u16,
}

/// Value of `next` in the slot with the last piece of a value.
const END: u32 = u32::MAX;
/// Group of a free slot.
const FREE: u64 = 0;
/// Group of a slot that continues a row's value.
const CONTINUATION: u64 = 1;

/// Returns the number that the table stores for a row's group. It is the group itself, unless the
/// group is [`FREE`] or [`CONTINUATION`], which have another meaning in the table. For these two
/// groups it is 2.
fn stored_group(group: u64) -> u64 {
    group.max(CONTINUATION + 1)
}

impl Row {
    /// Number of slots that the row needs: one for each group, and one for each piece of the value
    /// after the first.
    pub fn slots(&self) -> usize {
        self.other_groups.len() + self.value.pieces().len()
    }
}

/// OID of the database that this backend is connected to.
pub fn database() -> pg_sys::Oid {
    server::database()
}

/// The segment with the table of rows in flight, as it is mapped in this backend.
#[derive(Clone, Copy)]
pub struct Table {
    head: *mut Head,
    /// Number of slots in the table, used and free.
    slots: usize,
}

/// The parts of the segment, for code that holds its lock.
struct Parts<'a> {
    /// Number of slots up to and including the last slot in use.
    used: &'a mut usize,
    /// Group of each slot, by slot number: the [`stored_group`] of a row, [`FREE`] or
    /// [`CONTINUATION`].
    groups: &'a mut [u64],
    slots: &'a mut [Slot],
}

impl Parts<'_> {
    /// Iterates over the pieces of the value whose first piece is in `slot`.
    fn pieces(&self, slot: usize) -> impl Iterator<Item = &ValuePiece> {
        let first = self.slots.get(slot);
        core::iter::successors(first, |slot| self.slots.get(slot.next as usize))
            .map(|slot| &slot.piece)
    }

    /// Adds the numbers of `needed` free slots to `taken`. Returns false if fewer slots are free.
    fn find_free(&self, needed: usize, taken: &mut Vec<usize>) -> bool {
        let (used, all) = (*self.used, self.slots.len());
        let free = (0..used).filter(|&slot| self.groups[slot] == FREE);
        taken.extend(free.chain(used..all).take(needed));
        taken.len() == needed
    }

    /// Writes a row with its token to the free slots with the numbers `slots`. `database` is the
    /// OID of the row's database.
    fn write(&mut self, row: &Row, token: Token, database: u32, slots: &[usize]) {
        let pieces = row.value.pieces();
        let groups = core::iter::once(row.group).chain(row.other_groups.iter().copied());
        let groups = groups.map(stored_group);
        let (heads, continuation) = slots.split_at(1 + row.other_groups.len());
        let next = |position: usize| continuation.get(position).map_or(END, |&slot| slot as u32);
        let slot = |piece, next| Slot {
            piece,
            token,
            next,
            database,
            table: row.table.to_u32(),
            column: row.column,
            token_was_read: 0,
        };
        for (&head, group) in heads.iter().zip(groups) {
            self.slots[head] = slot(pieces[0], next(0));
            self.groups[head] = group;
        }
        for (position, (&own, &piece)) in continuation.iter().zip(&pieces[1..]).enumerate() {
            self.slots[own] = slot(piece, next(position + 1));
            self.groups[own] = CONTINUATION;
        }
        let end = slots.iter().max().map_or(0, |last| last + 1);
        *self.used = end.max(*self.used);
    }

    /// Reduces `used` to the last slot in use, so that searches skip the free slots after it.
    fn trim(&mut self) {
        while *self.used > 0 && self.groups[*self.used - 1] == FREE {
            *self.used -= 1;
        }
    }
}

/// Why [`Table::publish`] did not publish a row.
pub enum Refusal {
    /// Another backend has a row in flight within the radius. Has the token of that row.
    Near(Token),
    /// The table has too few free slots.
    Full,
}

impl Table {
    /// The server's table of rows in flight. Creates the table if this backend is the first to use
    /// it. Raises error 53200 if there is no shared memory for the table.
    pub fn get() -> Table {
        thread_local! {
            /// The table as mapped in this backend. It stays mapped as long as the backend lives.
            static TABLE: Cell<Option<Table>> = const { Cell::new(None) };
        }
        TABLE.with(|known| {
            known.get().unwrap_or_else(|| {
                let table = attach();
                known.set(Some(table));
                table
            })
        })
    }

    /// Calls `work` with the parts of the segment while holding the segment's lock. Returns the
    /// result of `work`.
    fn locked<T>(self, work: impl FnOnce(Parts) -> T) -> T {
        let n = self.slots;
        // SAFETY: the segment is as long as `attach` computed, and any bytes are valid values of
        // the parts. No other backend has references into it while this backend has the lock.
        unsafe {
            let lock = &raw mut (*self.head).lock;
            LWLockAcquire(lock, pg_sys::LWLockMode::LW_EXCLUSIVE);
            let groups = self.head.add(1).cast::<u64>();
            let slots = groups.add(n).cast::<Slot>();
            let result = work(Parts {
                used: &mut (*self.head).used,
                groups: core::slice::from_raw_parts_mut(groups, n),
                slots: core::slice::from_raw_parts_mut(slots, n),
            });
            LWLockRelease(lock);
            result
        }
    }

    /// Writes `row` with its `token` to free slots, and returns the numbers of the slots. Returns
    /// an error if another backend has a row in `row.group` at a distance of at most `radius`, or
    /// if there are too few free slots. `radius` is a number of bits for fingerprints, and a number
    /// of hashes for signatures.
    pub fn publish(self, row: &Row, radius: u32, token: Token) -> Result<Vec<usize>, Refusal> {
        let database = database().to_u32();
        let (group, needed) = (stored_group(row.group), row.slots());
        // Reserves memory now, because nothing may fail while the lock is held.
        let mut taken = Vec::with_capacity(needed);
        self.locked(|mut parts| {
            for i in 0..*parts.used {
                if parts.groups[i] != group {
                    continue;
                }
                let other = parts.slots[i];
                // No backend can wait for a token of another database.
                if other.token.process != token.process
                    && other.database == database
                    && row.value.distance(parts.pieces(i)) <= radius
                {
                    parts.slots[i].token_was_read = 1;
                    return Err(Refusal::Near(other.token));
                }
            }
            if !parts.find_free(needed, &mut taken) {
                return Err(Refusal::Full);
            }
            parts.write(row, token, database, &taken);
            Ok(())
        })?;
        Ok(taken)
    }

    /// Frees slots. `rows` has the number of each slot and the token of the row that used it. Skips
    /// a slot that another row uses by now. Returns true if another backend has read one of the
    /// tokens, and so may wait for that row. No backend can read the tokens after this call.
    pub fn clear(self, rows: impl IntoIterator<Item = (usize, Token)>) -> bool {
        self.locked(|mut parts| {
            let mut was_read = false;
            for (i, token) in rows {
                if parts.groups[i] != FREE && parts.slots[i].token == token {
                    parts.groups[i] = FREE;
                    was_read |= parts.slots[i].token_was_read != 0;
                }
            }
            parts.trim();
            was_read
        })
    }

    /// Frees all slots with this token.
    pub fn clear_all(self, token: Token) {
        self.locked(|mut parts| {
            for i in 0..*parts.used {
                if parts.slots[i].token == token {
                    parts.groups[i] = FREE;
                }
            }
            parts.trim();
        });
    }

    /// Lists the rows in flight of all backends in this database.
    pub fn list(self) -> Vec<Listed> {
        let database = database().to_u32();
        let mut slots = Vec::with_capacity(self.slots);
        self.locked(|parts| {
            for (slot, group) in parts.slots.iter().zip(&*parts.groups).take(*parts.used) {
                if *group != FREE && slot.database == database {
                    slots.push(*slot);
                }
            }
        });
        // A row may have several slots, all with the same token.
        slots.sort_unstable_by_key(|slot| slot.token);
        slots.dedup_by_key(|slot| slot.token);
        let listed = slots.into_iter().map(|slot| Listed {
            process: slot.token.process,
            table: pg_sys::Oid::from(slot.table),
            column: slot.column,
        });
        listed.collect()
    }
}

/// Maps the segment in this backend. Creates the segment if no backend has done so.
fn attach() -> Table {
    let backends = server::max_backends() as usize;
    let slots = SLOTS_PER_BACKEND * backends;
    let size = size_of::<Head>() + slots * (size_of::<u64>() + size_of::<Slot>());
    let segment = PgTryBuilder::new(|| {
        // SAFETY: called in a transaction. All backends compute the same size.
        unsafe { compat::named_segment(NAME, size, initialize) }
    })
    // `no_memory` raises each caught error again, with another message.
    .catch_when(PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY, |_| no_memory(size))
    .catch_when(PgSqlErrorCode::ERRCODE_DISK_FULL, |_| no_memory(size))
    .execute();
    let head = segment.cast::<Head>();
    // SAFETY: `initialize` made the head. The name is static.
    unsafe {
        let tranche = i32::from((*head).lock.tranche);
        pg_sys::LWLockRegisterTranche(tranche, c"neardup_expert_rows_in_flight".as_ptr());
    }
    Table { head, slots }
}

/// Initializes the head of a new segment. Slots need no initial values: they are written before
/// they count as used, and only used slots are read.
unsafe extern "C-unwind" fn initialize(segment: *mut core::ffi::c_void) {
    let head = segment.cast::<Head>();
    // SAFETY: the segment is new, has room for the head, and no other backend sees it yet.
    unsafe {
        (*head).used = 0;
        pg_sys::LWLockInitialize(&raw mut (*head).lock, pg_sys::LWLockNewTrancheId());
    }
}

fn no_memory(size: usize) -> ! {
    UserError::new(
        PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY,
        "could not allocate shared memory for the rows that neardup_dedup writes",
    )
    .detail(format!("All sessions together need {size} bytes."))
    .hint(
        "Make more shared memory available, or reduce max_connections, which determines the size.",
    )
    .raise()
}
