//! SQL functions that compare the features of two texts: `containment` returns the share of the
//! features of the first text that the second text has. `jaccard_similarity` returns the Jaccard
//! similarity of their feature sets.
use neardup_sketch::Sketcher;
use pgrx::pg_sys::Datum;

use super::text_options;
use neardup_pg::fmgr::{Call, export};
use neardup_pg::memory::check_interrupts;

/// `containment(a, b, options)`: share of the features of `a` that `b` has. NULL if `a` has no
/// feature.
fn containment(call: &mut Call) -> Datum {
    let [a, b] = [0, 1].map(|n| call.utf8(n));
    let options = text_options::unweighted(call, 2);
    let share = Sketcher::with_thread_local(options, |sketcher| {
        sketcher.containment(&a, &b, &mut check_interrupts)
    });
    call.return_value(share.map(|share| Datum::from(share.to_bits())))
}

/// `jaccard_similarity(a, b, options)`: Jaccard similarity of the feature sets of two texts. NULL
/// if neither text has a feature.
fn jaccard(call: &mut Call) -> Datum {
    let [a, b] = [0, 1].map(|n| call.utf8(n));
    let similarity = Sketcher::with_thread_local(text_options::unweighted(call, 2), |sketcher| {
        sketcher.jaccard_similarity(&a, &b, &mut check_interrupts)
    });
    call.return_value(similarity.map(|similarity| Datum::from(similarity.to_bits())))
}

export! {
    guarded "containment_texts" => containment;
    guarded "jaccard_similarity" => jaccard;
}
