//! A comparison for a terminal.
//!
//! Deleted text is red in `[-` and `-]`, inserted text green in `{+` and `+}`, as `git diff
//! --word-diff` writes them, so that it can be read without colours too. What a terminal would obey
//! in the texts themselves, such as an escape, is written as `^[`.

use std::fmt::{Result, Write};

use crate::control::Control;
use crate::{Diff, Kind, Piece};

const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const FAINT: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// Writes both texts as one, with the changes marked. Beyond `context` words beside a change, equal
/// text is left out ([`Diff::pieces`]).
///
/// # Errors
/// Those of `out`.
pub fn ansi(diff: &Diff, context: Option<usize>, out: &mut dyn Write) -> Result {
    for piece in diff.pieces(context) {
        match piece {
            Piece::Text { kind, a, .. } if kind == Kind::Equal => plain(a, out)?,
            Piece::Text { a, b, .. } => {
                marked(RED, ["[-", "-]"], a, out)?;
                marked(GREEN, ["{+", "+}"], b, out)?;
            }
            Piece::Folded { words, .. } => write!(out, "{FAINT}[... {words} words ...]{PLAIN}")?,
        }
    }
    Ok(())
}

/// Writes a text without anything that a terminal would obey. A carriage return before a line feed
/// stays; in a change it is shown, since it may be all that changed.
fn plain(text: &str, out: &mut dyn Write) -> Result {
    let mut rest = text;
    while let Some(at) = rest.find(|c| Control::of(c).is_some()) {
        let (before, after) = rest.split_at(at);
        out.write_str(before)?;
        let mut chars = after.chars();
        if let Some(control) = chars.next().and_then(Control::of) {
            match after.starts_with("\r\n") {
                true => out.write_char('\r')?,
                false => write!(out, "{control}")?,
            }
        }
        rest = chars.as_str();
    }
    out.write_str(rest)
}

/// Writes a text in a colour, which ends with each line: a pager shows lines by themselves.
fn marked(colour: &str, [open, close]: [&str; 2], text: &str, out: &mut dyn Write) -> Result {
    if text.is_empty() {
        return Ok(());
    }
    out.write_str(colour)?;
    out.write_str(open)?;
    for (n, line) in text.split('\n').enumerate() {
        if n > 0 {
            write!(out, "{PLAIN}\n{colour}")?;
        }
        plain(line, out)?;
    }
    write!(out, "{close}{PLAIN}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(a: &str, b: &str, context: Option<usize>) -> String {
        let mut out = String::new();
        ansi(&Diff::new(a, b, &mut ()).unwrap(), context, &mut out).unwrap();
        out
    }

    #[test]
    fn colours() {
        assert_eq!(
            shown("on Monday at 3", "on Friday at", None),
            "on \x1b[31m[-Monday-]\x1b[0m\x1b[32m{+Friday+}\x1b[0m at\x1b[31m[- 3-]\x1b[0m"
        );
        assert_eq!(
            shown("a", "a\nb\nc", None),
            "a\x1b[32m{+\x1b[0m\n\x1b[32mb\x1b[0m\n\x1b[32mc+}\x1b[0m"
        );
        assert_eq!(
            shown("1 2 3 4 5 6 x", "1 2 3 4 5 6 y", Some(1)),
            "\x1b[2m[... 5 words ...]\x1b[0m6 \x1b[31m[-x-]\x1b[0m\x1b[32m{+y+}\x1b[0m"
        );
        assert_eq!(shown("a\r\nb\rc", "a\r\nb\rc", None), "a\r\nb^Mc");
    }

    proptest! {
        /// Only the four sequences above reach the terminal.
        #[test]
        fn no_text_is_obeyed(
            a in "[a\u{1b}\u{9b}\u{7}\u{202e}\r\n \\[0-9m]{0,40}",
            b in "[a\u{1b}\u{9b}\u{7}\u{202e}\r\n \\[0-9m]{0,40}",
            context in prop::option::of(0_usize..3),
        ) {
            let mut out = shown(&a, &b, context);
            for own in [RED, GREEN, FAINT, PLAIN] {
                out = out.replace(own, "");
            }
            prop_assert!(!out.contains(['\u{1b}', '\u{9b}', '\u{7}', '\u{202e}']), "{:?}", out);
            prop_assert!(!out.replace("\r\n", "").contains('\r'), "{:?}", out);
        }
    }
}
