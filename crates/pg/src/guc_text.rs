//! Setting whose value is a text, and its check.
//!
//! The server owns the text and may replace it when it reads its configuration. It never does so
//! during a statement.
use core::ffi::{CStr, c_char, c_void};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use neardup_sketch::memory::GrowVec;
use pgrx::{GucContext, pg_guard, pg_sys};

use super::{server, varlena};

/// Reason why a check rejects a text.
pub struct Refusal {
    /// Sentence that describes the mistake.
    pub detail: String,
    /// Advice to the user.
    pub hint: &'static str,
}

/// Setting. Each `T` is one setting, with its text in a static of this crate.
pub trait TextSetting {
    /// Its name.
    const NAME: &'static CStr;
    /// One-line description.
    const ABOUT: &'static CStr;
    /// Long description.
    const MORE: &'static CStr;
    /// Who may set it, and when.
    const CONTEXT: GucContext;

    /// Storage of its text.
    fn storage() -> &'static TextStorage;

    /// Checks a new value.
    fn check(value: &[u8]) -> Result<(), Refusal>;

    /// Called if a session that is in a transaction checks a value other than the present one, as
    /// ALTER SYSTEM does.
    fn warn() {}

    /// Called immediately before the value changes.
    fn changes() {}
}

/// Storage of a setting's text.
#[derive(Default)]
pub struct TextStorage {
    text: AtomicPtr<c_char>,
    /// Number of assignments so far.
    version: AtomicU64,
    /// True once the server has assigned the configured value.
    defined: AtomicBool,
}

impl TextStorage {
    /// No text yet.
    pub const fn new() -> Self {
        TextStorage {
            text: AtomicPtr::new(ptr::null_mut()),
            version: AtomicU64::new(0),
            defined: AtomicBool::new(false),
        }
    }

    /// Version number, which increases with each assignment.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }

    /// A copy of the text, because the server may replace it; empty if there is none.
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

/// Defines a setting, which is empty by default. Called once, while the server loads the library.
pub fn define<T: TextSetting>() {
    // SAFETY: all texts and the storage are static; the hooks have the declared types. The server
    // accepts a null text as the default value.
    unsafe {
        pg_sys::DefineCustomStringVariable(
            T::NAME.as_ptr(),
            T::ABOUT.as_ptr(),
            T::MORE.as_ptr(),
            T::storage().text.as_ptr(),
            c"".as_ptr(),
            T::CONTEXT as isize as pg_sys::GucContext::Type,
            0,
            Some(check::<T>),
            Some(assign::<T>),
            None,
        );
    }
    T::storage().defined.store(true, Ordering::Relaxed);
}

/// Returns whether the server is now loading the libraries of `shared_preload_libraries`.
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
            let storage = T::storage();
            let asked = server::IsTransactionState();
            if asked && storage.defined.load(Ordering::Relaxed) && value != storage.current() {
                T::warn();
            }
            true
        }
        Err(refusal) => {
            let text = |text: &str| varlena::cstring(text).cast_mut_ptr();
            // SAFETY: the server reads both texts after the check and does not free them.
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
    let storage = T::storage();
    storage.version.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the server passes a terminated text, or null.
    let new = unsafe { bytes(new) }.unwrap_or_default();
    if storage.defined.load(Ordering::Relaxed) && new != storage.current() {
        T::changes();
    }
}

/// The bytes of a C string; `None` for null.
///
/// # Safety
/// `text` is null or a terminated string that lives as long as the result.
unsafe fn bytes<'a>(text: *const c_char) -> Option<&'a [u8]> {
    // SAFETY: as the caller promises.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_bytes())
}
