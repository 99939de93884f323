//! A setting whose value is a text, and its check.
//!
//! The server owns the text and may replace it whenever it reads its configuration, which it never
//! does in the midst of a statement.
use core::ffi::{CStr, c_char, c_void};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use neardup_sketch::memory::GrowVec;
use pgrx::{GucContext, pg_guard, pg_sys};

use super::{server, varlena};

/// Result of a check that refuses a text.
pub struct Refusal {
    /// Sentence that says what is wrong.
    pub detail: String,
    /// Advice to the user.
    pub hint: &'static str,
}

/// A setting. There is one of each `T`, and its text lives in statics of this crate.
pub trait TextSetting {
    /// Its name.
    const NAME: &'static CStr;
    /// Its purpose, in a line.
    const ABOUT: &'static CStr;
    /// More about it.
    const MORE: &'static CStr;
    /// Users who may set it, and the moment.
    const CONTEXT: GucContext;

    /// Place of its text.
    fn place() -> &'static Place;

    /// Returns whether a text can be its value.
    fn check(value: &[u8]) -> Result<(), Refusal>;

    /// Called if someone who is within a transaction tries another value than the present one: in
    /// ALTER SYSTEM, that is.
    fn warn() {}

    /// Called right before another value than the present one comes into force.
    fn changes() {}
}

/// Place of a setting's text.
#[derive(Default)]
pub struct Place {
    text: AtomicPtr<c_char>,
    /// Counts the values that it has had.
    version: AtomicU64,
    /// True if the server has given it the value that was configured.
    defined: AtomicBool,
}

impl Place {
    /// No text yet.
    pub const fn new() -> Self {
        Place {
            text: AtomicPtr::new(ptr::null_mut()),
            version: AtomicU64::new(0),
            defined: AtomicBool::new(false),
        }
    }

    /// A number that is another one as soon as the value is.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }

    /// The text; empty if there is none. A copy, since the server may replace it.
    pub fn text(&self) -> Vec<u8> {
        let mut copy = Vec::new();
        copy.grow_by(self.current());
        copy
    }

    fn current(&self) -> &[u8] {
        // SAFETY: the server keeps a terminated text here, and replaces it only when it reads its
        // configuration.
        unsafe { bytes(self.text.load(Ordering::Relaxed)) }.unwrap_or_default()
    }
}

/// Makes a setting known to the server, whose value is empty unless someone sets it. Called once,
/// while the server loads the library.
pub fn define<T: TextSetting>() {
    // SAFETY: all texts and the place are static; the hooks have the declared types. A null text is
    // taken as the value before any is set.
    unsafe {
        pg_sys::DefineCustomStringVariable(
            T::NAME.as_ptr(),
            T::ABOUT.as_ptr(),
            T::MORE.as_ptr(),
            T::place().text.as_ptr(),
            c"".as_ptr(),
            T::CONTEXT as isize as pg_sys::GucContext::Type,
            0,
            Some(check::<T>),
            Some(assign::<T>),
            None,
        );
    }
    T::place().defined.store(true, Ordering::Relaxed);
}

/// Returns whether the server is loading the libraries of `shared_preload_libraries` right now.
pub fn is_preloading() -> bool {
    server::is_preloading()
}

#[pg_guard]
unsafe extern "C-unwind" fn check<T: TextSetting>(
    new: *mut *mut c_char,
    _extra: *mut *mut c_void,
    _source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: the server passes a terminated text, or null.
    let Some(value) = (unsafe { bytes(*new) }) else {
        return true;
    };
    match T::check(value) {
        Ok(()) => {
            let place = T::place();
            let asked = server::IsTransactionState();
            if asked && place.defined.load(Ordering::Relaxed) && value != place.current() {
                T::warn();
            }
            true
        }
        Err(refusal) => {
            let text = |text: &str| varlena::cstring(text).cast_mut_ptr();
            // SAFETY: the server reads these after the check and frees nothing.
            unsafe {
                pg_sys::GUC_check_errdetail_string = text(&refusal.detail);
                pg_sys::GUC_check_errhint_string = text(refusal.hint);
            }
            false
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn assign<T: TextSetting>(new: *const c_char, _extra: *mut c_void) {
    let place = T::place();
    place.version.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the server passes a terminated text, or null.
    let new = unsafe { bytes(new) }.unwrap_or_default();
    if place.defined.load(Ordering::Relaxed) && new != place.current() {
        T::changes();
    }
}

/// The bytes of a text of the server's; `None` for null.
///
/// # Safety
/// `text` is terminated, or null; the result lives as long as it.
unsafe fn bytes<'a>(text: *const c_char) -> Option<&'a [u8]> {
    // SAFETY: as the caller promises.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_bytes())
}
