//! Memory that grows with the input.
//!
//! The standard library ends the process when an allocation fails. Whatever grows with a text makes
//! room through [`Grow`] first, which asks the allocator and unwinds if it says no, so that the
//! caller loses the text at hand and nothing else. [`on_failure`] tells how to unwind.
//!
//! The rest are allocations of bounded size: buffers of some kilobytes, and those inside the
//! crates for normalisation, HTML and Chinese words. A process that must survive them as well has
//! an allocator with a reserve; [`may_fail`] tells it which requests need not be met from there,
//! and [`report_shortage`] lets the next growth fail, before the reserve is used up. Large buffers
//! inside other crates are asked for by [`ensure_available`] beforehand.

use std::collections::{BinaryHeap, HashMap, HashSet, TryReserveError};
use std::hash::{BuildHasher, Hash};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Payload of the panic when memory cannot be had, unless [`on_failure`] says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

static RAISE: OnceLock<fn() -> !> = OnceLock::new();
static MAY_FAIL: AtomicBool = AtomicBool::new(false);
static SHORTAGE: AtomicBool = AtomicBool::new(false);

/// Sets the function that is called when memory cannot be had; it has to unwind. The first call
/// counts. Without one, the panic's payload is [`OutOfMemory`].
pub fn on_failure(raise: fn() -> !) {
    // A second library of the same process would set the same.
    let _ = RAISE.set(raise);
}

/// Whether the allocation that is under way may fail.
#[must_use]
pub fn may_fail() -> bool {
    MAY_FAIL.load(Ordering::Relaxed)
}

/// Makes the next growth fail, whether or not there is memory: the allocator uses its reserve.
pub fn report_shortage() {
    SHORTAGE.store(true, Ordering::Relaxed);
}

/// Whether a shortage was reported since the last call; it is forgotten.
pub fn take_shortage() -> bool {
    SHORTAGE.load(Ordering::Relaxed) && SHORTAGE.swap(false, Ordering::Relaxed)
}

/// Unwinds as [`on_failure`] says.
#[cold]
pub fn raise() -> ! {
    match RAISE.get() {
        Some(raise) => raise(),
        // Without the panic hook, which would print a message.
        None => std::panic::resume_unwind(Box::new(OutOfMemory)),
    }
}

/// Makes an allocation that may fail; unwinds if it does.
#[cold]
fn attempt(reserve: impl FnOnce() -> Result<(), TryReserveError>) {
    MAY_FAIL.store(true, Ordering::Relaxed);
    let reserved = reserve();
    MAY_FAIL.store(false, Ordering::Relaxed);
    if reserved.is_err() || take_shortage() {
        raise();
    }
}

/// Unwinds unless so many bytes can be had right now: for work that allocates at most that much
/// through code that cannot fail otherwise.
pub fn ensure_available(bytes: usize) {
    attempt(|| Vec::<u8>::new().try_reserve_exact(bytes));
}

/// Growth that unwinds, as [`on_failure`] says, where the standard library's ends the process.
pub trait Grow {
    /// Makes room for so many more elements.
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

/// Growth of a vector, by elements.
pub trait GrowVec<T> {
    /// [`Vec::push`].
    fn grow_push(&mut self, element: T);
    /// [`Vec::resize`], with no more memory than needed.
    fn grow_exact(&mut self, len: usize, element: T)
    where
        T: Clone;
    /// [`Vec::resize`].
    fn grow_to(&mut self, len: usize, element: T)
    where
        T: Clone;
    /// [`Vec::extend_from_slice`].
    fn grow_by(&mut self, elements: &[T])
    where
        T: Clone;
    /// [`Vec::extend`].
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
        // As long as there is room, without a question for each.
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

/// Growth of a string.
pub trait GrowString {
    /// [`String::push_str`].
    fn grow_str(&mut self, text: &str);
    /// [`String::push`].
    fn grow_char(&mut self, c: char);
    /// [`String::extend`].
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

/// A copy of a text.
#[must_use]
pub fn copied(text: &str) -> String {
    let mut copy = String::new();
    copy.grow_str(text);
    copy
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
