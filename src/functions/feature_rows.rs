//! SQL functions that show the features of texts: `neardup_features` returns the features of a text
//! as rows, `_neardup_feature_hashes` returns their hashes.
use neardup_sketch::weight::FRACTION_BITS;
use neardup_sketch::{FeatureList, Sketcher};
use pgrx::pg_sys::Datum;

use super::feature_sets::has_null;
use super::text_options;
use super::without::fitting_set;
use neardup_pg::arrays::bigint_array;
use neardup_pg::fmgr::{Call, export};
use neardup_pg::memory::check_interrupts;
use neardup_pg::srf::SetReturning;
use neardup_pg::text;

/// Converts the weight of a feature from fixed point to floating point, as SQL functions show it.
/// The result is exact except for the largest weights.
pub fn weight(weight: u64) -> f32 {
    (weight as f64 / f64::from(1 << FRACTION_BITS)) as f32
}

/// Features of a text, returned as rows of `neardup_features`.
struct FeatureRows {
    list: FeatureList,
    next: usize,
}

impl SetReturning for FeatureRows {
    fn next(&mut self, columns: &mut Vec<Option<Datum>>) -> bool {
        let Some(feature) = self.list.get(self.next) else {
            return false;
        };
        self.next += 1;
        columns.extend([
            Some(text::datum(&feature.text)),
            Some(Datum::from(weight(feature.weight).to_bits())),
            Some(Datum::from(feature.hash)),
        ]);
        true
    }
}

/// `neardup_features(body, options)`: distinct features of a text, the heaviest first.
fn list(call: &mut Call) -> Datum {
    call.return_set(|call| {
        let options = text_options::weighted(call, 1);
        let list = FeatureList::new(&call.utf8(0), &options, &mut check_interrupts);
        FeatureRows { list, next: 0 }
    })
}

/// `_neardup_feature_hashes(body, options)`: hashes of the distinct features of a text, in no
/// particular order.
fn hashes(call: &mut Call) -> Datum {
    let text = call.utf8(0);
    let hashes = Sketcher::with_thread_local(text_options::unweighted(call, 1), |sketcher| {
        sketcher.feature_hashes(&text, &mut check_interrupts)
    });
    bigint_array(hashes.into_iter().map(|hash| hash as i64))
}

/// `_neardup_feature_hashes_without(body, without, options)`: hashes of the distinct features of a
/// text that are not in the set `without`, in no particular order.
fn hashes_without(call: &mut Call) -> Datum {
    if has_null(call) {
        return call.return_null();
    }
    let options = text_options::unweighted(call, 2);
    let (text, set) = (call.utf8(0), fitting_set(call, &options));
    let hashes = Sketcher::with_thread_local(options, |sketcher| {
        sketcher.feature_hashes_without(&text, set.as_deref(), &mut check_interrupts)
    });
    bigint_array(hashes.into_iter().map(|hash| hash as i64))
}

export! {
    guarded "_neardup_feature_hashes" => hashes;
    guarded "_neardup_feature_hashes_without" => hashes_without;
    guarded "neardup_features" => list;
}
