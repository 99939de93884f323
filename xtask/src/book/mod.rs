//! `cargo xtask book`: converts the project's documents to a book of searchable HTML pages with
//! mdBook.
//!
//! mdBook reads all pages and the summary from one folder. So the documents are copied there, with
//! the same relative paths, which keeps their links valid.
pub mod links;

use crate::cargo::{target_dir, workspace};
use crate::documents;
use crate::program::run;
use crate::project;
use crate::tools::Tool;
use crate::ui;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

const MDBOOK: Tool = Tool {
    name: "mdbook",
    version: "0.5.4",
    options: &["--no-default-features", "--features", "search"],
};
const SETTINGS: &str = include_str!("book.toml");
const STYLE: &str = include_str!("book.css");
const SEARCH: &str = include_str!("search.js");
const SUMMARY: &str = "docs/SUMMARY.md";

/// Creates the book in the folder `book` of the target folder, and prints the path of its first
/// page. `cargo xtask check` checks the links of the documents.
///
/// # Errors
/// If mdBook cannot be installed, or a page cannot be created.
pub fn command() -> Result<ExitCode> {
    let mdbook = MDBOOK.provide()?;
    let folder = target_dir()?.join("book");
    if folder.exists() {
        fs::remove_dir_all(&folder).context("cannot remove the last book")?;
    }
    let source = folder.join("source");
    stage(workspace(), &source)?;
    let pages = folder.join("html");
    ui::step("Making the book", || {
        run(Command::new(&mdbook)
            .arg("build")
            .arg(&source)
            .arg("--dest-dir")
            .arg(&pages))
    })?;
    println!("{}", pages.join("index.html").display());
    Ok(ExitCode::SUCCESS)
}

/// Fills `book`, the folder that mdBook reads, with mdBook's settings and the pages. The pages are
/// the documents in the root folder, the licence and the folder `docs` of the workspace at `root`.
/// Changes links in the pages where mdBook needs it.
fn stage(root: &Path, book: &Path) -> Result<()> {
    let pages = book.join("src");
    fs::create_dir_all(&pages)?;
    fs::write(book.join("book.toml"), settings(project::repository()))?;
    fs::write(book.join("book.css"), STYLE)?;
    fs::write(book.join("search.js"), SEARCH)?;
    for path in documents::list(root)? {
        let to = pages.join(staged(&path));
        fs::create_dir_all(to.parent().context("a folder")?)?;
        if path.ends_with(".md") {
            let text = fs::read_to_string(root.join(&path))?;
            fs::write(&to, with_links(&path, &text))
        } else {
            fs::copy(root.join(&path), &to).map(|_| ())
        }
        .with_context(|| format!("cannot copy {path}"))?;
    }
    Ok(())
}

/// Returns mdBook's settings. If the project has an address, each page links to it.
fn settings(repository: Option<&str>) -> String {
    let html = "[output.html]\n";
    let link = repository.map_or(String::new(), |address| {
        format!("git-repository-url = \"{address}\"\n")
    });
    SETTINGS.replace(html, &format!("{html}{link}"))
}

/// Returns the path in the book for a file of the workspace. README.md becomes index.md, because
/// mdBook turns README.md into index.html, but does not change the links to README.md.
fn staged(path: &str) -> &str {
    match path {
        SUMMARY => "SUMMARY.md",
        "README.md" => "index.md",
        path => path,
    }
}

/// Returns the text of the document at `path` with links that are valid in the book.
fn with_links(path: &str, text: &str) -> String {
    if path == SUMMARY {
        let text = text.replace("](", "](docs/").replace("](docs/../", "](");
        return text.replace("](README.md", "](index.md");
    }
    // mdBook has its own page of contents, which it makes from the summary.
    let text = text.replace("](docs/SUMMARY.md", "](toc.html");
    text.replace("README.md)", "index.md)")
        .replace("README.md#", "index.md#")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_follow_their_pages_into_the_book() {
        for (path, text, book) in [
            (
                SUMMARY,
                "[R](../README.md) [A](c/a.md)",
                "[R](index.md) [A](docs/c/a.md)",
            ),
            (
                "README.md",
                "[a](docs/a.md#b) [s](docs/SUMMARY.md)",
                "[a](docs/a.md#b) [s](toc.html)",
            ),
            (
                "docs/c/d.md",
                "[a](../a.md) [r](../../README.md#x)",
                "[a](../a.md) [r](../../index.md#x)",
            ),
        ] {
            assert_eq!(with_links(path, text), book);
        }
    }

    #[test]
    fn pages_link_to_the_project() {
        assert_eq!(settings(None), SETTINGS);
        let with = settings(Some("https://example.org/a"));
        let line = "[output.html]\ngit-repository-url = \"https://example.org/a\"\n";
        assert!(with.contains(line), "{with}");
    }

    #[test]
    fn the_book_has_all_documents() {
        let folder = tempfile::tempdir().unwrap();
        stage(workspace(), folder.path()).unwrap();
        for page in [
            "SUMMARY.md",
            "index.md",
            "docs/sql-reference.md",
            "docs/quality/f1.svg",
            "LICENSE",
        ] {
            assert!(folder.path().join("src").join(page).exists(), "{page}");
        }
    }
}
