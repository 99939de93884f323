//! Indexes on arrays of numbers, such as the hashes of a text's passages. A row has an index entry
//! for each distinct element of its array, and one for the sum of the hashes of these elements.
pub mod search;

use neardup_sketch::memory::GrowVec;

use neardup_pg::arrays;
use neardup_pg::value::Value;

/// Returns the distinct elements of `array`, the right operand of a condition `@>`, in ascending
/// order. A row's array fulfils the condition if it has all of them. Returns `None` if `array` has
/// a NULL, because then no row fulfils the condition.
pub fn required_elements(array: Value) -> Option<Vec<u64>> {
    let has_null =
        array.with_body(|body| arrays::bigints(body).count() < arrays::element_count(body));
    (!has_null).then(|| elements(array))
}

/// Returns the distinct elements of an array (`bigint[]`) in ascending order, without NULLs.
pub fn elements(array: Value) -> Vec<u64> {
    let mut elements: Vec<u64> = Vec::new();
    array.with_body(|body| elements.grow_all(arrays::bigints(body).map(|it| it as u64)));
    elements.sort_unstable();
    elements.dedup();
    elements
}
