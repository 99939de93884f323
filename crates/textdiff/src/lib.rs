//! Differences of two texts, by words.
//!
//! [`Diff::new`] divides two texts into [`Span`]s that are equal, deleted, inserted or replaced, in
//! text order. Together the spans contain all of both texts. [`Diff::pieces`] folds long equal
//! spans, and [`Diff::print`] writes the result in a notation: [`html::Html`] or
//! [`terminal::Terminal`].
//!
//! ```
//! use neardup_textdiff::{Diff, html::Html};
//!
//! let diff = Diff::new("Open on Monday.", "Open on Friday.", &mut ())?;
//! let mut page = String::new();
//! diff.print(&Html, None, &mut page)?;
//! assert_eq!(page, "Open on <del>Monday</del><ins>Friday</ins>.");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | step | module |
//! |---|---|
//! | words, punctuation and Chinese characters | `tokens` |
//! | the longest common sequence of tokens (Myers) | `align` |
//! | changes that are easy to read | `cleanup` |
//! | white space, offsets | `spans` |
//! | folding of long equal text | `pieces` |
//! | output in a notation | `print`, [`html`], [`terminal`] |
//!
//! # Determinism, time and memory
//!
//! The result depends on the two texts alone. The search is Myers' algorithm with Git's cost limit:
//! if the shortest list of changes would take long to find, it accepts a longer list. So it takes
//! about N · √N steps for N tokens, however different the texts are, and reads no clock. Memory is
//! linear in the number of tokens. Texts longer than [`MAX_BYTES`] or [`MAX_TOKENS`] are refused.
#![forbid(unsafe_code)]

mod align;
mod cleanup;
mod control_characters;
mod host;
pub mod html;
mod pieces;
mod print;
mod spans;
pub mod terminal;
mod tokens;

use std::fmt;
use std::ops::Range;

pub use host::Host;
pub use pieces::{Context, Piece, Pieces, View};
pub use print::Notation;
pub use tokens::{MAX_BYTES, MAX_TOKENS};

/// Kind of a span: whether its two parts are equal, or how they differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Both texts have the same text here.
    Equal,
    /// Only the first text has text here.
    Deleted,
    /// Only the second text has text here.
    Inserted,
    /// The two texts have different text here.
    Replaced,
}

impl Kind {
    /// Returns the name of the kind in lower case, such as `deleted`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Deleted => "deleted",
            Self::Inserted => "inserted",
            Self::Replaced => "replaced",
        }
    }
}

/// Part of one text, in bytes and in characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Byte range of the part. It starts and ends at character boundaries.
    pub bytes: Range<usize>,
    /// Range of the part in characters (code points).
    pub chars: Range<usize>,
}

/// Part of the first text and the part of the second text that corresponds to it. At most one of
/// the two parts is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Whether the parts are equal, or how they differ.
    pub kind: Kind,
    /// Part of the first text. Empty if the span is inserted.
    pub a: Part,
    /// Part of the second text. Empty if the span is deleted.
    pub b: Part,
}

/// Comparison of two texts: the texts, divided into equal and changed spans.
#[derive(Clone, Debug)]
pub struct Diff<'a> {
    a: &'a str,
    b: &'a str,
    spans: Vec<Span>,
}

impl<'a> Diff<'a> {
    /// Compares two texts. Calls `host` every few milliseconds, and before it allocates memory. A
    /// caller that needs neither passes `&mut ()`.
    ///
    /// # Errors
    /// If a text is too long.
    pub fn new(a: &'a str, b: &'a str, host: &mut dyn Host) -> Result<Self, TooLong> {
        let spans = spans::spans(a, b, host)?;
        Ok(Self { a, b, spans })
    }

    /// Returns the spans in text order. Equal spans and changes alternate.
    #[must_use]
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Returns the spans in text order. The result does not borrow the texts.
    #[must_use]
    pub fn into_spans(self) -> Vec<Span> {
        self.spans
    }

    /// Returns the text of a span of this comparison in the first text and in the second text.
    #[must_use]
    pub fn texts(&self, span: &Span) -> [&'a str; 2] {
        [&self.a[span.a.bytes.clone()], &self.b[span.b.bytes.clone()]]
    }

    /// Returns true if a span of this comparison is a change that affects only white space.
    #[must_use]
    pub fn is_white_space(&self, span: &Span) -> bool {
        let blank = |text: &str| text.chars().all(char::is_whitespace);
        span.kind != Kind::Equal && self.texts(span).into_iter().all(blank)
    }

    /// Returns the first and the second text.
    #[must_use]
    pub fn originals(&self) -> [&'a str; 2] {
        [self.a, self.b]
    }

    /// Returns an iterator over the parts of the comparison that `view` shows or folds, in text
    /// order.
    #[must_use]
    pub fn pieces(&self, view: View) -> Pieces<'_> {
        Pieces::new(self, view)
    }
}

/// Error: a text is too long to be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooLong {
    /// The text has this number of bytes, more than [`MAX_BYTES`].
    Bytes(usize),
    /// The text has more tokens than [`MAX_TOKENS`].
    Tokens,
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => {
                write!(f, "a text has {bytes} bytes, more than {MAX_BYTES}")
            }
            Self::Tokens => {
                write!(f, "a text has more than {MAX_TOKENS} words and signs")
            }
        }
    }
}

impl std::error::Error for TooLong {}
