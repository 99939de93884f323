//! Interface to the program that runs a comparison, which may cancel it or refuse memory.

/// Program that runs a comparison. Both methods may unwind, which ends the comparison.
pub trait Host {
    /// May cancel the comparison by unwinding. The comparison calls this method every few
    /// milliseconds.
    fn check(&mut self) {}

    /// May refuse an allocation of `bytes` bytes by unwinding. The comparison calls this method
    /// before it allocates. If the allocation itself fails, the process aborts.
    fn reserve(&mut self, bytes: usize) {
        let _ = bytes;
    }
}

/// Host that neither cancels a comparison nor refuses memory.
impl Host for () {}

/// Minimum number of elements by which a vector grows.
const MIN_GROWTH: usize = 64;

/// Appends an element to the vector `all`. Calls [`Host::reserve`] before the vector grows.
pub(crate) fn push<T>(host: &mut dyn Host, all: &mut Vec<T>, element: T) {
    if all.len() == all.capacity() {
        let more = all.len().max(MIN_GROWTH);
        host.reserve((all.len() + more) * size_of::<T>());
        all.reserve_exact(more);
    }
    all.push(element);
}
