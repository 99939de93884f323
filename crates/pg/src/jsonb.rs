//! Makes values of type `jsonb`.
use std::borrow::Cow;

use neardup_sketch::memory::GrowVec;
use pgrx::pg_sys::{self, Datum};

use super::text;

/// Converts a JSON text to a `jsonb` in the current memory context. Characters are converted to the
/// database's encoding as by [`text::server_bytes`].
pub fn jsonb(json: String) -> Datum {
    let mut json = match text::server_bytes(&json) {
        Cow::Borrowed(_) => json.into_bytes(),
        Cow::Owned(bytes) => bytes,
    };
    json.grow_push(0);
    // SAFETY: `jsonb_in` takes a C string.
    unsafe {
        pgrx::direct_function_call_as_datum(pg_sys::jsonb_in, &[Some(Datum::from(json.as_ptr()))])
    }
    .expect("jsonb_in does not return NULL")
}
