//! `neardup_expert_settings_digest()`: digest of everything on which fingerprints depend, except
//! the text and the options. Equal digests on two servers mean equal fingerprints.
use std::sync::OnceLock;

use neardup_sketch::algorithms_digest;
use pgrx::pg_sys::Datum;

use super::dictionary;
use neardup_pg::fmgr::{Call, export};
use neardup_pg::varlena;

/// Returns the digest of the algorithms of this build. It is computed once in each backend.
fn algorithms() -> u64 {
    static DIGEST: OnceLock<u64> = OnceLock::new();
    *DIGEST.get_or_init(algorithms_digest)
}

/// `neardup_expert_settings_digest()`: version of neardup, digest of its algorithms, and hash of
/// jieba's user words.
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
