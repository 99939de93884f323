//! `longest_sentences_hash(body, n)`: hash of the `n` longest sentences of a text.
use neardup_sketch::longest_sentences_hash;
use neardup_sketch::sentences::MAX_SENTENCES;
use pgrx::pg_sys::Datum;

use neardup_pg::errors::UserError;
use neardup_pg::fmgr::{Call, export};
use neardup_pg::memory::check_interrupts;

/// `longest_sentences_hash(body, n)`: hash of the `n` longest sentences, NULL if the text has no
/// word.
fn hash(call: &mut Call) -> Datum {
    let (body, n) = (call.utf8(0), call.int4(1));
    if !(1..=MAX_SENTENCES as i32).contains(&n) {
        UserError::invalid_parameter(format!("value {n} is out of range for \"n\""))
            .detail(format!(
                "The number of sentences that the hash covers must be from 1 to {MAX_SENTENCES}."
            ))
            .raise();
    }
    let hash = longest_sentences_hash(&body, n as usize, &mut check_interrupts);
    call.return_value(hash.map(Datum::from))
}

export! {
    guarded "longest_sentences_hash" => hash;
}
