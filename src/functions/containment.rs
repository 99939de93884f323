//! `containment(a, b, options)`: share of the features of text `a` that text `b` has.
use neardup_sketch::Sketcher;
use pgrx::pg_sys::Datum;

use super::text_options;
use neardup_pg::fmgr::{Call, export};
use neardup_pg::memory::check_interrupts;

/// `containment(a, b, options)`. NULL if the first text has no feature.
fn of_texts(call: &mut Call) -> Datum {
    let [a, b] = [0, 1].map(|n| call.utf8(n));
    let options = text_options::unweighted(call, 2);
    let share = Sketcher::with_thread_local(options, |sketcher| {
        sketcher.containment(&a, &b, &mut check_interrupts)
    });
    call.return_value(share.map(|share| Datum::from(share.to_bits())))
}

export! {
    guarded "containment_texts" => of_texts;
}
