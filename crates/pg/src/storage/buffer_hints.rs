//! Hints where in shared buffers a backend last found pages of its indexes. A correct hint saves
//! the lookup in the buffer mapping table: three cache misses, each of which waits for the one
//! before.
//!
//! docs/dev/locking.md, "Remembered buffers", says why a wrong hint is harmless.
use core::alloc::{GlobalAlloc, Layout};
use core::cell::{Cell, OnceCell};
use std::alloc::System;

use neardup_blocktree::key::Block;
use pgrx::pg_sys;

/// Pages that are remembered. What an index takes that all fits: 8 GB. A place takes eight bytes,
/// and memory only once pages that it stands for have been read.
const PLACES: usize = 1 << 20;

/// Every 1/N accesses bypass the hint, so that the buffer's usage count stays true: the server
/// raises it only in its own lookup.
const BYPASS_ONE_IN: u32 = 64;

/// The hints of a backend.
struct Hints {
    /// A tag of file and block, and in the lower half the buffer.
    places: OnceCell<&'static [Cell<u64>]>,
    /// The state of a random choice.
    turn: Cell<u32>,
}

thread_local! {
    static HINTS: Hints = const { Hints { places: OnceCell::new(), turn: Cell::new(0) } };
}

/// Neighbouring blocks of a file have places of their own.
#[inline]
fn place(file: u32, block: Block) -> usize {
    (file.wrapping_mul(0x9e37_79b1) ^ block) as usize % PLACES
}

/// Tells pages of one place apart, nearly always.
#[inline]
fn tag(file: u32, block: Block) -> u32 {
    file.wrapping_mul(0x85eb_ca6b).wrapping_add(block)
}

impl Hints {
    /// Returns the place of a page; `None` if there is no memory for places.
    #[inline]
    fn place(&self, file: u32, block: Block) -> Option<&'static Cell<u64>> {
        let places = self.places.get_or_init(|| {
            // Zeroed memory of the system's, which hands out the parts that are used. Hints can be
            // done without, so none comes from the reserve of the library's allocator.
            let Ok(layout) = Layout::array::<u64>(PLACES) else {
                return &[];
            };
            // SAFETY: the layout has a size. Zeroes are numbers, and nothing frees the memory.
            unsafe {
                let places = System.alloc_zeroed(layout).cast::<Cell<u64>>();
                match places.is_null() {
                    true => &[],
                    false => core::slice::from_raw_parts(places, PLACES),
                }
            }
        });
        places.get(place(file, block))
    }
}

/// The buffer in which a page was last found. It may hold another page by now.
#[inline]
pub fn buffer_of(file: u32, block: Block) -> Option<pg_sys::Buffer> {
    HINTS.with(|hints| {
        let last = hints.place(file, block)?.get();
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

/// Remembers where a page was found. Buffers of temporary tables, below zero, are this backend's
/// own and near anyway.
pub fn store(file: u32, block: Block, buffer: pg_sys::Buffer) {
    if buffer > 0 {
        HINTS.with(|hints| {
            let value = u64::from(tag(file, block)) << 32 | u64::from(buffer as u32);
            if let Some(place) = hints.place(file, block) {
                place.set(value);
            }
        });
    }
}
