//! Tokens of a text: words, characters or lines.
//!
//! Words are the segments of [UAX 29] that have a letter or a digit (a character with the property
//! Alphabetic or of general category N), of the normal form of the text ([`crate::normalize`]).
//! Han and Hiragana fall into single characters, Katakana and Hangul into runs, Thai and its
//! neighbours into runs between spaces.
//!
//! No token contains a space (U+0020), so that [`crate::shingle::SEPARATOR`] cannot occur in one: a
//! segment that begins with a space is no word, even if it has a mark that counts as alphabetic.
//!
//! Characters are those of the normal form, with white space of any kind and length as one space, and
//! none at the ends of the text.
//!
//! Lines are those of the normal form that have something besides white space, without white space at
//! their ends and with one space for any inside. They end where UAX 14 says that a line must.
//!
//! [UAX 29]: https://www.unicode.org/reports/tr29/#Word_Boundaries

mod ascii;
pub(crate) mod chars;
pub mod jieba;
mod kinds;
pub(crate) mod lines;
mod spaces;
pub(crate) mod word;
