//! Differences of two texts, by words.
//!
//! [`Diff::new`] divides two texts into [`Span`]s that are equal, deleted, inserted or replaced, in
//! the order of the texts; together they are both texts, to the last space. [`html`] and [`ansi`]
//! write them for people.
//!
//! ```
//! use neardup_textdiff::{Diff, html::html};
//!
//! let diff = Diff::new("Open on Monday.", "Open on Friday.", &mut ())?;
//! let mut page = String::new();
//! html(&diff, None, &mut page)?;
//! assert_eq!(page, "Open on <del>Monday</del><ins>Friday</ins>.");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | step | module |
//! |---|---|
//! | words, punctuation and Chinese characters | `tokens` |
//! | the tokens that both have, in one order (Myers) | `align` |
//! | changes that read well | `cleanup` |
//! | white space, offsets | `spans` |
//! | long equal stretches left out | `pieces` |
//!
//! # Determinism, time and memory
//!
//! The result depends on the two texts alone. The search is Myers' in the form that Git uses: it
//! gives up the shortest answer where that would take long. So at most some
//! N · √N steps are made for N tokens, however different the texts are, and no clock is read.
//! Memory is linear in the number of tokens. Longer texts than [`MAX_BYTES`] or [`MAX_TOKENS`] are
//! refused.
#![forbid(unsafe_code)]

mod align;
pub mod ansi;
mod cleanup;
mod control;
mod host;
pub mod html;
mod pieces;
mod spans;
mod tokens;

use std::fmt;
use std::ops::Range;

pub use host::Host;
pub use pieces::{Piece, Pieces};
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
    /// The second text has something else in its place.
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
    /// Its bytes, which begin and end between characters.
    pub bytes: Range<usize>,
    /// The same in characters (code points).
    pub chars: Range<usize>,
}

/// Aligned parts of two texts, of which at most one is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Kind.
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
    /// Compares two texts. `host` is asked now and then if to go on, and before memory is taken;
    /// `&mut ()` is the host for programs that need neither.
    ///
    /// # Errors
    /// If a text is too long.
    pub fn new(a: &'a str, b: &'a str, host: &mut dyn Host) -> Result<Self, TooLong> {
        let spans = spans::spans(a, b, host)?;
        Ok(Self { a, b, spans })
    }

    /// The spans in the order of the texts. Two neighbours are never both equal or both changes.
    #[must_use]
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The spans, without the texts.
    #[must_use]
    pub fn into_spans(self) -> Vec<Span> {
        self.spans
    }

    /// The text of a span of this comparison in both texts.
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

    /// The spans to be shown. Of equal stretches the `context` words beside a change are kept, and
    /// what is between is left out, if it is some words long; with `None` everything is kept.
    #[must_use]
    pub fn pieces(&self, context: Option<usize>) -> Pieces<'_> {
        Pieces::new(self, context)
    }
}

/// Error about a text that is not compared, since it is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooLong {
    /// It has this number of bytes, more than [`MAX_BYTES`].
    Bytes(usize),
    /// It has more tokens than [`MAX_TOKENS`].
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
