//! `simhash(tsvector)` and `simhash128(tsvector)`: simhash of the lexemes that PostgreSQL's text
//! search extracts from a document by stemmers, stop words and dictionaries.
use neardup_sketch::hash::FeatureHash;
use neardup_sketch::simhash::lexeme::LexemeAccumulator;
use pgrx::pg_sys::Datum;

use crate::types::{Fingerprint, Fingerprint64, Fingerprint128};
use neardup_pg::fmgr::{Call, export};
use neardup_pg::text;

/// `simhash(tsvector)` and `simhash128(tsvector)`: simhash of the lexemes of a tsvector, or NULL if
/// it has none.
fn of_lexemes<const W: usize, T: Fingerprint + From<[u64; W]>>(call: &mut Call) -> Datum
where
    [u64; W]: FeatureHash,
{
    let lexemes = call.tsvector(0);
    // A tsvector is at most a megabyte long, so no check for interrupts is needed.
    let mut sums = LexemeAccumulator::<W>::default();
    for lexeme in lexemes.iter() {
        let text = text::bytes_utf8(lexeme.bytes);
        sums.add(text.as_bytes(), lexeme.occurrences());
    }
    call.return_value(sums.simhash().map(|words| T::from(words).into_datum()))
}

export! {
    guarded "simhash_tsvector" => of_lexemes::<1, Fingerprint64>;
    guarded "simhash128_tsvector" => of_lexemes::<2, Fingerprint128>;
}
