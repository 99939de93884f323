//! Checks that no line of the workspace's files is wider than 100 columns.
use super::Violation;
use super::sources::Source;

const RULE: &str = "columns";
const WIDEST: usize = 100;

/// Finds the lines of a file that are too wide. Ignores lines that cannot be broken. In documents,
/// also ignores the output of examples, which is as wide as the program prints it.
pub fn check(source: &Source) -> Vec<Violation> {
    let mut fence: Option<&str> = None;
    let mut violations = Vec::new();
    for (number, line) in (1..).zip(source.text.lines()) {
        if source.path.ends_with(".md")
            && let Some(kind) = line.trim_start().strip_prefix("```")
        {
            fence = if fence.is_some() { None } else { Some(kind) };
        }
        let width = line.chars().count();
        if width > WIDEST && !is_unbreakable(source, line) && !matches!(fence, Some("text" | "")) {
            violations.push(Violation {
                rule: RULE,
                path: source.path.clone(),
                line: number,
                message: format!("{width} columns: break the line before column {WIDEST}"),
            });
        }
    }
    violations
}

/// Returns whether `line`, a line of the file `source`, cannot be broken. This is the case for a
/// heading or a table row of a document. It is also the case for a line with a single word, such as
/// a web address, after the marks of a comment or a list.
fn is_unbreakable(source: &Source, line: &str) -> bool {
    let is_one_line = source.path.ends_with(".md") && line.starts_with(['#', '|']);
    let mut words = line.split_whitespace().rev();
    words.next();
    is_one_line
        || words.all(|word| !word.contains(|c: char| c.is_alphanumeric()) || word.ends_with("]:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let source = Source::new(path, text);
        check(&source).iter().map(|found| found.line).collect()
    }

    #[test]
    fn wide_lines_are_found_by_characters() {
        let (wide, full) = (format!("x {}", "x".repeat(99)), "\u{e9}".repeat(100));
        assert_eq!(
            lines("a.rs", &format!("{full}\n{wide}\nx\n// {wide}\n")),
            [2, 4]
        );
    }

    #[test]
    fn what_cannot_be_broken_and_output_are_exempt() {
        let address = format!("https://example.org/{}", "x".repeat(100));
        assert!(lines("a.rs", &format!("//! - <{address}>\n")).is_empty());
        assert!(lines("a.md", &format!("[1]: {address}\n")).is_empty());
        assert_eq!(lines("a.rs", &format!("// See {address}\n")), [1]);
        let heading = format!("# The {}\n", "x ".repeat(60));
        assert!(lines("a.md", &heading).is_empty());
        assert_eq!(lines("a.sh", &heading), [1]);
        let wide = format!("x {}", "x".repeat(99));
        let document = format!("```text\n{wide}\n```\n```sql\n{wide}\n```\n{wide}\n");
        assert_eq!(lines("a.md", &document), [5, 7]);
        assert_eq!(lines("a.rs", &document), [2, 5, 7]);
    }
}
