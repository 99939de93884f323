//! Suggestions in error hints: what to index instead of a column whose type a neardup index does
//! not support.
use pgrx::pg_sys;

use neardup_pg::catalog::{array_element, base_type, is_text};

/// Suggests how to index `expression`, an SQL expression of type `column_type`, for searches for
/// near-duplicates. Returns the text of an index column for CREATE INDEX: the expression with an
/// operator class, with a cast, or as the argument of `minhash64`. `None` if nothing suits the
/// type.
pub fn key_for(expression: &str, column_type: pg_sys::Oid) -> Option<String> {
    let base = base_type(column_type);
    let element = array_element(base);
    let is_text_array = element != pg_sys::InvalidOid && is_text(element);
    let has_texts = is_text(base) || is_text_array;
    if has_texts || matches!(base, pg_sys::BPCHAROID | pg_sys::TSVECTOROID) {
        return Some(format!("minhash64({expression})"));
    }
    let cast = match (base, element) {
        (pg_sys::INT8OID, _) => return Some(format!("{expression} bigint_hamming_ops")),
        (pg_sys::BITOID | pg_sys::VARBITOID | pg_sys::BYTEAOID | pg_sys::NUMERICOID, _) => {
            "fingerprint"
        }
        (pg_sys::UUIDOID, _) => "fingerprint128",
        (_, pg_sys::INT2OID | pg_sys::INT4OID) => "bigint[]",
        _ => return None,
    };
    Some(format!("({expression}::{cast})"))
}
