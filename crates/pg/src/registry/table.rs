//! The table of rows in flight, in shared memory.
//!
//! The server has one segment. The first backend that needs it creates it:
//!
//! ```text
//! | head: lock, number of slots in use | group of each slot | slots |
//! ```
//! All parts after the lock are read and written only while it is held, for less than a
//! microsecond. No code under the lock can raise an error or wait.
//!
//! A row has a slot for each of its groups. A value longer than one piece continues in more slots,
//! which all groups of the row share.
use std::cell::Cell;

use pgrx::{PgSqlErrorCode, PgTryBuilder, pg_sys};

use super::value::{Value, ValuePiece};
use crate::errors::UserError;
use crate::{compat, server};

/// Maximum number of slots that a backend uses at the same time. The caller enforces it. The table
/// has this many slots per backend of the server, so a backend always finds free slots,
/// regardless of other backends.
pub const SLOTS_PER_BACKEND: usize = 128;

/// The segment's name. It ends with the version of the layout, which every change of the layout
/// increments: until its restart a server may have backends with two versions of the library.
const NAME: &core::ffi::CStr = c"neardup_rows_in_flight_3";

unsafe extern "C-unwind" {
    // Neither raises an error unless a lock is held twice. The declarations therefore avoid pgrx's
    // wrapper around C functions, as in `crate::storage::page_guard`.
    fn LWLockAcquire(lock: *mut pg_sys::LWLock, mode: pg_sys::LWLockMode::Type) -> bool;
    fn LWLockRelease(lock: *mut pg_sys::LWLock);
}

/// Identifies a row in flight. No two rows in flight have the same token at the same time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(C)]
pub struct Token {
    /// The backend's process id.
    pub process: i32,
    /// Counts the backend's rows.
    pub number: u32,
}

/// A row in the form in which other backends compare it with their rows.
pub struct Row {
    /// Hash of everything that two near-duplicates must have in common: table, column, scope, and
    /// kind of value. A collision can cause an unnecessary wait.
    pub group: u64,
    /// Hashes, made like `group`, for the scopes of triggers that do not fire for this row but may
    /// compare their rows with it. Others find this row in these groups, but the row itself is not
    /// compared with rows in them.
    pub other_groups: Vec<u64>,
    /// The value to compare.
    pub value: Value,
    /// The row's table, or partition.
    pub table: pg_sys::Oid,
    /// Attribute number of the value's column.
    pub column: i16,
}

/// A row in flight, for `neardup_expert_rows_in_flight`.
pub struct Listed {
    /// Process id of the backend that writes the row.
    pub process: i32,
    /// The row's table, or partition.
    pub table: pg_sys::Oid,
    /// Attribute number of the compared column.
    pub column: i16,
}

#[repr(C, align(128))]
struct Head {
    lock: pg_sys::LWLock,
    /// Slots from here on are free.
    used: usize,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Slot {
    piece: ValuePiece,
    token: Token,
    /// Slot with the next piece of the value, or `END`.
    next: u32,
    database: u32,
    table: u32,
    column: i16,
    /// Not 0 if another backend has learned the token and may wait for it.
    known: u16,
}

/// No slot.
const END: u32 = u32::MAX;
/// Group of a free slot.
const FREE: u64 = 0;
/// Group of a slot that continues the value of a row.
const CONTINUATION: u64 = 1;

/// The stored form of a group, distinct from [`FREE`] and [`CONTINUATION`].
fn own_group(group: u64) -> u64 {
    group.max(CONTINUATION + 1)
}

impl Row {
    /// Number of slots that the row needs.
    pub fn slots(&self) -> usize {
        self.other_groups.len() + self.value.pieces().len()
    }
}

/// The database that this backend is connected to.
pub fn database() -> pg_sys::Oid {
    server::database()
}

/// The segment as it is mapped in this backend.
#[derive(Clone, Copy)]
pub struct Table {
    head: *mut Head,
    slots: usize,
}

/// The parts of the segment while the lock is held.
struct Parts<'a> {
    used: &'a mut usize,
    groups: &'a mut [u64],
    slots: &'a mut [Slot],
}

impl Parts<'_> {
    /// The pieces of the value of a slot's row.
    fn pieces(&self, slot: usize) -> impl Iterator<Item = &ValuePiece> {
        let first = self.slots.get(slot);
        core::iter::successors(first, |slot| self.slots.get(slot.next as usize))
            .map(|slot| &slot.piece)
    }

    /// Adds as many free slots as a row needs to `taken`. Returns false if there are too few.
    fn find_free(&self, needed: usize, taken: &mut Vec<usize>) -> bool {
        let (used, all) = (*self.used, self.slots.len());
        let free = (0..used).filter(|&slot| self.groups[slot] == FREE);
        taken.extend(free.chain(used..all).take(needed));
        taken.len() == needed
    }

    /// Writes a row to slots that are free.
    fn write(&mut self, row: &Row, token: Token, database: u32, slots: &[usize]) {
        let pieces = row.value.pieces();
        let groups = core::iter::once(row.group).chain(row.other_groups.iter().copied());
        let groups = groups.map(own_group);
        let (heads, continuation) = slots.split_at(1 + row.other_groups.len());
        let next = |position: usize| continuation.get(position).map_or(END, |&slot| slot as u32);
        let slot = |piece, next| Slot {
            piece,
            token,
            next,
            database,
            table: row.table.to_u32(),
            column: row.column,
            known: 0,
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

    /// Removes the free slots at the end from the searched part of the table.
    fn trim(&mut self) {
        while *self.used > 0 && self.groups[*self.used - 1] == FREE {
            *self.used -= 1;
        }
    }
}

/// Why a row was not published.
pub enum Refusal {
    /// A near row of another backend is in flight.
    Near(Token),
    /// Backends use more slots than they may.
    Full,
}

impl Table {
    /// The server's table of rows in flight. Raises an error if there is no memory for it.
    pub fn get() -> Table {
        thread_local! {
            /// Stays mapped as long as the backend lives.
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

    /// Calls a function with the parts of the segment, under its lock.
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

    /// Puts a row into free slots, unless a near row of another backend is in its first group.
    /// Returns the slots.
    pub fn publish(self, row: &Row, radius: u32, token: Token) -> Result<Vec<usize>, Refusal> {
        let database = database().to_u32();
        let (group, needed) = (own_group(row.group), row.slots());
        // Nothing may fail under the lock.
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
                    parts.slots[i].known = 1;
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

    /// Frees the slots that still have these tokens. Returns true if another backend has learned
    /// one of the tokens and may wait for it. No backend can learn one of them afterwards.
    pub fn clear(self, rows: impl IntoIterator<Item = (usize, Token)>) -> bool {
        self.locked(|mut parts| {
            let mut known = false;
            for (i, token) in rows {
                if parts.groups[i] != FREE && parts.slots[i].token == token {
                    parts.groups[i] = FREE;
                    known |= parts.slots[i].known != 0;
                }
            }
            parts.trim();
            known
        })
    }

    /// Frees all slots that have a token.
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

    /// The rows in flight in this database.
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
        // A row has a slot for each of its groups.
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

fn attach() -> Table {
    let backends = server::max_backends() as usize;
    let slots = SLOTS_PER_BACKEND * backends;
    let size = size_of::<Head>() + slots * (size_of::<u64>() + size_of::<Slot>());
    let segment = PgTryBuilder::new(|| {
        // SAFETY: called in a transaction, for the same size in all backends.
        unsafe { compat::named_segment(NAME, size, initialize) }
    })
    // Every error caught is raised again with another message.
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

/// Initializes the segment's head. Slots need no values: they are written before they are counted
/// as used, and only used slots are read.
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
        "no shared memory for the rows that neardup_dedup writes",
    )
    .detail(format!("It needs {size} bytes once for the whole server."))
    .hint("Give the machine more shared memory, or lower max_connections, which the size follows.")
    .raise()
}
