//! A doc comment begins with its subject, and comments use ordinary words.
use super::Violation;
use super::sources::Source;

const RULE: &str = "openers";
/// First words of riddles.
const RIDDLES: [&str; 4] = ["What", "Whoever", "Whether", "How"];

/// Words that no comment needs.
const ODD: [&str; 2] = ["anew", "whoever"];

/// Comments with words that ordinary English does without, and doc comments, of items and of
/// modules, whose first word asks instead of telling.
pub fn check(source: &Source) -> Vec<Violation> {
    if !source.is_rust() {
        return Vec::new();
    }
    let mut violations = Vec::new();
    let mut previous = None;
    for (number, line) in (1..).zip(source.text.lines()) {
        let line = line.trim_start();
        if line.starts_with("//")
            && let Some(word) = odd_word(line)
        {
            violations.push(Violation {
                rule: RULE,
                path: source.path.clone(),
                line: number,
                message: format!("\"{word}\": use ordinary words, or the parameter's name"),
            });
        }
        let mark = ["///", "//!"].into_iter().find(|m| line.starts_with(m));
        let first = mark.filter(|_| mark != previous).and_then(|mark| {
            line[mark.len()..]
                .split(|c: char| !c.is_alphanumeric())
                .find(|word| !word.is_empty())
        });
        if let Some(word) = first.filter(|word| RIDDLES.contains(word)) {
            violations.push(Violation {
                rule: RULE,
                path: source.path.clone(),
                line: number,
                message: format!(
                    "a doc comment begins with \"{word}\": begin with a noun (\"Number of ...\") \
                     or a verb in the third person (\"Returns whether ...\")"
                ),
            });
        }
        previous = mark;
    }
    violations
}

fn odd_word(line: &str) -> Option<&'static str> {
    // "So many rows that ..." is English; "returns so many rows" hides the parameter's name.
    if let Some((_, rest)) = line.to_ascii_lowercase().split_once("so many ")
        && !rest.contains(" that ")
    {
        return Some("so many");
    }
    let mut words = line.split(|c: char| !c.is_alphanumeric());
    words.find_map(|word| ODD.into_iter().find(|odd| word.eq_ignore_ascii_case(odd)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_beginning_counts() {
        let text = "//! What this is.\n\n/// Number of rows.\n/// What follows is fine.\n\
                    fn f() {\n    /// How often.\n    x: u8,\n    // What?\n}\n/// [`How`] much.\n\
                    /// However.\n";
        let found = check(&Source::new("a.rs", text));
        let lines: Vec<usize> = found.iter().map(|found| found.line).collect();
        assert_eq!(lines, [1, 6, 10]);
        assert!(check(&Source::new("a.md", text)).is_empty());
        let text = "// So many rows that it spills.\n/// Reads so many rows.\n";
        assert_eq!(check(&Source::new("a.rs", text))[0].line, 2);
        let text = "// Reads it anew.\nlet anew = 1;\n/// Rows of\n/// whoever asks.\n";
        let found = check(&Source::new("a.rs", text));
        assert_eq!(
            found.iter().map(|found| found.line).collect::<Vec<_>>(),
            [1, 4]
        );
    }
}
