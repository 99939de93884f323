//! Hashes of a row's features: the SQL expression that computes them, and the array that the
//! expression returns.
use core::ffi::CStr;

use neardup_sketch::memory::Grow;
use pgrx::{PgSqlErrorCode, pg_sys};

use crate::am::makers::TextCall;
use neardup_pg::arrays::{bigints, element_count};
use neardup_pg::catalog;
use neardup_pg::errors::UserError;
use neardup_pg::value::Value;

/// Returns an SQL call that computes the feature hashes of a text. `text` is the SQL expression for
/// the text. `calls` has the options of each call that makes the fingerprints or signatures of
/// `relation`, a table or an index. The returned call has the same options, except those that do
/// not change the set of features. So it computes the hashes of the features from which these
/// values were made. Raises an error if there are several calls, or if an option is not a constant.
/// `schema` is the schema of the extension.
pub fn feature_call(text: &[u8], schema: &CStr, calls: &[TextCall], relation: &str) -> Vec<u8> {
    let options = match calls {
        [] => &[][..],
        [options] => options,
        _ => refuse_options(relation, "Several functions of a text compute the values."),
    };
    // Options that change the set of features. Weights of features, and the hash functions of a
    // signature, do not change the set.
    let of_set = |name: &[u8]| {
        [
            &b"without"[..],
            b"tokens",
            b"shingle",
            b"html",
            b"accents",
            b"digits",
        ]
        .contains(&name)
    };
    let options: Vec<_> = (options.iter())
        .filter(|(name, _)| of_set(name.to_bytes()))
        .collect();
    let has_set = options
        .iter()
        .any(|(name, _)| name.as_c_str() == c"without");
    let function = match has_set {
        true => c"_neardup_feature_hashes_without",
        false => c"_neardup_feature_hashes",
    };
    let mut sql = catalog::qualified(schema, function);
    sql.push(b'(');
    sql.extend_from_slice(text);
    for (name, constant) in options {
        let Some(constant) = constant else {
            refuse_options(relation, "The options of the function depend on the row.")
        };
        sql.extend_from_slice(b", ");
        sql.extend(catalog::quoted(name));
        sql.extend_from_slice(b" => ");
        match constant {
            None => sql.extend_from_slice(b"NULL"),
            Some((value, value_type)) => {
                sql.extend(catalog::literal(value));
                if *value_type != pg_sys::UNKNOWNOID {
                    sql.extend_from_slice(b"::");
                    sql.extend(catalog::qualified_type(*value_type, -1));
                }
            }
        }
    }
    sql.push(b')');
    sql
}

/// Returns the sorted and distinct feature hashes in an array of type `bigint[]`. Returns no hashes
/// for NULL.
pub fn feature_hashes(array: Option<Value>) -> Vec<u64> {
    let mut hashes: Vec<u64> = Vec::new();
    if let Some(array) = array {
        array.with_body(|body| {
            let elements = element_count(body);
            hashes.ensure_room(elements);
            hashes.extend(bigints(body).map(|hash| hash as u64));
            if hashes.len() < elements {
                refuse_null();
            }
        });
    }
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}

fn refuse_options(relation: &str, why: &str) -> ! {
    UserError::new(
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        format!("cannot determine how the features of \"{relation}\" were computed"),
    )
    .detail(why)
    .hint(
        "Pass the hashes of the features instead of a text: confirm => 'ARRAY(SELECT \
         hash::bigint FROM neardup_features(body, shingle => 3))'.",
    )
    .raise()
}

fn refuse_null() -> ! {
    UserError::null_not_allowed("an array of feature hashes contains NULL")
        .detail("The error comes from the parameter \"confirm\".")
        .raise()
}
