//! Answers to the server's requests of support functions.
use pgrx::pg_sys::{self, Datum, Node, NodeTag};

use super::nodes;
use crate::pg::fmgr::Call;

/// The answer to a request that is not handled: a null pointer, which is not SQL NULL.
pub const UNHANDLED: Datum = Datum::null();

/// The answer to a request that is handled if there is a replacement.
pub fn answer(replacement: Option<*mut Node>) -> Datum {
    replacement.map_or(UNHANDLED, Datum::from)
}

/// The request to simplify a function call, if that is what the server asks for.
pub fn simplify_request(call: &Call) -> Option<*mut pg_sys::SupportRequestSimplify> {
    // SAFETY: support functions are called with one of the server's request nodes.
    unsafe {
        nodes::downcast(
            call.arg(0).cast_mut_ptr(),
            NodeTag::T_SupportRequestSimplify,
        )
    }
}
