//! Settings of the server (GUC variables) whose value is a text, with a check of each new value.
//!
//! The server owns the text, and may replace it when it reads its configuration. It never does so
//! during a statement.
use core::ffi::{CStr, c_char, c_void};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use neardup_sketch::memory::GrowVec;
use pgrx::{GucContext, pg_guard, pg_sys};

use super::{server, varlena};

/// Reason why [`TextSetting::check`] rejects a value.
pub struct Refusal {
    /// Detail of the error: a sentence that describes the mistake.
    pub detail: String,
    /// Hint of the error: advice to the user.
    pub hint: &'static str,
}

/// A setting whose value is a text. Each type that implements this trait is one setting.
pub trait TextSetting {
    /// Name of the setting, such as `neardup.jieba_user_words`.
    const NAME: &'static CStr;
    /// Description of the setting in one line (`pg_settings.short_desc`).
    const ABOUT: &'static CStr;
    /// Further description of the setting (`pg_settings.extra_desc`).
    const MORE: &'static CStr;
    /// Who may change the setting, and when.
    const CONTEXT: GucContext;

    /// Static memory that holds the setting's text.
    fn storage() -> &'static TextStorage;

    /// Returns an error if the setting must not have this value.
    fn check(value: &[u8]) -> Result<(), Refusal>;

    /// Warns of the consequences of a new value. Called in a transaction, after
    /// [`TextSetting::check`] has accepted a value that differs from the present value. The setting
    /// may get the value later or never: ALTER SYSTEM only writes it to a file. Does nothing by
    /// default.
    fn warn_of_change() {}

    /// Prepares for a new value. Called immediately before the setting gets a value that differs
    /// from the present value. Does nothing by default.
    fn before_change() {}
}

/// Memory that holds the text of one setting, and the state of the setting.
#[derive(Default)]
pub struct TextStorage {
    /// C string of the server; null before the setting is defined.
    text: AtomicPtr<c_char>,
    /// Number of assignments to the setting so far.
    version: AtomicU64,
    /// True once [`define`] has defined the setting. While it is false, the server checks and
    /// assigns the setting's first value, which does not count as a change.
    defined: AtomicBool,
}

impl TextStorage {
    /// Storage of a setting that is not defined yet.
    pub const fn new() -> Self {
        TextStorage {
            text: AtomicPtr::new(ptr::null_mut()),
            version: AtomicU64::new(0),
            defined: AtomicBool::new(false),
        }
    }

    /// Number that increases with each assignment to the setting, so that callers can detect a new
    /// value.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }

    /// Copies the setting's text; empty if there is none. The server may replace the original.
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

/// Defines the setting `T` in the server, with the empty text as its default. Call it once, while
/// the server loads the library.
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
                T::warn_of_change();
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
        T::before_change();
    }
}

/// The bytes of a C string without the terminating zero; `None` for a null pointer.
///
/// # Safety
/// `text` is null or a terminated string that lives as long as the result.
unsafe fn bytes<'a>(text: *const c_char) -> Option<&'a [u8]> {
    // SAFETY: as the caller promises.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_bytes())
}
