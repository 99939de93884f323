//! Checks that the targets of links in documents exist, and that the book's summary lists every
//! page.
use super::Violation;
use super::sources::{Source, line_of};
use crate::book::links::{Link, join, links, slugs};
use std::collections::HashSet;
use std::path::Path;

const RULE: &str = "links";
/// File that lists the pages of the book for mdBook.
const SUMMARY: &str = "docs/SUMMARY.md";

/// Finds links to missing files or headings in the documents of the root folder and of `docs`, and
/// pages of `docs` that the summary does not list exactly once.
pub fn check(root: &Path, sources: &[Source]) -> Vec<Violation> {
    let documents: Vec<&Source> = sources.iter().filter(|s| is_document(s)).collect();
    let mut violations = Vec::new();
    for &source in &documents {
        for link in links(&source.text) {
            if let Some(message) = broken(root, &documents, source, &link) {
                violations.push(Violation {
                    rule: RULE,
                    path: source.path.clone(),
                    line: line_of(&source.text, link.at),
                    message,
                });
            }
        }
    }
    violations.extend(unlisted(&documents));
    violations
}

fn is_document(source: &Source) -> bool {
    let is_own = !source.path.contains('/') || source.path.starts_with("docs/");
    is_own && source.path.ends_with(".md")
}

/// Returns what is wrong with `link`, which is in the document `from`; `None` if the link's target
/// exists. `documents` are the documents of the workspace.
fn broken(root: &Path, documents: &[&Source], from: &Source, link: &Link) -> Option<String> {
    let (path, anchor) = link.within(&from.path)?;
    let Some(page) = documents.iter().find(|page| page.path == path) else {
        let exists = !path.is_empty() && root.join(&path).exists();
        return (!exists).then(|| format!("there is no {path}, to which a link leads"));
    };
    let known: HashSet<String> = slugs(&page.text).into_iter().collect();
    (!anchor.is_empty() && !known.contains(anchor))
        .then(|| format!("{path} has no heading #{anchor}, to which a link leads"))
}

/// Finds pages of `docs` that the summary omits or repeats.
fn unlisted(documents: &[&Source]) -> Vec<Violation> {
    let summary = documents.iter().find(|page| page.path == SUMMARY);
    let listed: Vec<String> = summary.map_or(Vec::new(), |summary| {
        let targets = links(&summary.text);
        let paths = targets.iter().map(|link| join(SUMMARY, link.target));
        paths.collect()
    });
    let mut violations = Vec::new();
    for page in documents {
        let times = listed.iter().filter(|path| **path == page.path).count();
        if page.path.starts_with("docs/") && page.path != SUMMARY && times != 1 {
            violations.push(Violation {
                rule: RULE,
                path: SUMMARY.to_owned(),
                line: 0,
                message: format!("lists {} {times} times: list each page once", page.path),
            });
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cargo::workspace;

    fn found(pages: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> = (pages.iter())
            .map(|(path, text)| Source::new(path, text))
            .collect();
        let root = workspace();
        let found = check(root, &sources);
        found.into_iter().map(|found| found.message).collect()
    }

    #[test]
    fn links_to_nothing_are_found() {
        let page = "# A\n## B c\n[x](b.md), [y](#b-c), [z](#no), [w](../Cargo.toml), [v](no.svg)\n";
        let other = "# One\n[up](a.md#a) [wrong](a.md#b)\n";
        let summary = "[A](a.md) [B](b.md)\n";
        let pages = [
            ("docs/a.md", page),
            ("docs/b.md", other),
            ("docs/SUMMARY.md", summary),
        ];
        assert_eq!(
            found(&pages),
            [
                "docs/a.md has no heading #no, to which a link leads",
                "there is no docs/no.svg, to which a link leads",
                "docs/a.md has no heading #b, to which a link leads",
            ]
        );
    }

    #[test]
    fn every_page_is_listed_once() {
        let pages = [
            ("README.md", "[docs](docs/c/d.md)"),
            ("docs/c/d.md", "# D\n"),
            ("docs/e.md", "# E\n[d](c/d.md)\n"),
            ("docs/SUMMARY.md", "- [E](e.md)\n- [E](e.md)\n"),
        ];
        assert_eq!(
            found(&pages),
            [
                "lists docs/c/d.md 0 times: list each page once",
                "lists docs/e.md 2 times: list each page once",
            ]
        );
    }
}
