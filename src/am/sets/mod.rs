//! Indexes on sets of numbers, such as the hashes of a text's passages: each row stands in the
//! index under each element of its array.
pub mod search;

use neardup_sketch::memory::GrowVec;

use neardup_pg::arrays;
use neardup_pg::value::Value;

/// The set of an array's elements, in ascending order, each once. NULLs are in no set.
pub fn elements(array: Value) -> Vec<u64> {
    let mut elements: Vec<u64> = Vec::new();
    array.with_body(|body| elements.grow_all(arrays::bigints(body).map(|it| it as u64)));
    elements.sort_unstable();
    elements.dedup();
    elements
}
