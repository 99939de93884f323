//! Locks that keep others from writing a near-duplicate between a look and a write.
//!
//! Two fingerprints within a distance `d`, cut into `d + 1` blocks, agree in at least one block
//! whole, and so do two signatures with `d` mismatches: the pigeonhole principle, as in Manku, Jain,
//! Das Sarma, WWW 2007. So whoever is to write one locks each of its blocks, and two near-duplicates meet at a lock. A row's locks are taken in
//! one order, and given back as soon as the row stands in the index, where the next one's look finds
//! it: a load of millions of rows holds as many locks as a single row.
use std::cell::RefCell;

use pgrx::pg_sys;

/// In the last field of an advisory lock's tag: the server's own functions put 1 or 2 there.
const CLASS: u16 = 0x6e64;
/// More blocks of a fingerprint than this would lock nearly everything anyhow.
const MAX_BLOCKS: u32 = 33;
/// More blocks of a signature than this would fill the server's table of locks. Up to here they
/// serve lengths of 128 down to a similarity of 0.51, and of 256 down to 0.76.
const MAX_SIGNATURE_BLOCKS: usize = 64;

/// A trigger of a table in a statement: whoever holds locks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    /// Where the server keeps what lives as long as the statement.
    pub statement: pg_sys::MemoryContext,
    /// The table, or the partition.
    pub table: pg_sys::Oid,
    pub trigger: pg_sys::Oid,
}

thread_local! {
    /// All locks of this backend's triggers. They are in one place because the next row may be one of
    /// another partition, for which the server calls another trigger.
    static HELD: RefCell<Vec<(Holder, pg_sys::LOCKTAG)>> = const { RefCell::new(Vec::new()) };
}

/// The locks that a trigger holds.
pub struct Held(pub Holder);

impl Held {
    /// Gives back what was locked for the statement's last row, which stands in the index by now. Of
    /// the row at hand another trigger of the same table may hold locks; they stay.
    pub fn begin_row(&self) {
        let Holder {
            statement, table, ..
        } = self.0;
        let holder = self.0;
        release(|other| other.statement == statement && (other.table != table || *other == holder));
    }

    /// Takes locks that have to do with the table, in this order.
    pub fn acquire(&self, keys: &[u32]) {
        for &key in keys {
            let tag = pg_sys::LOCKTAG {
                // SAFETY: set when the backend connects to its database.
                locktag_field1: unsafe { pg_sys::MyDatabaseId }.to_u32(),
                // Not the index: it may be replaced by another while triggers look at it.
                locktag_field2: self.0.table.to_u32(),
                locktag_field3: key,
                locktag_field4: CLASS,
                locktag_type: pg_sys::LockTagType::LOCKTAG_ADVISORY as u8,
                locktag_lockmethodid: pg_sys::USER_LOCKMETHOD as u8,
            };
            // SAFETY: the tag is whole. A deadlock or a cancellation is an error of the server.
            unsafe { pg_sys::LockAcquire(&tag, MODE, false, false) };
            HELD.with_borrow_mut(|held| held.push((self.0, tag)));
        }
    }

    /// Gives all of them back.
    pub fn release(&self) {
        let holder = self.0;
        release(|other| *other == holder);
    }
}

fn release(whose: impl Fn(&Holder) -> bool) {
    let tags = HELD.with_borrow_mut(|held| {
        let taken = held.extract_if(.., |(holder, _)| whose(holder));
        taken.map(|(_, tag)| tag).collect::<Vec<_>>()
    });
    // SAFETY: a look at the state of the backend's own transaction. When an error ends it, or a part
    // of it, the server has taken the locks back already.
    if unsafe { pg_sys::IsTransactionState() } {
        for tag in tags {
            // SAFETY: taken by `acquire`, in this transaction.
            unsafe { pg_sys::LockRelease(&tag, MODE, false) };
        }
    }
}

impl Drop for Held {
    /// At the end of a statement.
    fn drop(&mut self) {
        self.release();
    }
}

const MODE: pg_sys::LOCKMODE = pg_sys::ExclusiveLock as pg_sys::LOCKMODE;

/// What stands for each block of a fingerprint, whose most significant word is the first.
pub fn of_bits(column: i16, fingerprint: &[u64], distance: u32) -> Vec<u32> {
    let bits = 64 * fingerprint.len() as u32;
    let blocks = distance + 1;
    if blocks > MAX_BLOCKS || blocks > bits {
        return vec![0];
    }
    let bit = |at: u32| fingerprint[(at / 64) as usize] >> (63 - at % 64) & 1;
    in_order((0..blocks).map(|block| {
        let (from, to) = (block * bits / blocks, (block + 1) * bits / blocks);
        hash(column, u64::from(block), (from..to).map(bit))
    }))
}

/// What stands for each block of a signature's values. Signatures of different kinds are not near
/// each other.
pub fn of_values(column: i16, values: &[u32], kind: u64, mismatches: usize) -> Vec<u32> {
    let blocks = mismatches + 1;
    if blocks > MAX_SIGNATURE_BLOCKS || blocks > values.len() {
        return vec![0];
    }
    in_order((0..blocks).map(|block| {
        let (from, to) = (
            block * values.len() / blocks,
            (block + 1) * values.len() / blocks,
        );
        let values = values[from..to].iter().map(|&value| u64::from(value));
        hash(column, kind ^ block as u64, values)
    }))
}

/// In ascending order and without repetition.
fn in_order(keys: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut keys: Vec<u32> = keys.collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// FNV-1a over what is in a block of a column. An accidental meeting costs some waiting.
fn hash(column: i16, block: u64, content: impl Iterator<Item = u64>) -> u32 {
    let start = 0xcbf2_9ce4_8422_2325 ^ (column as u64) << 48 ^ block;
    let hash = content.fold(start, |hash, part| {
        (hash ^ part).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 32) as u32 ^ hash as u32
}
