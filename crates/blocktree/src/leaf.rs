//! Leaves: unordered buckets of entries.
//!
//! Keys stand as one array growing up from the header, row addresses as one growing down from the
//! fields at the end. A probe measures all keys of a leaf anyway, so order inside would buy
//! nothing, and an append changes 18 bytes where an ordered insert would shift half the page
//! through the WAL.

use crate::key::{EntryKey, Key, Tid, key_at, put_key};
use crate::page::{self, BOUNDS, HEADER, Kind, PAGE_SIZE, Page, special_size};
use crate::store::Patch;

/// The most entries of a leaf.
pub const fn capacity<const N: usize>() -> usize {
    page::room::<N>() / (8 * N + Tid::SIZE)
}

/// The entries of a leaf with keys of `words` words in an index that was built with the default
/// options: what one page read covers.
pub const fn usual_count(words: usize) -> f64 {
    let room = PAGE_SIZE - HEADER - page::fields_size(words);
    0.9 * (room / (8 * words + Tid::SIZE)) as f64
}

const fn key_offset<const N: usize>(i: usize) -> usize {
    HEADER + 8 * N * i
}

const fn tid_offset<const N: usize>(i: usize) -> usize {
    PAGE_SIZE - special_size::<N>() - Tid::SIZE * (i + 1)
}

/// The number of entries.
#[inline]
pub fn count<const N: usize>(page: &Page) -> usize {
    (page::lower(page) - HEADER) / (8 * N)
}

/// The keys' bytes, entry after entry.
#[inline]
pub fn keys<const N: usize>(page: &Page) -> &[u8] {
    &page[HEADER..page::lower(page)]
}

/// The key of an entry.
#[inline]
pub fn key<const N: usize>(page: &Page, i: usize) -> Key<N> {
    key_at(page, key_offset::<N>(i))
}

/// The row of an entry.
#[inline]
pub fn tid<const N: usize>(page: &Page, i: usize) -> Tid {
    page::tid_at(page, tid_offset::<N>(i))
}

/// The entry key of an entry.
pub fn entry_key<const N: usize>(page: &Page, i: usize) -> EntryKey<N> {
    EntryKey {
        table: page::table(page),
        key: key(page, i),
        tid: tid::<N>(page, i),
    }
}

/// Makes an empty leaf that starts at an entry key.
pub fn format<const N: usize>(page: &mut Page, low: &EntryKey<N>) {
    page::format(page, Kind::Leaf, 0, low);
}

/// The three places that an append changes, for a log record that holds nothing else.
pub struct Append<const N: usize> {
    bounds: [u8; 4],
    key: [[u8; 8]; N],
    tid: [u8; Tid::SIZE],
    offsets: [usize; 2],
}

impl<const N: usize> Append<N> {
    /// The append of an entry to a leaf; `None` if the leaf is full.
    pub fn new(page: &Page, key: &Key<N>, tid: Tid) -> Option<Self> {
        let i = count::<N>(page);
        if i >= capacity::<N>() {
            return None;
        }
        let offsets = [key_offset::<N>(i), tid_offset::<N>(i)];
        let mut bounds = [0; 4];
        bounds[..2].copy_from_slice(&(key_offset::<N>(i + 1) as u16).to_ne_bytes());
        bounds[2..].copy_from_slice(&(offsets[1] as u16).to_ne_bytes());
        Some(Append {
            bounds,
            key: key.map(u64::to_ne_bytes),
            tid: tid.to_bytes(),
            offsets,
        })
    }

    /// The changes, in ascending order of their place.
    pub fn patches(&self) -> [Patch<'_>; 3] {
        [
            Patch {
                offset: BOUNDS,
                bytes: &self.bounds,
            },
            Patch {
                offset: self.offsets[0],
                bytes: self.key.as_flattened(),
            },
            Patch {
                offset: self.offsets[1],
                bytes: &self.tid,
            },
        ]
    }
}

/// Adds an entry to a page that has room for it.
pub fn push<const N: usize>(page: &mut Page, key: &Key<N>, tid: Tid) {
    let i = count::<N>(page);
    debug_assert!(i < capacity::<N>());
    put_key(page, key_offset::<N>(i), key);
    page::put_tid(page, tid_offset::<N>(i), tid);
    page::put_bounds(page, key_offset::<N>(i + 1), tid_offset::<N>(i));
}

/// Keeps the entries that `keep` says yes to, and returns how many went. Gaps are filled from the
/// end, so that most of the page stays as it is and the log record small.
pub fn retain<const N: usize>(
    page: &mut Page,
    mut keep: impl FnMut(&Key<N>, Tid) -> bool,
) -> usize {
    let before = count::<N>(page);
    let (mut i, mut end) = (0, before);
    while i < end {
        if keep(&key(page, i), tid::<N>(page, i)) {
            i += 1;
            continue;
        }
        end -= 1;
        let (last_key, last_tid) = (key::<N>(page, end), tid::<N>(page, end));
        put_key(page, key_offset::<N>(i), &last_key);
        page::put_tid(page, tid_offset::<N>(i), last_tid);
    }
    // What the hole takes in is zeroed, as recovery does.
    page[key_offset::<N>(end)..key_offset::<N>(before)].fill(0);
    let special = PAGE_SIZE - special_size::<N>();
    page[special - Tid::SIZE * before..special - Tid::SIZE * end].fill(0);
    page::put_bounds(page, key_offset::<N>(end), special - Tid::SIZE * end);
    before - end
}
