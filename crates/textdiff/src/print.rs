//! Prints a comparison of two texts as one text, with the changes marked.

use std::fmt::{Result, Write};

use crate::{Diff, Kind, Piece, View};

/// Notation in which a comparison is printed: [`Html`](crate::html::Html) or
/// [`Terminal`](crate::terminal::Terminal).
pub trait Notation {
    /// Writes text that is equal in both texts.
    ///
    /// # Errors
    /// If `out` fails.
    fn equal(&self, text: &str, out: &mut dyn Write) -> Result;

    /// Writes text that only the first text has.
    ///
    /// # Errors
    /// If `out` fails.
    fn deleted(&self, text: &str, out: &mut dyn Write) -> Result;

    /// Writes text that only the second text has.
    ///
    /// # Errors
    /// If `out` fails.
    fn inserted(&self, text: &str, out: &mut dyn Write) -> Result;

    /// Writes a note that replaces `words` equal words.
    ///
    /// # Errors
    /// If `out` fails.
    fn folded(&self, words: usize, out: &mut dyn Write) -> Result;
}

impl Diff<'_> {
    /// Writes the comparison as one text in a notation. With a `context`, shows this number of
    /// equal words on each side of a change, and replaces the other equal words by notes. Without
    /// `context`, shows both texts completely.
    ///
    /// # Errors
    /// If `out` fails.
    pub fn print(
        &self,
        notation: &dyn Notation,
        context: Option<usize>,
        out: &mut dyn Write,
    ) -> Result {
        for piece in self.pieces(View::with_words(context)) {
            match piece {
                Piece::Text {
                    kind: Kind::Equal,
                    a,
                    ..
                } => notation.equal(a, out)?,
                Piece::Text { a, b, .. } => {
                    if !a.is_empty() {
                        notation.deleted(a, out)?;
                    }
                    if !b.is_empty() {
                        notation.inserted(b, out)?;
                    }
                }
                Piece::Folded { amount, .. } => notation.folded(amount, out)?,
            }
        }
        Ok(())
    }
}
