//! Methods that grow collections. If memory runs out, they unwind instead of aborting the process.
//! For the allocations of all other code, the allocator of the process may have a reserve of
//! memory. This module tells the allocator when to use the reserve.
//!
//! The standard library aborts the process when an allocation fails. Collections that grow with a
//! text reserve memory through [`Grow`], which unwinds if the allocation fails, so that only the
//! current text is lost. [`on_failure`] sets the function that unwinds.
//!
//! All other allocations have bounded size: buffers of some kilobytes, and buffers inside the
//! crates for normalisation, HTML and Chinese words. A process that must also survive a failure of
//! such an allocation needs an allocator with a reserve. [`may_fail`] tells the allocator whether
//! the current request may fail, or must be met from the reserve. [`report_shortage`], which the
//! allocator calls when it uses the reserve, makes the next growth fail. [`ensure_available`] tests
//! whether there is memory for large buffers inside other crates.

use std::collections::{BinaryHeap, HashMap, HashSet, TryReserveError};
use std::hash::{BuildHasher, Hash};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Payload of the panic when an allocation fails, unless [`on_failure`] has set another function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

static RAISE: OnceLock<fn() -> !> = OnceLock::new();
static MAY_FAIL: AtomicBool = AtomicBool::new(false);
static SHORTAGE: AtomicBool = AtomicBool::new(false);

/// Sets the function that is called when an allocation fails. The function must unwind. Only the
/// first call of `on_failure` has an effect. The default is to unwind with [`OutOfMemory`] as the
/// payload.
pub fn on_failure(raise: fn() -> !) {
    // A second library in the same process would set the same function.
    let _ = RAISE.set(raise);
}

/// Returns true while this module tries an allocation whose failure it handles. The allocator of
/// the process may then report a failure. Otherwise it must use its reserve, because a failure
/// would abort the process.
#[must_use]
pub fn may_fail() -> bool {
    MAY_FAIL.load(Ordering::Relaxed)
}

/// Records that the allocator of the process has used its reserve. The next growth of a collection
/// then unwinds as if its allocation had failed.
pub fn report_shortage() {
    SHORTAGE.store(true, Ordering::Relaxed);
}

/// Returns true if [`report_shortage`] was called and the shortage was not handled yet, and marks
/// it as handled. A growth that unwinds because of the shortage also marks it as handled.
pub fn take_shortage() -> bool {
    SHORTAGE.load(Ordering::Relaxed) && SHORTAGE.swap(false, Ordering::Relaxed)
}

/// Unwinds because memory ran out. Calls the function that [`on_failure`] has set. If none is set,
/// unwinds with [`OutOfMemory`] as the payload.
#[cold]
pub fn raise() -> ! {
    match RAISE.get() {
        Some(raise) => raise(),
        // Skips the panic hook, which would print a message.
        None => std::panic::resume_unwind(Box::new(OutOfMemory)),
    }
}

/// Calls `reserve`, which tries an allocation. Unwinds if `reserve` returns an error, and also if
/// [`report_shortage`] was called before.
#[cold]
fn attempt(reserve: impl FnOnce() -> Result<(), TryReserveError>) {
    MAY_FAIL.store(true, Ordering::Relaxed);
    let reserved = reserve();
    MAY_FAIL.store(false, Ordering::Relaxed);
    if reserved.is_err() || take_shortage() {
        raise();
    }
}

/// Tests whether `bytes` bytes can be allocated now, and unwinds otherwise. Does not keep the
/// memory. Callers use this function before they call another crate that allocates up to `bytes`
/// bytes, because a failed allocation in that crate would abort the process.
pub fn ensure_available(bytes: usize) {
    attempt(|| Vec::<u8>::new().try_reserve_exact(bytes));
}

/// Collection that can reserve memory, and unwinds if the memory cannot be allocated.
pub trait Grow {
    /// Reserves room for `additional` more elements (bytes of a [`String`]).
    fn ensure_room(&mut self, additional: usize);
}

impl<T> Grow for Vec<T> {
    #[inline]
    fn ensure_room(&mut self, additional: usize) {
        if self.capacity() - self.len() < additional {
            attempt(|| self.try_reserve(additional));
        }
    }
}

impl Grow for String {
    #[inline]
    fn ensure_room(&mut self, additional: usize) {
        if self.capacity() - self.len() < additional {
            attempt(|| self.try_reserve(additional));
        }
    }
}

impl<T: Ord> Grow for BinaryHeap<T> {
    #[inline]
    fn ensure_room(&mut self, additional: usize) {
        if self.capacity() - self.len() < additional {
            attempt(|| self.try_reserve(additional));
        }
    }
}

impl<K: Eq + Hash, V, S: BuildHasher> Grow for HashMap<K, V, S> {
    #[inline]
    fn ensure_room(&mut self, additional: usize) {
        if self.capacity() - self.len() < additional {
            attempt(|| self.try_reserve(additional));
        }
    }
}

impl<T: Eq + Hash, S: BuildHasher> Grow for HashSet<T, S> {
    #[inline]
    fn ensure_room(&mut self, additional: usize) {
        if self.capacity() - self.len() < additional {
            attempt(|| self.try_reserve(additional));
        }
    }
}

/// Methods that add elements to a [`Vec`], and unwind if the memory cannot be allocated.
pub trait GrowVec<T> {
    /// [`Vec::push`] that unwinds if the allocation fails.
    fn grow_push(&mut self, element: T);
    /// [`Vec::resize`] that unwinds if the allocation fails, and allocates no more than needed.
    fn grow_exact(&mut self, len: usize, element: T)
    where
        T: Clone;
    /// [`Vec::resize`] that unwinds if the allocation fails.
    fn grow_to(&mut self, len: usize, element: T)
    where
        T: Clone;
    /// [`Vec::extend_from_slice`] that unwinds if the allocation fails.
    fn grow_by(&mut self, elements: &[T])
    where
        T: Clone;
    /// [`Vec::extend`] that unwinds if an allocation fails.
    fn grow_all(&mut self, elements: impl Iterator<Item = T>);
}

impl<T> GrowVec<T> for Vec<T> {
    #[inline]
    fn grow_push(&mut self, element: T) {
        self.ensure_room(1);
        self.push(element);
    }

    fn grow_exact(&mut self, len: usize, element: T)
    where
        T: Clone,
    {
        let additional = len.saturating_sub(self.len());
        if self.capacity() - self.len() < additional {
            attempt(|| self.try_reserve_exact(additional));
        }
        self.resize(len, element);
    }

    #[inline]
    fn grow_to(&mut self, len: usize, element: T)
    where
        T: Clone,
    {
        self.ensure_room(len.saturating_sub(self.len()));
        self.resize(len, element);
    }

    #[inline]
    fn grow_by(&mut self, elements: &[T])
    where
        T: Clone,
    {
        self.ensure_room(elements.len());
        self.extend_from_slice(elements);
    }

    #[inline]
    fn grow_all(&mut self, mut elements: impl Iterator<Item = T>) {
        self.ensure_room(elements.size_hint().0);
        // While there is room, adds elements without a check for each.
        loop {
            let room = self.capacity() - self.len();
            self.extend(elements.by_ref().take(room));
            match elements.next() {
                Some(element) => self.grow_push(element),
                None => return,
            }
        }
    }
}

/// Methods that add text to a [`String`], and unwind if the memory cannot be allocated.
pub trait GrowString {
    /// [`String::push_str`] that unwinds if the allocation fails.
    fn grow_str(&mut self, text: &str);
    /// [`String::push`] that unwinds if the allocation fails.
    fn grow_char(&mut self, c: char);
    /// [`String::extend`] that unwinds if an allocation fails.
    fn grow_chars(&mut self, chars: impl Iterator<Item = char>);
}

impl GrowString for String {
    #[inline]
    fn grow_str(&mut self, text: &str) {
        self.ensure_room(text.len());
        self.push_str(text);
    }

    #[inline]
    fn grow_char(&mut self, c: char) {
        self.ensure_room(c.len_utf8());
        self.push(c);
    }

    #[inline]
    fn grow_chars(&mut self, chars: impl Iterator<Item = char>) {
        self.ensure_room(chars.size_hint().0);
        chars.for_each(|c| self.grow_char(c));
    }
}

/// Returns a copy of a text. Unwinds if the memory cannot be allocated.
#[must_use]
pub fn copied(text: &str) -> String {
    let mut copy = String::new();
    copy.grow_str(text);
    copy
}

/// Growable list of 64-bit words in memory that the caller chooses.
pub trait WordStore {
    /// Returns all words for reading.
    fn words(&self) -> &[u64];
    /// Returns all words for writing.
    fn words_mut(&mut self) -> &mut [u64];
    /// Inserts `count` zeroes before the word at index `at`, or after the last word if `at` is the
    /// number of words.
    fn insert_zeroes(&mut self, at: usize, count: usize);
}

impl WordStore for Vec<u64> {
    fn words(&self) -> &[u64] {
        self
    }
    fn words_mut(&mut self) -> &mut [u64] {
        self
    }
    fn insert_zeroes(&mut self, at: usize, count: usize) {
        self.ensure_room(count);
        self.splice(at..at, std::iter::repeat_n(0, count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_that_of_the_standard_library() {
        let mut grown = Vec::new();
        grown.grow_push(1);
        grown.grow_by(&[2, 3]);
        grown.grow_all((4..1000).filter(|n| n % 3 > 0));
        grown.grow_to(700, 7);
        grown.grow_exact(800, 8);
        let mut expected = vec![1, 2, 3];
        expected.extend((4..1000).filter(|n| n % 3 > 0));
        expected.resize(700, 7);
        expected.resize(800, 8);
        assert_eq!(grown, expected);
        let mut text = copied("é");
        text.grow_char('一');
        text.grow_chars("abc".chars());
        assert_eq!(text, "é一abc");
    }

    #[test]
    fn too_much_unwinds() {
        for bytes in [usize::MAX / 4, usize::MAX] {
            let failed = std::panic::catch_unwind(|| ensure_available(bytes)).unwrap_err();
            assert!(failed.is::<OutOfMemory>());
        }
        assert!(!may_fail());
        ensure_available(1 << 10);
    }
}
