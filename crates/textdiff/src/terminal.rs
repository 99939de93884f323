//! Notation that prints a comparison of two texts for a terminal.
//!
//! Deleted text is red in `[-` and `-]`, and inserted text is green in `{+` and `+}`, as `git diff
//! --word-diff` writes them. So the output can be read without colours too. Control characters of
//! the texts do not reach the terminal: an escape is written as `^[`.

use std::fmt::{Result, Write};

use crate::Notation;
use crate::control_characters::Control;

const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const FAINT: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// Notation of a comparison with ANSI colours.
pub struct Terminal;

impl Notation for Terminal {
    fn equal(&self, text: &str, out: &mut dyn Write) -> Result {
        plain(text, out)
    }

    fn deleted(&self, text: &str, out: &mut dyn Write) -> Result {
        coloured(RED, ["[-", "-]"], text, out)
    }

    fn inserted(&self, text: &str, out: &mut dyn Write) -> Result {
        coloured(GREEN, ["{+", "+}"], text, out)
    }

    fn folded(&self, words: usize, out: &mut dyn Write) -> Result {
        write!(out, "{FAINT}[... {words} words ...]{PLAIN}")
    }
}

/// Writes a text with names instead of control characters. A carriage return is written by name
/// too, unless a line feed follows it. [`coloured`] passes the lines of changed text without their
/// line feeds. So a carriage return at the end of a changed line is written by name, which is
/// useful because it may be the only change of the line.
fn plain(text: &str, out: &mut dyn Write) -> Result {
    let mut rest = text;
    while let Some(at) = rest.find(|c| Control::from_char(c).is_some()) {
        let (before, after) = rest.split_at(at);
        out.write_str(before)?;
        let mut chars = after.chars();
        if let Some(control) = chars.next().and_then(Control::from_char) {
            match after.starts_with("\r\n") {
                true => out.write_char('\r')?,
                false => write!(out, "{control}")?,
            }
        }
        rest = chars.as_str();
    }
    out.write_str(rest)
}

/// Writes a text in a colour, between the marks `open` and `close`. The colour is set again for
/// each line, because a pager shows lines one by one.
fn coloured(colour: &str, [open, close]: [&str; 2], text: &str, out: &mut dyn Write) -> Result {
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
    use crate::Diff;
    use proptest::prelude::*;

    fn shown(a: &str, b: &str, context: Option<usize>) -> String {
        let mut out = String::new();
        let diff = Diff::new(a, b, &mut ()).unwrap();
        diff.print(&Terminal, context, &mut out).unwrap();
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
        /// The output has no control sequence but the four constants of this file.
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
