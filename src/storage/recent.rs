//! In which buffers a backend last found pages: a look there saves the one in the server's table of
//! buffers, three reads of memory far away, each waiting for the one before.
use core::cell::{Cell, OnceCell};

use neardup_blocktree::key::Block;
use pgrx::pg_sys;

/// Pages that are remembered. What an index takes that all fits: 1 GB. A place takes eight bytes,
/// and memory only once pages that it stands for have been read.
const PLACES: usize = 1 << 17;

/// One time in so many, on average, the server looks for the page itself: only then it counts how
/// often a page is used, and keeps what is used most.
const LOOK_ANEW: u32 = 64;

/// A backend's memory of buffers.
struct Recent {
    /// A check of file and block, and below it the buffer.
    places: OnceCell<&'static [Cell<u64>]>,
    /// The state of a random choice.
    turn: Cell<u32>,
}

thread_local! {
    static RECENT: Recent = const { Recent { places: OnceCell::new(), turn: Cell::new(0) } };
}

/// Neighbouring blocks of a file have places of their own.
fn place(file: u32, block: Block) -> usize {
    (file.wrapping_mul(0x9e37_79b1) ^ block) as usize % PLACES
}

/// Tells pages of one place apart, nearly always.
fn check(file: u32, block: Block) -> u32 {
    file.wrapping_mul(0x85eb_ca6b).wrapping_add(block)
}

impl Recent {
    fn places(&self) -> &'static [Cell<u64>] {
        self.places.get_or_init(|| {
            // Zeroed memory, of which the system hands out the parts that are used.
            let places = Box::leak(vec![0; PLACES].into_boxed_slice());
            Cell::from_mut(places).as_slice_of_cells()
        })
    }
}

/// The buffer in which a page was last found. It may hold another page by now.
pub fn buffer_of(file: u32, block: Block) -> Option<pg_sys::Buffer> {
    RECENT.with(|recent| {
        let last = recent.places()[place(file, block)].get();
        let known = last as u32 != 0 && (last >> 32) as u32 == check(file, block);
        known.then_some(last as u32 as pg_sys::Buffer)
    })
}

/// Whether to look for a page as if its buffer were not known.
pub fn is_time_to_look() -> bool {
    RECENT.with(|recent| {
        // A linear congruential generator (Knuth, TAOCP 2, 3.3.4): counting would skip the same
        // pages of each search.
        let turn = (recent.turn.get().wrapping_mul(1_664_525)).wrapping_add(1_013_904_223);
        recent.turn.set(turn);
        turn < u32::MAX / LOOK_ANEW
    })
}

/// Remembers where a page was found. Buffers of temporary tables, below zero, are this backend's own
/// and near anyway.
pub fn remember(file: u32, block: Block, buffer: pg_sys::Buffer) {
    if buffer > 0 {
        RECENT.with(|recent| {
            let value = u64::from(check(file, block)) << 32 | u64::from(buffer as u32);
            recent.places()[place(file, block)].set(value);
        });
    }
}
