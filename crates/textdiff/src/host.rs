//! The program around a comparison, which may cancel it or refuse memory.

/// Program that runs a comparison. Both methods may unwind.
pub trait Host {
    /// Called every few milliseconds.
    fn check(&mut self) {}

    /// Called before an allocation of this number of bytes. If the allocation itself fails, it
    /// aborts the process.
    fn reserve(&mut self, bytes: usize) {
        let _ = bytes;
    }
}

/// Never cancels.
impl Host for () {}

/// Minimum number of elements by which a vector grows.
const MIN_GROWTH: usize = 64;

/// Appends an element. Reports growth to the host.
pub(crate) fn push<T>(host: &mut dyn Host, all: &mut Vec<T>, element: T) {
    if all.len() == all.capacity() {
        let more = all.len().max(MIN_GROWTH);
        host.reserve((all.len() + more) * size_of::<T>());
        all.reserve_exact(more);
    }
    all.push(element);
}
