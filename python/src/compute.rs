//! Runs computations: without the interpreter's lock, interruptible, and with memory that is kept
//! from one text to the next.
use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use neardup_sketch::memory::OutOfMemory;
use neardup_sketch::minhash::{HashFamily, HashFamilyCache};
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;

use crate::options::Family;

/// Bytes of input from which on the lock is released. To release and to take it again costs less
/// than to hash a text of this length, even when threads compete for it.
const RELEASE_FROM: usize = 2048;
/// Time between two checks for signals, such as Ctrl-C.
const CHECK_EVERY: Duration = Duration::from_millis(100);

thread_local! {
    static FAMILIES: RefCell<HashFamilyCache> = const { RefCell::new(HashFamilyCache::new()) };
}

/// Computes a result from `bytes` bytes of input.
///
/// # Errors
///
/// If a signal handler raises an exception, or if there is not enough memory.
pub fn run<R: Send>(
    py: Python<'_>,
    bytes: usize,
    compute: impl FnOnce(&mut dyn FnMut()) -> R + Send,
) -> PyResult<R> {
    let guarded = || {
        let mut last = Instant::now();
        let mut check = || {
            if last.elapsed() >= CHECK_EVERY {
                last = Instant::now();
                Python::attach(|py| py.check_signals()).unwrap_or_else(|error| unwind(error));
            }
        };
        catch_unwind(AssertUnwindSafe(|| compute(&mut check)))
    };
    let result = match bytes < RELEASE_FROM {
        true => guarded(),
        false => py.detach(guarded),
    };
    result.map_err(reason)
}

/// Ends a computation with an exception: without the panic hook, which would print a message.
fn unwind(error: PyErr) -> ! {
    resume_unwind(Box::new(error))
}

/// The exception for a computation that was unwound. A panic goes on.
fn reason(payload: Box<dyn Any + Send>) -> PyErr {
    if payload.is::<OutOfMemory>() {
        return PyMemoryError::new_err("not enough memory for this text");
    }
    match payload.downcast::<PyErr>() {
        Ok(error) => *error,
        Err(payload) => resume_unwind(payload),
    }
}

/// Runs `compute` with a hash family of the thread, which keeps those used last.
pub fn with_family<R>(wanted: Family, compute: impl FnOnce(&HashFamily) -> R) -> R {
    let Family {
        scheme,
        hashes,
        seed,
    } = wanted;
    let family = FAMILIES.with_borrow_mut(|families| families.get(scheme, hashes, seed));
    compute(&family.expect("the seed was checked"))
}
