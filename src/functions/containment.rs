//! `containment(a, b, options)`: how much of one text another holds.
use pgrx::pg_sys::Datum;

use super::sketcher::with_sketcher;
use super::text_options;
use crate::pg::fmgr::{Call, export};
use crate::pg::memory::check_interrupts;
use crate::pg::text;

/// NULL if the first text has no feature.
fn of_texts(call: &mut Call) -> Datum {
    // SAFETY: declared to take two texts and the parameters that are read here.
    let (a, b, options) = unsafe {
        let [a, b] = [0, 1].map(|n| text::utf8(call.arg(n)));
        (a, b, text_options::unweighted(call, 2))
    };
    let share = with_sketcher(options, |sketcher| {
        sketcher.containment(&a, &b, &mut check_interrupts)
    });
    match share {
        Some(share) => Datum::from(share.to_bits()),
        None => call.return_null(),
    }
}

export! {
    guarded "containment_texts" => of_texts;
}
