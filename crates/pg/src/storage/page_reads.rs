//! Measures how long the recent page reads of this backend took. The time shows whether pages
//! outside shared buffers come from the operating system's cache or from a disk.
use core::cell::Cell;
use std::time::{Duration, Instant};

/// Average time of a read above which pages are assumed to come from a disk. Then prefetching pays.
/// A read takes 2 to 5 microseconds from the operating system's cache and 50 or more from a disk.
/// Requesting a prefetch takes one microsecond.
const FROM_A_DISK: Duration = Duration::from_micros(25);

/// Upper limit of the time that one read adds to the average. A longer read was probably
/// interrupted, and counts as if it had taken this time.
const MOST_COUNTED: Duration = Duration::from_micros(150);

/// Weight of the moving average: each new read changes the average by the difference divided by
/// this number.
const WEIGHT: u32 = 8;

thread_local! {
    /// Moving average of the time of a read.
    static AVERAGE: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Calls `get`, which returns a page and whether the page had to be read into a buffer. If it had
/// to be read, adds the time of the call to the average. Returns the page.
pub fn timed<T>(get: impl FnOnce() -> (T, bool)) -> T {
    let start = Instant::now();
    let (page, was_read) = get();
    if was_read {
        let took = start.elapsed().min(MOST_COUNTED);
        AVERAGE.with(|average| average.set((average.get() * (WEIGHT - 1) + took) / WEIGHT));
    }
    page
}

/// Returns whether recent reads took so long that the pages must have come from a disk.
#[inline]
pub fn come_from_disk() -> bool {
    AVERAGE.with(Cell::get) > FROM_A_DISK
}
