//! Tokens of a text.
//!
//! No token contains a space (U+0020), so that [`crate::shingle::SEPARATOR`] cannot occur in one.

mod ascii;
mod kinds;
pub(crate) mod word;
