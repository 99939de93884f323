//! Every example in a document runs in a test.
use super::Violation;
use super::sources::{Source, line_of};

const RULE: &str = "examples";
/// Tests that run the SQL of documents, which they name by path.
const RUNNERS: [&str; 2] = ["tests/documents.rs", "tests/recipes.rs"];
/// Marks with which rustdoc compiles an example without running it, or leaves it out.
const NOT_RUN: [&str; 3] = ["ignore", "no_run", "compile_fail"];

/// Documents with SQL that no test names, and examples in doc comments that are not run.
pub fn check(sources: &[Source]) -> Vec<Violation> {
    let runners: Vec<&Source> = (sources.iter())
        .filter(|source| RUNNERS.contains(&source.path.as_str()))
        .collect();
    let mut violations = Vec::new();
    for source in sources {
        let found = if source.is_rust() {
            not_run(source)
        } else {
            not_named(source, &runners)
        };
        violations.extend(found.map(|(line, message)| Violation {
            rule: RULE,
            path: source.path.clone(),
            line,
            message,
        }));
    }
    violations
}

/// The first SQL of a document that no test runs.
fn not_named(source: &Source, runners: &[&Source]) -> Option<(usize, String)> {
    let example = source.text.find("\n```sql\n")?;
    let is_document = source.path.ends_with(".md");
    let named = (runners.iter()).any(|runner| runner.text.contains(&source.path));
    (is_document && !named).then(|| {
        (
            line_of(&source.text, example + 1),
            format!("no test runs this SQL: name the document in {}", RUNNERS[0]),
        )
    })
}

/// The first example of a doc comment that rustdoc does not run.
fn not_run(source: &Source) -> Option<(usize, String)> {
    let (line, marks) = (1..).zip(source.text.lines()).find_map(|(number, line)| {
        let line = line.trim_start();
        let comment = (line.strip_prefix("///")).or_else(|| line.strip_prefix("//!"))?;
        let marks = comment.trim_start().strip_prefix("```")?;
        let marked = marks.split(',').any(|mark| NOT_RUN.contains(&mark.trim()));
        marked.then_some((number, marks))
    })?;
    let message = format!("an example marked {marks}: let it run, or mark it `text`");
    Some((line, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_have_to_be_named() {
        let document = Source::new("docs/a.md", "words\n```sql\nSELECT 1;\n```\n");
        let other = Source::new("docs/b.md", "```sh\nls\n```\n");
        let runner = Source::new("tests/documents.rs", "\"docs/c.md\"");
        let found = check(&[document, other, runner]);
        assert_eq!((found.len(), found[0].line), (1, 2));
        let document = Source::new("docs/a.md", "words\n```sql\nSELECT 1;\n```\n");
        let runner = Source::new("tests/recipes.rs", "\"/../docs/a.md\"");
        assert!(check(&[document, runner]).is_empty());
    }

    #[test]
    fn examples_have_to_run() {
        let text = "/// ```\n/// f();\n/// ```\n    //! ```rust,no_run\n";
        let found = check(&[Source::new("a.rs", text)]);
        assert_eq!((found.len(), found[0].line), (1, 4));
    }
}
