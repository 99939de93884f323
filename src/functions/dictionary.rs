//! The settings of jieba, the tokenizer of Chinese words, and the loading of its dictionary.
//!
//! Each process has its own dictionary. A backend loads its dictionary when the dictionary is first
//! needed. With `shared_preload_libraries` the server loads the dictionary before it starts
//! backends, which then share the memory.
//!
//! The setting `neardup.jieba_user_words` adds words to the dictionary. Fingerprints depend on
//! these words, but the planner treats the functions that compute fingerprints as immutable. Cached
//! plans may have results of these functions as constants, so they are invalidated when the words
//! change. A database can store the hash of the words with which its fingerprints were made
//! (`neardup.jieba_words_hash`). Then a session that finds other words gets a warning.
use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use neardup_sketch::memory::ensure_available;
use neardup_sketch::tokens::jieba::{Dictionary, LOAD_BYTES, UserWordError, UserWords};
use pgrx::pg_sys::Datum;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{GucContext, PgLogLevel, PgSqlErrorCode};

use neardup_pg::backend;
use neardup_pg::catalog::extension_exists;
use neardup_pg::errors::{UserError, shown};
use neardup_pg::fmgr::{Call, export};
use neardup_pg::guc_text::{self, Refusal, TextSetting, TextStorage};
use neardup_pg::varlena;

/// Setting `neardup.jieba_user_words`: words that are added to jieba's dictionary.
///
/// It can be set only for the whole server, so that all sessions find the same words. It changes
/// when the server reloads its configuration, between statements.
struct UserWordsSetting;

impl TextSetting for UserWordsSetting {
    const NAME: &'static CStr = c"neardup.jieba_user_words";
    const ABOUT: &'static CStr = c"Chinese words that jieba knows in addition to its dictionary.";
    const MORE: &'static CStr =
        c"Words separated by commas, each optionally followed by its frequency, in UTF-8. Changing \
          the words changes the fingerprints of texts with tokens \"jieba\", \"jieba_search\" and \
          \"jieba_tfidf\".";
    const CONTEXT: GucContext = GucContext::Sighup;

    fn storage() -> &'static TextStorage {
        static STORAGE: TextStorage = TextStorage::new();
        &STORAGE
    }

    fn check(value: &[u8]) -> Result<(), Refusal> {
        parse(value).map(drop)
    }

    fn warn_of_change() {
        ErrorReport::new(
            PgSqlErrorCode::ERRCODE_WARNING,
            "the new words in neardup.jieba_user_words change the fingerprints of Chinese texts",
            "neardup",
        )
        .set_detail(
            "Stored and indexed fingerprints were computed with the old words. They cannot be \
             compared with new fingerprints.",
        )
        .set_hint(
            "Recompute all fingerprints that use the tokens \"jieba\", \"jieba_search\" or \
             \"jieba_tfidf\". Set the same words on standby servers.",
        )
        .report(PgLogLevel::WARNING);
    }

    fn before_change() {
        backend::reset_plan_cache();
    }
}

/// Setting `neardup.jieba_words_hash`: hash of the user words with which the fingerprints of a
/// database were made, as `neardup_jieba_words_hash()` returns it. If it is empty, sessions do not
/// compare it with the hash of their words.
struct WordsHashSetting;

impl TextSetting for WordsHashSetting {
    const NAME: &'static CStr = c"neardup.jieba_words_hash";
    const ABOUT: &'static CStr = c"Hash of the user words with which stored fingerprints were \
                                   computed.";
    const MORE: &'static CStr =
        c"The result of neardup_jieba_words_hash() when the fingerprints were computed, for ALTER \
          DATABASE ... SET. A session that finds other words gets a warning. If empty, no session \
          does.";
    const CONTEXT: GucContext = GucContext::Userset;

    fn storage() -> &'static TextStorage {
        static STORAGE: TextStorage = TextStorage::new();
        &STORAGE
    }

    fn check(value: &[u8]) -> Result<(), Refusal> {
        let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if value.is_empty() || value.len() == 16 && value.iter().all(is_digit) {
            return Ok(());
        }
        Err(Refusal {
            detail: "The value must be 16 hexadecimal digits, or empty.".to_owned(),
            hint: "Use the result of neardup_jieba_words_hash().",
        })
    }
}

/// Warns if the fingerprints of the database were made with other user words than `words`.
fn compare(words: &UserWords) {
    let (expected, found) = (WordsHashSetting::storage().text(), shown_hash(words));
    // Workers of a parallel query do not warn: their leader does.
    let is_worker = backend::is_parallel_worker();
    if expected.is_empty() || expected == found.as_bytes() || is_worker {
        return;
    }
    ErrorReport::new(
        PgSqlErrorCode::ERRCODE_WARNING,
        "stored fingerprints were computed with different words in neardup.jieba_user_words",
        "neardup",
    )
    .set_detail(format!(
        "The setting neardup.jieba_words_hash is {}, but the function neardup_jieba_words_hash() \
         returns {found}.",
        shown(&expected)
    ))
    .set_hint(
        "Restore the old value of neardup.jieba_user_words. Or recompute all fingerprints that use \
         the tokens \"jieba\", \"jieba_search\" or \"jieba_tfidf\", and then set \
         neardup.jieba_words_hash to the new hash.",
    )
    .report(PgLogLevel::WARNING);
}

/// Returns the hash of user words as 16 hexadecimal digits.
fn shown_hash(words: &UserWords) -> String {
    format!("{:016x}", words.hash())
}

/// Parses a new value of `neardup.jieba_user_words`. Returns the words, or the reason why the value
/// is invalid. The caller raises the error.
fn parse(value: &[u8]) -> Result<UserWords, Refusal> {
    // Fail here if there is no memory for the words of the list, because a failed allocation during
    // parsing would abort the process.
    if Vec::<u8>::new()
        .try_reserve_exact(WORD_BYTES * value.len())
        .is_err()
    {
        return Err(Refusal {
            detail: "The server does not have enough memory to read the list.".to_owned(),
            hint: "Write a shorter list.",
        });
    }
    let text = str::from_utf8(value).map_err(|_| Refusal {
        detail: "The words are not valid UTF-8.".to_owned(),
        hint: "Write the words in postgresql.conf in UTF-8, even if the database has another \
               encoding.",
    })?;
    UserWords::parse(text).map_err(|error| Refusal {
        // The message is in ASCII, because there may be no database yet, and so no encoding.
        detail: match &error {
            UserWordError::TooLong => error.to_string(),
            UserWordError::Entry { entry, error } => {
                format!("\"{}\": {error}", shown(entry.as_bytes()))
            }
        },
        hint: "Separate the words by commas. A word can be followed by its frequency.",
    })
}

/// Sum of the version numbers of both settings when this process last called [`load`] successfully.
/// A different present sum shows that a setting has changed since, so that the dictionary must be
/// loaded and the hash of its words compared again.
static LOADED: AtomicU64 = AtomicU64::new(0);

/// Defines the two settings of jieba. If the library is being preloaded, also loads the dictionary.
/// Called once, when the library is loaded.
pub fn register() {
    guc_text::define::<UserWordsSetting>();
    guc_text::define::<WordsHashSetting>();
    if guc_text::is_preloading() {
        load();
    }
}

/// Extensions that let other servers take part in queries.
const OTHER_SERVERS: [&CStr; 2] = [c"citus", c"postgres_fdw"];

/// Warns once per session if user words are set in a database that works with other servers, which
/// may have other words. Does not warn if `neardup.jieba_words_hash` is set, since then each server
/// compares its words with this hash.
fn warn_of_other_servers() {
    static IS_CHECKED: AtomicBool = AtomicBool::new(false);
    if guc_text::is_preloading() || IS_CHECKED.swap(true, Ordering::Relaxed) {
        return;
    }
    let has_words = !UserWordsSetting::storage().text().is_empty();
    let is_silent = backend::is_parallel_worker() || !WordsHashSetting::storage().text().is_empty();
    if !has_words || is_silent {
        return;
    }
    let Some(other) = OTHER_SERVERS.iter().find(|name| extension_exists(name)) else {
        return;
    };
    UserError::new(
        PgSqlErrorCode::ERRCODE_WARNING,
        "neardup.jieba_user_words is set in a database that is connected to other servers",
    )
    .detail(format!(
        "The extension \"{}\" is installed. If another server has different words, it computes \
         different fingerprints for the same Chinese text.",
        other.to_string_lossy()
    ))
    .hint(
        "Check that neardup_expert_settings_digest() returns the same value on all servers. Call \
         neardup_jieba_words_hash(). On each server, set neardup.jieba_words_hash to the result, \
         by ALTER DATABASE. Then only sessions with different words get this warning.",
    )
    .warn();
}

/// Loads jieba's dictionary with the current user words, unless it is already loaded with them.
pub fn load() {
    warn_of_other_servers();
    let version = UserWordsSetting::storage().version() + WordsHashSetting::storage().version();
    if LOADED.load(Ordering::Relaxed) == version {
        return;
    }
    let text = UserWordsSetting::storage().text();
    let words = words(&text);
    if !Dictionary::is_current(&words) {
        // A failed allocation during loading would abort the process.
        ensure_available(LOAD_BYTES + WORD_BYTES * text.len());
        Dictionary::with_words(&words);
    }
    compare(&words);
    LOADED.store(version, Ordering::Relaxed);
}

/// Parses the value of `neardup.jieba_user_words`. Raises an error if it is invalid.
fn words(text: &[u8]) -> UserWords {
    parse(text).unwrap_or_else(|refusal| {
        UserError::invalid_parameter("neardup.jieba_user_words is invalid")
            .detail(refusal.detail)
            .hint(refusal.hint)
            .raise()
    })
}

/// `neardup_jieba_words_hash()`: hash of the current user words, as 16 hexadecimal digits.
fn hash_of_words(_: &mut Call) -> Datum {
    let words = words(&UserWordsSetting::storage().text());
    varlena::build(&[shown_hash(&words).as_bytes()])
}

/// Returns the hash of the current user words, or `None` if there are no user words.
pub fn user_words_hash() -> Option<String> {
    let words = words(&UserWordsSetting::storage().text());
    (words != UserWords::default()).then(|| shown_hash(&words))
}

/// Maximum memory that parsed user words need, in bytes for each byte of the setting's value. So
/// much memory must be available before the words are parsed.
const WORD_BYTES: usize = 64;

export! {
    guarded "neardup_jieba_words_hash" => hash_of_words;
}
