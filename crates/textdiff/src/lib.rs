//! Differences of two texts, by words.
//!
//! [`Diff::new`] divides two texts into [`Span`]s that are equal, deleted, inserted or replaced,
//! in the order of the texts. The spans add up to both texts. [`Diff::pieces`] folds long equal
//! spans, and [`Diff::print`] writes the pieces in a notation: [`html::Html`] or
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
//! The result depends on the two texts alone. The search is Myers' algorithm with Git's cost
//! limit: it accepts a longer list of changes where the shortest one would take long. So it takes
//! about N · √N steps for N tokens, however different the texts are, and reads no clock. Memory is
//! linear in the number of tokens. Texts longer than [`MAX_BYTES`] or [`MAX_TOKENS`] are refused.
#![forbid(unsafe_code)]

mod align;
mod cleanup;
mod control;
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

/// Kind of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Both texts have it.
    Equal,
    /// Only the first text has it.
    Deleted,
    /// Only the second text has it.
    Inserted,
    /// The second text has other text instead.
    Replaced,
}

impl Kind {
    /// Name in lower case.
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

/// Part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Range of bytes, from a character boundary to another one.
    pub bytes: Range<usize>,
    /// The same range in characters (code points).
    pub chars: Range<usize>,
}

/// Aligned parts of two texts. At most one of them is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Kind of the span.
    pub kind: Kind,
    /// Part of the first text; empty if the span is inserted.
    pub a: Part,
    /// Part of the second text; empty if the span is deleted.
    pub b: Part,
}

/// Two texts and their differences.
#[derive(Clone, Debug)]
pub struct Diff<'a> {
    a: &'a str,
    b: &'a str,
    spans: Vec<Span>,
}

impl<'a> Diff<'a> {
    /// Compares two texts. Calls `host` every few milliseconds, and before it allocates memory.
    /// Programs that need neither pass `&mut ()`.
    ///
    /// # Errors
    /// If a text is too long.
    pub fn new(a: &'a str, b: &'a str, host: &mut dyn Host) -> Result<Self, TooLong> {
        let spans = spans::spans(a, b, host)?;
        Ok(Self { a, b, spans })
    }

    /// The spans in the order of the texts. Equal spans and changes alternate.
    #[must_use]
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The spans, without the texts.
    #[must_use]
    pub fn into_spans(self) -> Vec<Span> {
        self.spans
    }

    /// The parts of both texts in a span of this comparison.
    #[must_use]
    pub fn texts(&self, span: &Span) -> [&'a str; 2] {
        [&self.a[span.a.bytes.clone()], &self.b[span.b.bytes.clone()]]
    }

    /// Returns true if a span is a change in white space only.
    #[must_use]
    pub fn is_white_space(&self, span: &Span) -> bool {
        let blank = |text: &str| text.chars().all(char::is_whitespace);
        span.kind != Kind::Equal && self.texts(span).into_iter().all(blank)
    }

    /// The two texts.
    #[must_use]
    pub fn originals(&self) -> [&'a str; 2] {
        [self.a, self.b]
    }

    /// The spans of a view, in which long equal text may be folded.
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
