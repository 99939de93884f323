//! A comparison as HTML.
//!
//! Deleted text is in `<del>`, inserted text in `<ins>`; what is replaced is in one behind the
//! other. There is no other element than these and `<span>`, which has one of two classes:
//!
//! - `neardup-folded`: says how much equal text is left out here.
//! - `neardup-control`: a character that would not be seen, or would change how the rest is read,
//!   by its name ([`is_shown_by_name`]).
//!
//! White space is that of the texts, so a page should say `white-space: pre-wrap`. Nothing that
//! stands in a text is markup: `&`, `<`, `>` and both quotation marks are escaped everywhere.

use std::fmt::{Result, Write};

use crate::control::Control;
use crate::{Diff, Kind, Piece};

/// One of the two texts of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The first.
    A,
    /// The second.
    B,
}

/// Writes both texts as one, with the changes marked. Beyond `context` words beside a change, equal
/// text is left out ([`Diff::pieces`]).
///
/// # Errors
/// Those of `out`.
pub fn html(diff: &Diff, context: Option<usize>, out: &mut dyn Write) -> Result {
    for piece in diff.pieces(context) {
        match piece {
            Piece::Text { kind, a, .. } if kind == Kind::Equal => escape(a, out)?,
            Piece::Text { a, b, .. } => {
                marked("del", a, out)?;
                marked("ins", b, out)?;
            }
            Piece::Folded { words, .. } => folded(words, out)?,
        }
    }
    Ok(())
}

/// Writes one of the texts with what the other one does not have marked, for two columns. What is
/// left out is the same on both sides.
///
/// # Errors
/// Those of `out`.
pub fn html_side(diff: &Diff, side: Side, context: Option<usize>, out: &mut dyn Write) -> Result {
    for piece in diff.pieces(context) {
        match (piece, side) {
            (Piece::Text { kind, a, .. }, _) if kind == Kind::Equal => escape(a, out)?,
            (Piece::Text { a, .. }, Side::A) => marked("del", a, out)?,
            (Piece::Text { b, .. }, Side::B) => marked("ins", b, out)?,
            (Piece::Folded { words, .. }, _) => folded(words, out)?,
        }
    }
    Ok(())
}

/// Returns true for characters that are written by their name in a `<span>`: control characters
/// other than tab, line feed and carriage return, and those that set the direction of what follows.
/// A browser would change some, obey others, and show none.
#[must_use]
pub fn is_shown_by_name(c: char) -> bool {
    c != '\r' && Control::of(c).is_some()
}

/// Writes a text so that it is text in HTML, within an element or an attribute with quotation
/// marks.
///
/// # Errors
/// Those of `out`.
pub fn escape(text: &str, out: &mut dyn Write) -> Result {
    let special = |c: char| matches!(c, '&' | '<' | '>' | '"' | '\'') || Control::of(c).is_some();
    let mut rest = text;
    while let Some(at) = rest.find(special) {
        let (before, after) = rest.split_at(at);
        out.write_str(before)?;
        let mut chars = after.chars();
        match chars.next() {
            Some('&') => out.write_str("&amp;")?,
            Some('<') => out.write_str("&lt;")?,
            Some('>') => out.write_str("&gt;")?,
            Some('"') => out.write_str("&quot;")?,
            Some('\'') => out.write_str("&#39;")?,
            // As itself it would become a line feed.
            Some('\r') => out.write_str("&#13;")?,
            Some(c) => {
                if let Some(control) = Control::of(c) {
                    write!(out, "<span class=\"neardup-control\">{control}</span>")?;
                }
            }
            None => {}
        }
        rest = chars.as_str();
    }
    out.write_str(rest)
}

fn marked(element: &str, text: &str, out: &mut dyn Write) -> Result {
    if text.is_empty() {
        return Ok(());
    }
    write!(out, "<{element}>")?;
    escape(text, out)?;
    write!(out, "</{element}>")
}

fn folded(words: usize, out: &mut dyn Write) -> Result {
    write!(
        out,
        "<span class=\"neardup-folded\">[... {words} words ...]</span>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(a: &str, b: &str, context: Option<usize>) -> String {
        let mut page = String::new();
        html(&Diff::new(a, b, &mut ()).unwrap(), context, &mut page).unwrap();
        page
    }

    #[test]
    fn marks() {
        assert_eq!(
            page("a <b> & c", "a <i> & \"c'", None),
            "a &lt;<del>b</del><ins>i</ins>&gt; &amp; <ins>&quot;</ins>c<ins>&#39;</ins>"
        );
        assert_eq!(page("one two", "one", None), "one<del> two</del>");
        assert_eq!(page("", "", None), "");
        assert_eq!(
            page("1 2 3 4 5 6 x", "1 2 3 4 5 6 y", Some(1)),
            "<span class=\"neardup-folded\">[... 5 words ...]</span>6 <del>x</del><ins>y</ins>"
        );
    }

    #[test]
    fn control_characters_are_shown() {
        assert_eq!(
            page("a\u{1b}[31m \r\n", "a\u{1b}[31m \r\n", None),
            "a<span class=\"neardup-control\">^[</span>[31m &#13;\n"
        );
        assert_eq!(
            page("x \u{202e}y", "x \u{202e}y", None),
            "x <span class=\"neardup-control\">U+202E</span>y"
        );
    }

    #[test]
    fn sides() {
        let diff = Diff::new("on Monday, at 3", "on Friday, at 3 pm", &mut ()).unwrap();
        let side = |side| {
            let mut out = String::new();
            html_side(&diff, side, None, &mut out).unwrap();
            out
        };
        assert_eq!(side(Side::A), "on <del>Monday</del>, at 3");
        assert_eq!(side(Side::B), "on <ins>Friday</ins>, at 3<ins> pm</ins>");
    }
}
