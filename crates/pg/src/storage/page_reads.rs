//! Time that a backend's reads of pages have taken of late: whether pages that are not in the
//! server's buffers come from the system's cache or from a disk.
use core::cell::Cell;
use std::time::{Duration, Instant};

/// Average time of a read from which on the system is told of pages ahead. A page comes from the
/// system's cache in 2 to 5 microseconds, of which telling takes one; from a disk in 50 and more.
const FROM_A_DISK: Duration = Duration::from_micros(25);

/// Time that counts of a read that took longer: one that was interrupted says nothing of the next.
const MOST_COUNTED: Duration = Duration::from_micros(150);

/// The average moves by this part of its difference to a new reading.
const WEIGHT: u32 = 8;

thread_local! {
    static AVERAGE: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Gets a page by a function that returns besides whether it had to be read, and notes the time of
/// a read.
pub fn noted<T>(get: impl FnOnce() -> (T, bool)) -> T {
    let start = Instant::now();
    let (page, was_read) = get();
    if was_read {
        let took = start.elapsed().min(MOST_COUNTED);
        AVERAGE.with(|average| average.set((average.get() * (WEIGHT - 1) + took) / WEIGHT));
    }
    page
}

/// Returns whether the last reads came from a disk, by their time.
#[inline]
pub fn come_from_disk() -> bool {
    AVERAGE.with(Cell::get) > FROM_A_DISK
}
