//! The time that a backend's recent page reads took. It shows whether pages outside the server's
//! buffers are read from the system's cache or from a disk.
use core::cell::Cell;
use std::time::{Duration, Instant};

/// Average time of a read above which pages are announced to the system in advance. Reading a page
/// takes 2 to 5 microseconds from the system's cache and 50 or more from a disk; announcing it
/// takes one.
const FROM_A_DISK: Duration = Duration::from_micros(25);

/// Longer reads count as this time: the time of an interrupted read does not predict the next.
const MOST_COUNTED: Duration = Duration::from_micros(150);

/// The average moves by this part of its difference to a new reading.
const WEIGHT: u32 = 8;

thread_local! {
    static AVERAGE: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Calls a function that returns a page and whether the page had to be read, and records the time
/// of a read.
pub fn noted<T>(get: impl FnOnce() -> (T, bool)) -> T {
    let start = Instant::now();
    let (page, was_read) = get();
    if was_read {
        let took = start.elapsed().min(MOST_COUNTED);
        AVERAGE.with(|average| average.set((average.get() * (WEIGHT - 1) + took) / WEIGHT));
    }
    page
}

/// Returns whether the recent reads came from a disk, judged by their time.
#[inline]
pub fn come_from_disk() -> bool {
    AVERAGE.with(Cell::get) > FROM_A_DISK
}
