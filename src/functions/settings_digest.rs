//! `neardup_expert_settings_digest()`: digest of all inputs of fingerprints except the text and
//! the options.
use std::sync::OnceLock;

use neardup_sketch::algorithms_digest;
use pgrx::pg_sys::Datum;

use super::dictionary;
use neardup_pg::fmgr::{Call, export};
use neardup_pg::varlena;

/// Returns the digest of the algorithms, computed once for the backend.
fn algorithms() -> u64 {
    static DIGEST: OnceLock<u64> = OnceLock::new();
    *DIGEST.get_or_init(algorithms_digest)
}

/// `neardup_expert_settings_digest()`.
fn digest(_: &mut Call) -> Datum {
    let version = env!("CARGO_PKG_VERSION");
    let words = dictionary::user_words_hash().unwrap_or_else(|| "none".to_owned());
    let text = format!(
        "neardup {version}, algorithms {:016x}, jieba user words {words}",
        algorithms()
    );
    varlena::build(&[text.as_bytes()])
}

export! {
    guarded "neardup_expert_settings_digest" => digest;
}
