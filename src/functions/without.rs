//! Fingerprints and signatures of a text without the features of a set: `minhash64_without(body,
//! without, options)` and so on. Such a set has, for example, the features that all pages of a site
//! share.
use std::rc::Rc;

use neardup_sketch::common_features::FeatureSet;
use neardup_sketch::options::NamedOption;
use neardup_sketch::{Sketcher, TextOptions};
use pgrx::pg_sys::Datum;

use super::feature_sets::{self, WITHOUT, has_null};
use super::minhash::{family_argument, signature};
use super::text_options;
use crate::types::{Fingerprint, Fingerprint64, Fingerprint128};
use neardup_pg::errors::UserError;
use neardup_pg::fmgr::{Call, export};
use neardup_pg::memory::check_interrupts;

/// Returns the set of features in the argument `without`, or `None` if it is NULL. Raises an error
/// unless the set was made with the same options as `options`.
pub fn fitting_set(call: &Call, options: &TextOptions) -> Option<Rc<FeatureSet>> {
    if call.is_null(WITHOUT) {
        return None;
    }
    let set = feature_sets::set_argument(call, WITHOUT, "without");
    if !set.fits(options) {
        let shown = |options: &TextOptions| {
            format!(
                "tokens \"{}\", shingle {}, accents \"{}\" and digits \"{}\"",
                options.tokens_name(),
                options.shingle,
                options.normalize.accents.name(),
                options.normalize.digits.name()
            )
        };
        UserError::invalid_parameter("feature set was built with different options")
            .detail(format!(
                "The set was computed with {}, but the text is processed with {}.",
                shown(&set.options()),
                shown(options)
            ))
            .hint("Pass the same parameters to neardup_common_features and to this function.")
            .raise();
    }
    Some(set)
}

/// `simhash_without(body, without, options)`: 64-bit simhash of a text without the features of the
/// set `without`. NULL if no feature remains.
fn simhash64(call: &mut Call) -> Datum {
    if has_null(call) {
        return call.return_null();
    }
    let options = text_options::weighted(call, 2);
    let (text, set) = (call.utf8(0), fitting_set(call, &options));
    let fingerprint = Sketcher::with_thread_local(options, |sketcher| {
        sketcher.simhash64_without(&text, set.as_deref(), &mut check_interrupts)
    });
    call.return_value(fingerprint.map(|bits| Fingerprint64(bits).into_datum()))
}

/// `simhash128_without(body, without, options)`: 128-bit simhash of a text without the features of
/// the set `without`. NULL if no feature remains.
fn simhash128(call: &mut Call) -> Datum {
    if has_null(call) {
        return call.return_null();
    }
    let options = text_options::weighted(call, 2);
    let (text, set) = (call.utf8(0), fitting_set(call, &options));
    let fingerprint = Sketcher::with_thread_local(options, |sketcher| {
        sketcher.simhash128_without(&text, set.as_deref(), &mut check_interrupts)
    });
    call.return_value(fingerprint.map(|bits| Fingerprint128::from(bits).into_datum()))
}

/// `minhash64_without(body, without, options)`: 64-bit minhash fingerprint of a text without the
/// features of the set `without`. NULL if no feature remains.
fn minhash64(call: &mut Call) -> Datum {
    if has_null(call) {
        return call.return_null();
    }
    let options = text_options::unweighted(call, 2);
    let (text, set) = (call.utf8(0), fitting_set(call, &options));
    let fingerprint = Sketcher::with_thread_local(options, |sketcher| {
        sketcher.minhash64_without(&text, set.as_deref(), &mut check_interrupts)
    });
    call.return_value(fingerprint.map(|bits| Fingerprint64(bits).into_datum()))
}

/// `minhash128_without(body, without, options)`: 128-bit minhash fingerprint of a text without the
/// features of the set `without`. NULL if no feature remains.
fn minhash128(call: &mut Call) -> Datum {
    if has_null(call) {
        return call.return_null();
    }
    let options = text_options::unweighted(call, 2);
    let (text, set) = (call.utf8(0), fitting_set(call, &options));
    let fingerprint = Sketcher::with_thread_local(options, |sketcher| {
        sketcher.minhash128_without(&text, set.as_deref(), &mut check_interrupts)
    });
    call.return_value(fingerprint.map(|bits| Fingerprint128::from(bits).into_datum()))
}

/// `minhash_without(body, without, options, hashes, seed, scheme)`: MinHash signature of a text
/// without the features of the set `without`. NULL if no feature remains.
fn minhash(call: &mut Call) -> Datum {
    if has_null(call) {
        return call.return_null();
    }
    let options = text_options::unweighted(call, 2);
    let (text, set) = (call.utf8(0), fitting_set(call, &options));
    let family = family_argument(call, 7);
    let values = Sketcher::with_thread_local(options, |sketcher| {
        sketcher.signature_without(&text, &family, set.as_deref(), &mut check_interrupts)
    });
    call.return_value(values.map(|values| signature(&family, &values)))
}

export! {
    guarded "simhash_without" => simhash64;
    guarded "simhash128_without" => simhash128;
    guarded "minhash64_without" => minhash64;
    guarded "minhash128_without" => minhash128;
    guarded "minhash_without" => minhash;
}
