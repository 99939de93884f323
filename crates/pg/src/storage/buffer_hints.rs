//! Hints about where in shared buffers a backend last found pages of its indexes. A correct hint
//! saves the lookup in the buffer mapping table, which costs three dependent cache misses.
//!
//! docs/dev/locking.md, "Remembered buffers", says why a wrong hint is harmless.
use core::alloc::{GlobalAlloc, Layout};
use core::cell::{Cell, OnceCell};
use std::alloc::System;

use neardup_blocktree::key::Block;
use pgrx::pg_sys;

/// Number of slots, one per remembered page: enough for an index of 8 GB. A slot takes eight
/// bytes, and the system allocates them only when a page that maps to them is read.
const SLOTS: usize = 1 << 20;

/// One in N accesses bypasses the hint to keep the buffer's usage count up to date: the server
/// raises the count only in its own lookup.
const BYPASS_ONE_IN: u32 = 64;

/// The hints of a backend.
struct Hints {
    /// Each slot has a tag of file and block in the upper half, and the buffer in the lower half.
    slots: OnceCell<&'static [Cell<u64>]>,
    /// The state of a random choice.
    turn: Cell<u32>,
}

thread_local! {
    static HINTS: Hints = const { Hints { slots: OnceCell::new(), turn: Cell::new(0) } };
}

/// The slot of a page. Neighbouring blocks of a file have different slots.
#[inline]
fn slot(file: u32, block: Block) -> usize {
    (file.wrapping_mul(0x9e37_79b1) ^ block) as usize % SLOTS
}

/// A tag that nearly always distinguishes the pages of one slot.
#[inline]
fn tag(file: u32, block: Block) -> u32 {
    file.wrapping_mul(0x85eb_ca6b).wrapping_add(block)
}

impl Hints {
    /// Returns the slot of a page; `None` if there is no memory for the slots.
    #[inline]
    fn slot(&self, file: u32, block: Block) -> Option<&'static Cell<u64>> {
        let slots = self.slots.get_or_init(|| {
            // The system allocates zeroed memory only for the parts that are used. Hints are
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

/// The buffer in which a page was last found. It may hold another page by now.
#[inline]
pub fn buffer_of(file: u32, block: Block) -> Option<pg_sys::Buffer> {
    HINTS.with(|hints| {
        let last = hints.slot(file, block)?.get();
        let known = last as u32 != 0 && (last >> 32) as u32 == tag(file, block);
        known.then_some(last as u32 as pg_sys::Buffer)
    })
}

/// Returns whether this access bypasses the hint.
pub fn bypass() -> bool {
    HINTS.with(|hints| {
        // A linear congruential generator (Knuth, TAOCP 2, 3.3.4): counting would skip the same
        // pages of each search.
        let turn = (hints.turn.get().wrapping_mul(1_664_525)).wrapping_add(1_013_904_223);
        hints.turn.set(turn);
        turn < u32::MAX / BYPASS_ONE_IN
    })
}

/// Remembers where a page was found. Local buffers of temporary tables have negative numbers and
/// need no hint.
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
