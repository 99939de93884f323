//! Values of type `jsonb`.
use neardup_sketch::memory::GrowVec;
use pgrx::pg_sys::{self, Datum};

use super::text;

/// Converts JSON, whose characters outside of ASCII are all within strings, to `jsonb`. Characters
/// that the encoding of the database does not have become an escape in the string.
pub fn jsonb(json: String) -> Datum {
    // In a string of JSON a backslash is written as two.
    let mut json = text::server_bytes(json, r"\\");
    json.grow_push(0);
    // SAFETY: a function of the server that takes a C string.
    unsafe {
        pgrx::direct_function_call_as_datum(pg_sys::jsonb_in, &[Some(Datum::from(json.as_ptr()))])
    }
    .expect("jsonb_in does not return NULL")
}
