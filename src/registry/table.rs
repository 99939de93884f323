//! The table of rows in flight, in shared memory.
//!
//! One segment for the server, made by the backend that needs it first:
//!
//! ```text
//! | head: lock, number of slots in use | group of each slot | slots | bytes of each slot |
//! ```
//! Everything behind the lock is read and written under it alone, for less than a microsecond, and
//! nothing that could raise an error or wait is done meanwhile.
use std::cell::Cell;

use pgrx::{PgSqlErrorCode, PgTryBuilder, pg_sys};

use super::value::{MAX_BYTES, Value};
use crate::pg::errors::UserError;
use crate::pg::{compat, server};

/// Slots besides those that are there for each backend.
const SPARE_SLOTS: usize = 256;
/// A row that is being written takes one; rows that triggers write meanwhile, and further
/// triggers of a table, take others.
const SLOTS_PER_BACKEND: usize = 4;

/// The segment's name. It ends with the number of the layout, to be raised with every change of it:
/// a server may have backends with two versions of the library until it is restarted.
const NAME: &core::ffi::CStr = c"neardup_rows_in_flight_2";

unsafe extern "C-unwind" {
    // Neither raises an error for a lock that is not held twice; so they are declared without the
    // wrapper that pgrx puts around C functions, as in `crate::storage::pages`.
    fn LWLockAcquire(lock: *mut pg_sys::LWLock, mode: pg_sys::LWLockMode::Type) -> bool;
    fn LWLockRelease(lock: *mut pg_sys::LWLock);
}

/// Names a row in flight: no two that are there at one time have the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(C)]
pub struct Token {
    /// The backend's process id.
    pub process: i32,
    /// Counts the backend's rows.
    pub number: u32,
}

/// A row as others compare theirs with it.
pub struct Row {
    /// Hash of all that two rows must have in common to be near-duplicates: table, column, scope,
    /// and kind of value. A collision makes one wait in vain.
    pub group: u64,
    /// Hashes, made like `group`, for the scopes of triggers that do not fire for this row but may
    /// compare their rows with it. In these groups others find this row; it is not compared with
    /// any itself.
    pub other_groups: Vec<u64>,
    pub value: Value,
    pub table: pg_sys::Oid,
    pub column: i16,
}

/// A row in flight, for `neardup_rows_in_flight`.
pub struct Listed {
    pub process: i32,
    pub table: pg_sys::Oid,
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
    words: [u64; 4],
    token: Token,
    database: u32,
    table: u32,
    column: i16,
    /// Bytes of the value, if it has no words.
    length: u16,
    /// Not 0 if somebody has learned the token, and may wait for it.
    known: u32,
}

/// The group of a free slot.
const FREE: u64 = 0;

/// A group as slots have it.
fn own_group(group: u64) -> u64 {
    group.max(FREE + 1)
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
    bytes: &'a mut [[u8; MAX_BYTES]],
}

/// Why a row was not published.
pub enum Refusal {
    /// A near row of another backend is in flight, in this slot.
    Near(usize, Token),
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
        // SAFETY: the segment is as long as `attach` has it, and any bytes are values of the parts.
        // Nobody else has references into it while this backend has the lock.
        unsafe {
            let lock = &raw mut (*self.head).lock;
            LWLockAcquire(lock, pg_sys::LWLockMode::LW_EXCLUSIVE);
            let groups = self.head.add(1).cast::<u64>();
            let slots = groups.add(n).cast::<Slot>();
            let bytes = slots.add(n).cast::<[u8; MAX_BYTES]>();
            let result = work(Parts {
                used: &mut (*self.head).used,
                groups: core::slice::from_raw_parts_mut(groups, n),
                slots: core::slice::from_raw_parts_mut(slots, n),
                bytes: core::slice::from_raw_parts_mut(bytes, n),
            });
            LWLockRelease(lock);
            result
        }
    }

    /// Puts a row into a free slot for each of its groups, unless a near row of another backend is
    /// in the first of these. Returns the slots.
    pub fn publish(self, row: &Row, radius: u32, token: Token) -> Result<Vec<usize>, Refusal> {
        let database = database().to_u32();
        let group = own_group(row.group);
        // Nothing may fail below the lock.
        let mut taken = Vec::with_capacity(1 + row.other_groups.len());
        self.locked(|parts| {
            let used = *parts.used;
            let mut free = None;
            for (i, &other) in parts.groups[..used].iter().enumerate() {
                if other == FREE {
                    free = free.or(Some(i));
                } else if other == group {
                    let slot = &parts.slots[i];
                    let bytes = &parts.bytes[i][..usize::from(slot.length)];
                    // Nobody can wait for a token of another database.
                    if slot.token.process != token.process
                        && slot.database == database
                        && row.value.distance(&slot.words, bytes) <= radius
                    {
                        let token = slot.token;
                        parts.slots[i].known = 1;
                        return Err(Refusal::Near(i, token));
                    }
                }
            }
            let bytes = row.value.bytes();
            let mut i = free.unwrap_or(used);
            for group in [group]
                .into_iter()
                .chain(row.other_groups.iter().map(|&g| own_group(g)))
            {
                while i < *parts.used && parts.groups[i] != FREE {
                    i += 1;
                }
                if i == parts.slots.len() {
                    for &slot in &taken {
                        parts.groups[slot] = FREE;
                    }
                    return Err(Refusal::Full);
                }
                *parts.used = (*parts.used).max(i + 1);
                parts.slots[i] = Slot {
                    words: row.value.words(),
                    token,
                    database,
                    table: row.table.to_u32(),
                    column: row.column,
                    length: bytes.len() as u16,
                    known: 0,
                };
                parts.bytes[i][..bytes.len()].copy_from_slice(bytes);
                parts.groups[i] = group;
                taken.push(i);
            }
            Ok(())
        })?;
        Ok(taken)
    }

    /// Frees the slots that have these tokens still. Returns whether somebody has learned one of
    /// the tokens, and may wait for it: from here on nobody can.
    pub fn clear(self, rows: impl IntoIterator<Item = (usize, Token)>) -> bool {
        self.locked(|parts| {
            let mut known = false;
            for (i, token) in rows {
                if parts.groups[i] != FREE && parts.slots[i].token == token {
                    parts.groups[i] = FREE;
                    known |= parts.slots[i].known != 0;
                }
            }
            while *parts.used > 0 && parts.groups[*parts.used - 1] == FREE {
                *parts.used -= 1;
            }
            known
        })
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
    let slots = SLOTS_PER_BACKEND * backends + SPARE_SLOTS;
    let size = size_of::<Head>() + slots * (size_of::<u64>() + size_of::<Slot>() + MAX_BYTES);
    let segment = PgTryBuilder::new(|| {
        // SAFETY: called in a transaction, for the same size in all backends.
        unsafe { compat::named_segment(NAME, size, initialize) }
    })
    // Whatever is caught is raised again, in other words.
    .catch_when(PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY, |_| no_memory(size))
    .catch_when(PgSqlErrorCode::ERRCODE_DISK_FULL, |_| no_memory(size))
    .execute();
    let head = segment.cast::<Head>();
    // SAFETY: made by `initialize`. The name lives for ever.
    unsafe {
        let tranche = i32::from((*head).lock.tranche);
        pg_sys::LWLockRegisterTranche(tranche, c"neardup_rows_in_flight".as_ptr());
    }
    Table { head, slots }
}

/// Makes the segment's head. Slots are written before they are counted as used, and read after.
unsafe extern "C-unwind" fn initialize(segment: *mut core::ffi::c_void) {
    let head = segment.cast::<Head>();
    // SAFETY: the segment is new, at least as long as this, and nobody else sees it yet.
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
