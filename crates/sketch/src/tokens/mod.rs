//! Tokens of a text.
//!
//! Words are the segments of [UAX 29] that have a letter or a digit (a character with the property
//! Alphabetic or of general category N), of the normal form of the text ([`crate::normalize`]).
//! Han and Hiragana fall into single characters, Katakana and Hangul into runs, Thai and its
//! neighbours into runs between spaces.
//!
//! No token contains a space (U+0020), so that [`crate::shingle::SEPARATOR`] cannot occur in one: a
//! segment that begins with a space is no word, even if it has a mark that counts as alphabetic.
//!
//! [UAX 29]: https://www.unicode.org/reports/tr29/#Word_Boundaries

mod ascii;
mod kinds;
pub(crate) mod word;
