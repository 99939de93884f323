//! `simhash(body)` and `simhash128(body)`: the fingerprint of a text.
use neardup_sketch::{TextOptions, simhash64_text, simhash128_text};
use pgrx::pg_sys::Datum;

use crate::functions::text_options;
use crate::pg::fmgr::{Call, export};
use crate::pg::memory::check_interrupts;
use crate::pg::text;
use crate::types::{Fingerprint, Fingerprint64, Fingerprint128};

/// A fingerprint type that texts have.
trait Simhash: Fingerprint {
    /// The fingerprint of a text; `None` if it has no feature.
    fn of_text(text: &str, options: &TextOptions, check: &mut dyn FnMut()) -> Option<Self>;
}

impl Simhash for Fingerprint64 {
    fn of_text(text: &str, options: &TextOptions, check: &mut dyn FnMut()) -> Option<Self> {
        simhash64_text(text, options, check).map(Fingerprint64)
    }
}

impl Simhash for Fingerprint128 {
    fn of_text(text: &str, options: &TextOptions, check: &mut dyn FnMut()) -> Option<Self> {
        simhash128_text(text, options, check).map(Fingerprint128::from)
    }
}

/// The fingerprint of a text; NULL if it has no feature.
fn of_text<T: Simhash>(call: &mut Call) -> Datum {
    // SAFETY: declared to take text and the parameters that are read here.
    let (text, options) = unsafe { (text::utf8(call.arg(0)), text_options::weighted(call, 1)) };
    let fingerprint = T::of_text(&text, &options, &mut check_interrupts);
    call.return_value(fingerprint.map(Fingerprint::into_datum))
}

export! {
    guarded "simhash_text" => of_text::<Fingerprint64>;
    guarded "simhash128_text" => of_text::<Fingerprint128>;
}
