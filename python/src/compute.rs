//! Runs computations without the interpreter's lock. They can be interrupted, and reuse memory
//! from one text to the next.
use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use neardup_sketch::memory::OutOfMemory;
use neardup_sketch::minhash::{HashFamily, HashFamilyCache};
use pyo3::exceptions::{PyMemoryError, PyTypeError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;

use crate::options::{Family, items};

/// Minimum input in bytes for releasing the lock. Releasing and taking it costs less than hashing
/// a text of this length, even when threads compete for it.
const RELEASE_FROM: usize = 2048;
/// Number of texts that a thread processes in one batch.
const BATCH_TEXTS: usize = 64;
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

/// Texts of a call. `None` if the caller passed None.
pub type Texts = Vec<Option<PyBackedStr>>;

/// Reads the parameter `texts`.
pub fn texts(value: &Bound<'_, PyAny>) -> PyResult<Texts> {
    let texts = items(value, "texts", "str")?;
    texts.ok_or_else(|| PyTypeError::new_err("texts must be an iterable of str, not None"))
}

/// Computes a result for each text, without the interpreter's lock and in several threads. The
/// result for None is `None`.
///
/// # Errors
///
/// Like [`run`].
pub fn run_many<R: Send>(
    py: Python<'_>,
    texts: &[Option<PyBackedStr>],
    threads: usize,
    compute: impl Fn(&str, &mut dyn FnMut()) -> Option<R> + Sync,
) -> PyResult<Vec<Option<R>>> {
    let threads = threads.min(texts.len().div_ceil(BATCH_TEXTS)).max(1);
    let (next_batch, is_stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
    let work = |check: &mut dyn FnMut()| {
        let mut results = Vec::new();
        loop {
            let first = BATCH_TEXTS * next_batch.fetch_add(1, Ordering::Relaxed);
            let Some(rest) = texts.get(first..).filter(|rest| !rest.is_empty()) else {
                return results;
            };
            let batch = &rest[..rest.len().min(BATCH_TEXTS)];
            check();
            let of_batch: Vec<Option<R>> = (batch.iter())
                .map(|text| compute(text.as_deref()?, check))
                .collect();
            results.push((first, of_batch));
        }
    };
    let guarded = |check: &mut dyn FnMut()| {
        let result = catch_unwind(AssertUnwindSafe(|| work(check)));
        is_stopped.fetch_or(result.is_err(), Ordering::Relaxed);
        result
    };
    // Other threads cannot see signals. They stop when this thread stops.
    let check_stopped = || {
        if is_stopped.load(Ordering::Relaxed) {
            resume_unwind(Box::new(Stopped));
        }
    };
    let other = || guarded(&mut &check_stopped);
    let results = run(py, usize::MAX, |check| {
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(other)).collect();
            let mut results = vec![guarded(&mut || {
                check();
                check_stopped();
            })];
            let joined = others
                .into_iter()
                .map(|thread| thread.join().and_then(|it| it));
            results.extend(joined);
            results
        })
    })?;
    in_order(results)
}

/// Results of one thread: for each batch the index of its first text, and a result for each text.
type ThreadResults<R> = std::thread::Result<Vec<(usize, Vec<Option<R>>)>>;

/// Joins the results of all threads in text order.
fn in_order<R>(results: Vec<ThreadResults<R>>) -> PyResult<Vec<Option<R>>> {
    let mut batches = Vec::new();
    let mut errors = Vec::new();
    for result in results {
        match result {
            Ok(of_thread) => batches.extend(of_thread),
            Err(payload) => errors.push(payload),
        }
    }
    errors.sort_by_key(|payload| payload.is::<Stopped>());
    if let Some(payload) = errors.into_iter().next() {
        return Err(reason(payload));
    }
    batches.sort_unstable_by_key(|(first, _)| *first);
    Ok(batches
        .into_iter()
        .flat_map(|(_, results)| results)
        .collect())
}

/// Payload that unwinds a thread because another thread has failed.
struct Stopped;

/// Ends a computation with an exception. Avoids the panic hook, which would print a message.
fn unwind(error: PyErr) -> ! {
    resume_unwind(Box::new(error))
}

/// Returns the exception for a computation that was unwound. Resumes a panic.
fn reason(payload: Box<dyn Any + Send>) -> PyErr {
    if payload.is::<OutOfMemory>() {
        return PyMemoryError::new_err("not enough memory for this text");
    }
    match payload.downcast::<PyErr>() {
        Ok(error) => *error,
        Err(payload) => resume_unwind(payload),
    }
}

/// Runs `compute` with a hash family from the thread's cache of recent families.
pub fn with_family<R>(wanted: Family, compute: impl FnOnce(&HashFamily) -> R) -> R {
    let Family {
        scheme,
        hashes,
        seed,
    } = wanted;
    let family = FAMILIES.with_borrow_mut(|families| families.get(scheme, hashes, seed));
    compute(&family.expect("the seed was checked"))
}
