//! Notation that prints a comparison of two texts as HTML.
//!
//! Deleted text is in `<del>`, and inserted text in `<ins>`. Replaced text is a `<del>` followed by
//! an `<ins>`. The only other elements are `<span>`s of two classes:
//!
//! - `neardup-folded`: the number of equal words that are folded here.
//! - `neardup-control`: the name of a character that is invisible or changes how the rest of the
//!   text is read ([`is_shown_by_name`]).
//!
//! White space is written as it is in the texts, so a page should set `white-space: pre-wrap`.
//! `&`, `<`, `>` and both quotation marks are escaped everywhere, so no part of a text becomes
//! markup.

use std::fmt::{Result, Write};

use crate::Notation;
use crate::control_characters::Control;

/// Notation of a comparison as HTML.
pub struct Html;

impl Notation for Html {
    fn equal(&self, text: &str, out: &mut dyn Write) -> Result {
        escape(text, out)
    }

    fn deleted(&self, text: &str, out: &mut dyn Write) -> Result {
        out.write_str("<del>")?;
        escape(text, out)?;
        out.write_str("</del>")
    }

    fn inserted(&self, text: &str, out: &mut dyn Write) -> Result {
        out.write_str("<ins>")?;
        escape(text, out)?;
        out.write_str("</ins>")
    }

    fn folded(&self, words: usize, out: &mut dyn Write) -> Result {
        write!(
            out,
            "<span class=\"neardup-folded\">[... {words} words ...]</span>"
        )
    }
}

/// Returns true for characters that are written by their name in a `<span>`: control characters
/// other than tab, line feed and carriage return, and characters that set the direction of text. A
/// browser shows none of these characters, and it replaces or obeys some of them.
#[must_use]
pub fn is_shown_by_name(c: char) -> bool {
    c != '\r' && Control::from_char(c).is_some()
}

/// Writes a text as the content of an HTML element. Escapes markup. A character for which
/// [`is_shown_by_name`] returns true becomes a `<span>` with its name, so the result cannot be used
/// in an attribute.
///
/// # Errors
/// If `out` fails.
pub fn escape(text: &str, out: &mut dyn Write) -> Result {
    let special =
        |c: char| matches!(c, '&' | '<' | '>' | '"' | '\'') || Control::from_char(c).is_some();
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
            // A browser reads a plain carriage return as a line feed.
            Some('\r') => out.write_str("&#13;")?,
            Some(c) => {
                if let Some(control) = Control::from_char(c) {
                    write!(out, "<span class=\"neardup-control\">{control}</span>")?;
                }
            }
            None => {}
        }
        rest = chars.as_str();
    }
    out.write_str(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Diff;

    fn page(a: &str, b: &str, context: Option<usize>) -> String {
        let mut page = String::new();
        let diff = Diff::new(a, b, &mut ()).unwrap();
        diff.print(&Html, context, &mut page).unwrap();
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
}
