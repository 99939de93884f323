//! Checks that some test runs the SQL of every document.
use super::Violation;
use super::sources::{Source, line_of};

const RULE: &str = "examples";
/// Files with the tests that run the SQL of documents. They name each document by its path.
const RUNNERS: [&str; 2] = ["tests/clients/documents.rs", "tests/dedup/recipes.rs"];
/// Finds documents with SQL examples that no test runs.
pub fn check(sources: &[Source]) -> Vec<Violation> {
    let runners: Vec<&Source> = (sources.iter())
        .filter(|source| RUNNERS.contains(&source.path.as_str()))
        .collect();
    let documents = sources.iter().filter(|source| source.path.ends_with(".md"));
    let found = documents.filter_map(|source| {
        let (line, message) = not_named(source, &runners)?;
        Some(Violation {
            rule: RULE,
            path: source.path.clone(),
            line,
            message,
        })
    });
    found.collect()
}

/// Returns the line of a document's first SQL example, and a message, if no test file in `runners`
/// names the document. Returns `None` if one does, or if the document has no SQL example.
fn not_named(source: &Source, runners: &[&Source]) -> Option<(usize, String)> {
    let example = source.text.find("\n```sql\n")?;
    let named = (runners.iter()).any(|runner| runner.text.contains(&source.path));
    (!named).then(|| {
        (
            line_of(&source.text, example + 1),
            format!("no test runs this SQL: name the document in {}", RUNNERS[0]),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_have_to_be_named() {
        let document = Source::new("docs/a.md", "words\n```sql\nSELECT 1;\n```\n");
        let other = Source::new("docs/b.md", "```sh\nls\n```\n");
        let runner = Source::new("tests/clients/documents.rs", "\"docs/c.md\"");
        let found = check(&[document, other, runner]);
        assert_eq!((found.len(), found[0].line), (1, 2));
        let document = Source::new("docs/a.md", "words\n```sql\nSELECT 1;\n```\n");
        let runner = Source::new("tests/dedup/recipes.rs", "\"/../docs/a.md\"");
        assert!(check(&[document, runner]).is_empty());
    }
}
