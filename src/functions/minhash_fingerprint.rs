//! `minhash64(...)` and `minhash128(...)`: fingerprints of a text, of features and of a tsvector,
//! whose distance estimates the Jaccard similarity.
use std::borrow::Cow;

use neardup_sketch::Sketcher;
use neardup_sketch::hash::feature_hash;
use neardup_sketch::minhash_fingerprint::FingerprintBuilder;
use pgrx::pg_sys::Datum;

use super::text_options;
use crate::types::{Fingerprint, Fingerprint64, Fingerprint128};
use neardup_pg::fmgr::{Call, export};
use neardup_pg::memory::check_interrupts;
use neardup_pg::text;

/// Number of features between two checks for interrupts.
const CHECK_EVERY: usize = 4096;

/// `minhash64(body, options)`: 64-bit fingerprint of a text, or NULL if the text has no feature.
fn minhash64(call: &mut Call) -> Datum {
    let (text, options) = (call.utf8(0), text_options::unweighted(call, 1));
    let fingerprint = Sketcher::with_thread_local(options, |sketcher| {
        sketcher.minhash64(&text, &mut check_interrupts)
    });
    call.return_value(fingerprint.map(|bits| Fingerprint64(bits).into_datum()))
}

/// `minhash128(body, options)`: 128-bit fingerprint of a text, or NULL if the text has no feature.
fn minhash128(call: &mut Call) -> Datum {
    let (text, options) = (call.utf8(0), text_options::unweighted(call, 1));
    let fingerprint = Sketcher::with_thread_local(options, |sketcher| {
        sketcher.minhash128(&text, &mut check_interrupts)
    });
    call.return_value(fingerprint.map(|bits| Fingerprint128::from(bits).into_datum()))
}

/// `minhash64(features)` and `minhash128(features)`: fingerprint of an array of features, or NULL
/// if the array is empty.
fn of_features<const W: usize, T: Fingerprint + From<[u64; W]>>(call: &mut Call) -> Datum {
    let features = call.array::<Cow<str>>(0, "features");
    let hashes = features.iter().map(|text| feature_hash(text.as_bytes()));
    let fingerprint = of_set::<W, T>(hashes);
    call.return_value(fingerprint.map(Fingerprint::into_datum))
}

/// `minhash64(tsvector)` and `minhash128(tsvector)`: fingerprint of the lexemes of a tsvector, or
/// NULL if it has none.
fn of_lexemes<const W: usize, T: Fingerprint + From<[u64; W]>>(call: &mut Call) -> Datum {
    let lexemes = call.tsvector(0);
    let texts = lexemes.iter().map(|lexeme| text::bytes_utf8(lexeme.bytes));
    let fingerprint = of_set::<W, T>(texts.map(|text| feature_hash(text.as_bytes())));
    call.return_value(fingerprint.map(Fingerprint::into_datum))
}

/// Returns the fingerprint of a set of features, given as hashes, or `None` if there are none.
fn of_set<const W: usize, T: From<[u64; W]>>(mut hashes: impl Iterator<Item = u64>) -> Option<T> {
    let mut minima = FingerprintBuilder::<W>::default();
    loop {
        let some: Vec<u64> = hashes.by_ref().take(CHECK_EVERY).collect();
        if some.is_empty() {
            break;
        }
        minima.add(&some);
        check_interrupts();
    }
    let bits = minima.finish(&mut check_interrupts);
    bits.map(T::from)
}

export! {
    guarded "minhash64_text" => minhash64;
    guarded "minhash64_features" => of_features::<1, Fingerprint64>;
    guarded "minhash64_tsvector" => of_lexemes::<1, Fingerprint64>;
    guarded "minhash128_text" => minhash128;
    guarded "minhash128_features" => of_features::<2, Fingerprint128>;
    guarded "minhash128_tsvector" => of_lexemes::<2, Fingerprint128>;
}
