//! jieba's dictionary: when it is loaded, and the words that users add.
//!
//! Each process has its own. A backend loads it when it first needs it; the server itself does so
//! before it starts backends if the library is in `shared_preload_libraries`, and they share what it
//! has then.
use core::ffi::CStr;
use core::sync::atomic::{AtomicU64, Ordering};

use neardup_sketch::tokens::jieba::{Dictionary, LOAD_BYTES, UserWordError, UserWords};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{GucContext, PgLogLevel, PgSqlErrorCode};

use crate::pg::errors::{UserError, shown};
use crate::pg::setting::{self, Place, Refusal, TextSetting};

/// The setting `neardup.jieba_user_words`.
///
/// It can be set for the server as a whole only, so that all sessions find the same words, and changes
/// at a reload, between statements.
struct UserWordsSetting;

impl TextSetting for UserWordsSetting {
    const NAME: &'static CStr = c"neardup.jieba_user_words";
    const ABOUT: &'static CStr = c"Chinese words that jieba knows besides its dictionary.";
    const MORE: &'static CStr = c"Words parted by commas, each with its frequency behind it or without, in UTF-8. A change changes the fingerprints of texts with tokens \"jieba\", \"jieba_search\" and \"jieba_tfidf\".";
    const CONTEXT: GucContext = GucContext::Sighup;

    fn place() -> &'static Place {
        static PLACE: Place = Place::new();
        &PLACE
    }

    fn check(value: &[u8]) -> Result<(), Refusal> {
        parse(value).map(drop)
    }

    fn warn() {
        ErrorReport::new(
            PgSqlErrorCode::ERRCODE_WARNING,
            "other words in neardup.jieba_user_words change the fingerprints of Chinese texts",
            "neardup",
        )
        .set_detail("Fingerprints that are stored or indexed keep the words that they were made with, and do not compare with new ones.")
        .set_hint("Compute all fingerprints with tokens \"jieba\", \"jieba_search\" or \"jieba_tfidf\" again, and set the same words on standby servers.")
        .report(PgLogLevel::WARNING);
    }
}

fn parse(value: &[u8]) -> Result<UserWords, Refusal> {
    let text = str::from_utf8(value).map_err(|_| Refusal {
        detail: "The words are not valid UTF-8.".to_owned(),
        hint: "Write them into postgresql.conf in UTF-8, whatever the encoding of the database.",
    })?;
    UserWords::parse(text).map_err(|error| Refusal {
        // In ASCII: there may be no database yet, and so no encoding.
        detail: match &error {
            UserWordError::TooLong => error.to_string(),
            UserWordError::Entry { entry, what } => {
                format!("\"{}\": {what}", shown(entry.as_bytes()))
            }
        },
        hint: "Write words parted by commas, each with its frequency behind it or without.",
    })
}

/// The version of the setting that the dictionary was loaded with.
static LOADED: AtomicU64 = AtomicU64::new(0);

/// Makes the setting known to the server and, if the library is being preloaded, loads the dictionary.
/// Called once, when the library is loaded.
pub fn register() {
    setting::define::<UserWordsSetting>();
    if setting::is_preloading() {
        load();
    }
}

/// Loads the dictionary with the words that are set now, unless it is loaded with these.
pub fn load() {
    let place = UserWordsSetting::place();
    let version = place.version();
    if LOADED.load(Ordering::Relaxed) == version {
        return;
    }
    let text = place.text();
    let words = parse(&text).unwrap_or_else(|refusal| {
        UserError::invalid_parameter("neardup.jieba_user_words is invalid")
            .detail(refusal.detail)
            .hint(refusal.hint)
            .raise()
    });
    if !Dictionary::is_current(&words) {
        // In the midst of loading a failing allocation would end the process.
        let needed = LOAD_BYTES + WORD_BYTES * text.len();
        if Vec::<u8>::new().try_reserve_exact(needed).is_err() {
            UserError::out_of_memory().raise();
        }
        Dictionary::with_words(&words);
    }
    LOADED.store(version, Ordering::Relaxed);
}

/// Memory that user words take at most, for each byte of the list.
const WORD_BYTES: usize = 64;
