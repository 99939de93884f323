//! `simhash(body, options)` and `simhash128(body, options)`: simhash fingerprint of a text.
use neardup_sketch::Sketcher;
use pgrx::pg_sys::Datum;

use super::text_options;
use crate::types::{Fingerprint, Fingerprint64, Fingerprint128};
use neardup_pg::fmgr::{Call, export};
use neardup_pg::memory::check_interrupts;

/// `simhash(body, options)`: 64-bit simhash of a text. NULL if the text has no feature.
fn simhash64(call: &mut Call) -> Datum {
    let (text, options) = (call.utf8(0), text_options::weighted(call, 1));
    let fingerprint = Sketcher::with_thread_local(options, |sketcher| {
        sketcher.simhash64(&text, &mut check_interrupts)
    });
    call.return_value(fingerprint.map(|bits| Fingerprint64(bits).into_datum()))
}

/// `simhash128(body, options)`: 128-bit simhash of a text. NULL if the text has no feature.
fn simhash128(call: &mut Call) -> Datum {
    let (text, options) = (call.utf8(0), text_options::weighted(call, 1));
    let fingerprint = Sketcher::with_thread_local(options, |sketcher| {
        sketcher.simhash128(&text, &mut check_interrupts)
    });
    call.return_value(fingerprint.map(|bits| Fingerprint128::from(bits).into_datum()))
}

export! {
    guarded "simhash_text" => simhash64;
    guarded "simhash128_text" => simhash128;
}
