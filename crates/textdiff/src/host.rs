//! The program around a comparison: cancels it, and says if there is memory.

/// Program that a comparison runs in. Both methods may unwind.
pub trait Host {
    /// Called every few milliseconds.
    fn check(&mut self) {}

    /// Called before memory of this number of bytes is allocated, which is done by code that aborts
    /// if there is none.
    fn reserve(&mut self, bytes: usize) {
        let _ = bytes;
    }
}

/// Never cancels.
impl Host for () {}

/// Fewest elements that a vector grows by.
const LEAST: usize = 64;

/// Appends an element; growth is announced.
pub(crate) fn push<T>(host: &mut dyn Host, all: &mut Vec<T>, element: T) {
    if all.len() == all.capacity() {
        let more = all.len().max(LEAST);
        host.reserve((all.len() + more) * size_of::<T>());
        all.reserve_exact(more);
    }
    all.push(element);
}
