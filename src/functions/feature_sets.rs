//! SQL functions that use a set of common features, as `neardup_common_features` returns it:
//! `neardup_expert_feature_set_info(feature_set)`,
//! `neardup_expert_feature_set_contains(feature_set, hash)` and `neardup_text_without(body,
//! without, html)`.
use std::rc::Rc;

use neardup_sketch::common_features::{FeatureSet, REMAINDER_SEPARATOR};
use neardup_sketch::options::NamedOption;
use pgrx::PgSqlErrorCode;
use pgrx::pg_sys::Datum;

use super::dictionary;
use super::html::visible_text;
use crate::types::Fingerprint64;
use crate::types::fingerprint::arg;
use neardup_pg::errors::UserError;
use neardup_pg::fmgr::{Call, export};
use neardup_pg::memory::check_interrupts;
use neardup_pg::text;

/// Returns the set of features in argument `n`, prepared once for all calls in a query. Raises an
/// error if the argument is not a set of features. `name` is the argument's name, for the error.
pub fn set_argument(call: &Call, n: usize, name: &str) -> Rc<FeatureSet> {
    call.kept_argument(n, |bytes| {
        FeatureSet::from_stored(bytes).unwrap_or_else(|_| {
            UserError::new(
                PgSqlErrorCode::ERRCODE_INVALID_BINARY_REPRESENTATION,
                format!("\"{name}\" is not a set of features"),
            )
            .detail(format!(
                "The value has {} bytes, which do not have the format of a set.",
                bytes.len()
            ))
            .hint("Use neardup_common_features(body, share) to compute a set.")
            .raise()
        })
    })
}

/// `neardup_expert_feature_set_info(feature_set)`: number of features in a set, and the options
/// with which they were made.
fn info(call: &mut Call) -> Datum {
    let set = set_argument(call, 0, "feature_set");
    let options = set.options();
    let name = |name: &str| Some(text::datum(name));
    call.return_record(&[
        Some(Datum::from(set.len() as i64)),
        name(&options.tokens_name()),
        Some(Datum::from(options.shingle as i32)),
        name(options.normalize.accents.name()),
        name(options.normalize.digits.name()),
    ])
}

/// `neardup_expert_feature_set_contains(feature_set, hash)`: whether a set has the feature with
/// this hash.
fn contains(call: &mut Call) -> Datum {
    let set = set_argument(call, 0, "feature_set");
    Datum::from(set.contains(arg::<Fingerprint64>(call, 1).0))
}

/// Position of the argument `without` in the functions that have it.
pub const WITHOUT: usize = 1;

/// Returns whether an argument other than `without` is NULL. Then the called function returns NULL,
/// like a strict function. It is not declared strict, because `without` may be NULL, which means a
/// set without features.
pub fn has_null(call: &Call) -> bool {
    (0..call.arg_count()).any(|n| n != WITHOUT && call.is_null(n))
}

/// `neardup_text_without(body, without, html)`: the parts of a text that remain after the features
/// of the set `without` are removed. NULL if no text remains.
fn text_without(call: &mut Call) -> Datum {
    if has_null(call) {
        return call.return_null();
    }
    if call.is_null(1) {
        let text = visible_text(call, 0, call.bool(2));
        let left = text.utf8().chars().any(|c| !c.is_whitespace());
        return call.return_value(left.then(|| text::datum(text.utf8())));
    }
    let set = set_argument(call, 1, "without");
    if set.options().tokens.need_dictionary() {
        dictionary::load();
    }
    let text = visible_text(call, 0, call.bool(2));
    let parts = set.remaining_parts(text.utf8(), &mut check_interrupts);
    let separator = REMAINDER_SEPARATOR.encode_utf8(&mut [0; 4]).to_owned();
    let left = (!parts.is_empty()).then(|| text.joined(&parts, &separator));
    call.return_value(left)
}

export! {
    guarded "neardup_expert_feature_set_info" => info;
    guarded "neardup_expert_feature_set_contains" => contains;
    guarded "neardup_text_without" => text_without;
}
