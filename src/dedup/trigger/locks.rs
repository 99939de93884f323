//! Locks that keep others from writing a near-duplicate between a look and a write.
//!
//! Two fingerprints within a distance `d`, cut into `d + 1` blocks, agree in at least one block
//! whole, and so do two signatures with `d` mismatches: the pigeonhole principle, as in Manku, Jain, Das Sarma, WWW 2007. So whoever is to write
//! one locks each of its blocks, and two near-duplicates meet at a lock. A row's locks are taken in
//! one order, and given back as soon as the row stands in the index, where the next one's look finds
//! it: a load of millions of rows holds as many locks as a single row.
use pgrx::pg_sys;

/// In the last field of an advisory lock's tag: the server's own functions put 1 or 2 there.
const CLASS: u16 = 0x6e64;
/// More blocks of a fingerprint than this would lock nearly everything anyhow.
const MAX_BLOCKS: u32 = 33;
/// More blocks of a signature than this would fill the server's table of locks. Up to here they
/// serve lengths of 128 down to a similarity of 0.51, and of 256 down to 0.76.
const MAX_SIGNATURE_BLOCKS: usize = 64;

/// The locks that a trigger holds.
#[derive(Default)]
pub struct Held(Vec<pg_sys::LOCKTAG>);

impl Held {
    /// Takes locks that have to do with an index, in this order.
    pub fn acquire(&mut self, index: pg_sys::Oid, keys: &[u32]) {
        debug_assert!(self.0.is_empty());
        for &key in keys {
            let tag = pg_sys::LOCKTAG {
                // SAFETY: set when the backend connects to its database.
                locktag_field1: unsafe { pg_sys::MyDatabaseId }.to_u32(),
                locktag_field2: index.to_u32(),
                locktag_field3: key,
                locktag_field4: CLASS,
                locktag_type: pg_sys::LockTagType::LOCKTAG_ADVISORY as u8,
                locktag_lockmethodid: pg_sys::USER_LOCKMETHOD as u8,
            };
            // SAFETY: the tag is whole. A deadlock or a cancellation is an error of the server.
            unsafe { pg_sys::LockAcquire(&tag, MODE, false, false) };
            self.0.push(tag);
        }
    }

    /// Gives all of them back.
    pub fn release(&mut self) {
        for tag in self.0.drain(..) {
            // SAFETY: taken by `acquire`, in this transaction.
            unsafe { pg_sys::LockRelease(&tag, MODE, false) };
        }
    }
}

impl Drop for Held {
    /// At the end of a statement. When an error ends it, the server has taken them back already.
    fn drop(&mut self) {
        // SAFETY: a look at the state of the backend's own transaction.
        if unsafe { pg_sys::IsTransactionState() } {
            self.release();
        }
    }
}

const MODE: pg_sys::LOCKMODE = pg_sys::ExclusiveLock as pg_sys::LOCKMODE;

/// What stands for each block of a fingerprint, whose most significant word is the first.
pub fn of_bits(fingerprint: &[u64], distance: u32) -> Vec<u32> {
    let bits = 64 * fingerprint.len() as u32;
    let blocks = distance + 1;
    if blocks > MAX_BLOCKS || blocks > bits {
        return vec![0];
    }
    let bit = |at: u32| fingerprint[(at / 64) as usize] >> (63 - at % 64) & 1;
    in_order((0..blocks).map(|block| {
        let (from, to) = (block * bits / blocks, (block + 1) * bits / blocks);
        hash(u64::from(block), (from..to).map(bit))
    }))
}

/// What stands for each block of a signature's values. Signatures of different kinds are not near
/// each other.
pub fn of_values(values: &[u32], kind: u64, mismatches: usize) -> Vec<u32> {
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
        hash(kind ^ block as u64, values)
    }))
}

/// In ascending order and without repetition.
fn in_order(keys: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut keys: Vec<u32> = keys.collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// FNV-1a over what is in a block. An accidental meeting costs some waiting.
fn hash(block: u64, content: impl Iterator<Item = u64>) -> u32 {
    let hash = content.fold(0xcbf2_9ce4_8422_2325 ^ block, |hash, part| {
        (hash ^ part).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 32) as u32 ^ hash as u32
}
