//! Hints: for pages of its indexes, a backend remembers the shared buffer in which it last found
//! the page. A correct hint saves the lookup in the buffer mapping table, which costs three
//! dependent cache misses.
//!
//! docs/dev/locking.md, "Remembered buffers", says why a wrong hint is harmless.
use core::alloc::{GlobalAlloc, Layout};
use core::cell::{Cell, OnceCell};
use std::alloc::System;

use neardup_blocktree::key::Block;
use pgrx::pg_sys;

/// Number of slots: as many as an index of 8 GB has pages. A slot takes eight bytes and holds the
/// hint for one page. Pages with the same slot overwrite each other's hints. The system allocates
/// memory only for the slots that are used.
const SLOTS: usize = 1 << 20;

/// One in this many accesses to a page ignores the hint, so that the server looks the page up. Only
/// this lookup raises the usage count of the buffer. With hints alone, the counts of often used
/// pages would stay low, and the server would evict these pages.
const BYPASS_ONE_IN: u32 = 64;

/// Hints of this backend.
struct Hints {
    /// Hints, indexed by [`slot`]. Each has the tag of a page in the upper 32 bits, and the number
    /// of its buffer in the lower 32 bits. 0 means no hint. Empty if there was no memory for them.
    slots: OnceCell<&'static [Cell<u64>]>,
    /// State of the random generator in [`bypass`].
    turn: Cell<u32>,
}

thread_local! {
    static HINTS: Hints = const { Hints { slots: OnceCell::new(), turn: Cell::new(0) } };
}

/// Number of a page's slot. Neighbouring blocks of a file have different slots.
#[inline]
fn slot(file: u32, block: Block) -> usize {
    (file.wrapping_mul(0x9e37_79b1) ^ block) as usize % SLOTS
}

/// Tag of a page, which is stored in the page's hint. It distinguishes the pages that have the same
/// slot. In rare cases two of these pages also have the same tag. Then one may find the hint of the
/// other, which is wrong but harmless, because the server checks which page the buffer holds.
#[inline]
fn tag(file: u32, block: Block) -> u32 {
    file.wrapping_mul(0x85eb_ca6b).wrapping_add(block)
}

impl Hints {
    /// Slot for the hint of the page `block` in the file with the number `file`. `None` if there is
    /// no memory for the slots.
    #[inline]
    fn slot(&self, file: u32, block: Block) -> Option<&'static Cell<u64>> {
        let slots = self.slots.get_or_init(|| {
            // The system allocates zeroed memory only for the parts that are written. Hints are
            // optional, so they do not use the reserve of the library's allocator.
            let Ok(layout) = Layout::array::<u64>(SLOTS) else {
                return &[];
            };
            // SAFETY: the layout has a size. Zeroes are numbers, and nothing frees the memory.
            unsafe {
                let slots = System.alloc_zeroed(layout).cast::<Cell<u64>>();
                match slots.is_null() {
                    true => &[],
                    false => core::slice::from_raw_parts(slots, SLOTS),
                }
            }
        });
        slots.get(slot(file, block))
    }
}

/// Returns the buffer in which this backend last found the page `block` of the file with the number
/// `file`; `None` if there is no hint. The buffer may hold another page by now.
#[inline]
pub fn buffer_of(file: u32, block: Block) -> Option<pg_sys::Buffer> {
    HINTS.with(|hints| {
        let last = hints.slot(file, block)?.get();
        let known = last as u32 != 0 && (last >> 32) as u32 == tag(file, block);
        known.then_some(last as u32 as pg_sys::Buffer)
    })
}

/// Returns, at random, whether this access to a page ignores the hint: see `BYPASS_ONE_IN`.
pub fn bypass() -> bool {
    HINTS.with(|hints| {
        // A linear congruential generator (Knuth, TAOCP 2, 3.3.4). A counter would choose the same
        // pages in each search.
        let turn = (hints.turn.get().wrapping_mul(1_664_525)).wrapping_add(1_013_904_223);
        hints.turn.set(turn);
        turn < u32::MAX / BYPASS_ONE_IN
    })
}

/// Remembers `buffer`, in which the page `block` of the file with the number `file` was found. Does
/// nothing for the local buffers of temporary tables, which have negative numbers.
pub fn store(file: u32, block: Block, buffer: pg_sys::Buffer) {
    if buffer > 0 {
        HINTS.with(|hints| {
            let value = u64::from(tag(file, block)) << 32 | u64::from(buffer as u32);
            if let Some(slot) = hints.slot(file, block) {
                slot.set(value);
            }
        });
    }
}
