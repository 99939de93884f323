//! `cargo xtask book`: the documents as a book of HTML pages with a search, made by mdBook.
//!
//! The pages are those that GitHub shows. mdBook wants all of them in one folder, so the documents
//! of the root (README and others) are copied beside those of `docs/`, with their links adapted.
mod html;
pub mod links;

use crate::cargo::{cargo, target_dir, workspace};
use crate::program::{output, run};
use crate::ui;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;
use walkdir::WalkDir;

/// The version of mdBook that is installed where none is found.
const MDBOOK: &str = "0.5.4";
/// Programs of this beginning make the same book.
const ACCEPTED: &str = "mdbook v0.5.";
const SETTINGS: &str = include_str!("book.toml");
const DOCS: &str = "docs/";
/// Documents of the root with another name in the book. mdBook makes index.html of README.md, but
/// leaves links to it as they are; the other would meet docs/security.md where case is ignored.
const RENAMED: [(&str, &str); 2] = [
    ("README.md", "index.md"),
    ("SECURITY.md", "security-policy.md"),
];

/// Makes the book in the target folder and checks the links of its pages.
///
/// # Errors
/// If mdBook cannot be found or installed, or a page cannot be made, or a link leads nowhere.
pub fn command() -> Result<ExitCode> {
    let target = target_dir()?;
    let mdbook = mdbook(&target)?;
    let folder = target.join("book");
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
    let (count, broken) = html::check(&pages)?;
    ensure!(
        broken.is_empty(),
        "links of the book lead nowhere:\n{}",
        broken.join("\n")
    );
    ui::note(format!("{count} pages, all links lead somewhere"));
    println!("{}", pages.join("index.html").display());
    Ok(ExitCode::SUCCESS)
}

/// The program: one on the search path, or of an earlier run, or installed now.
fn mdbook(target: &Path) -> Result<PathBuf> {
    let root = target.join("tools").join(format!("mdbook-{MDBOOK}"));
    let own = root.join("bin/mdbook");
    for program in [PathBuf::from("mdbook"), own.clone()] {
        let version = output(Command::new(&program).arg("--version"));
        if version.is_ok_and(|version| version.starts_with(ACCEPTED)) {
            return Ok(program);
        }
    }
    ui::heading(format!(
        "Installing mdBook {MDBOOK} into {}",
        root.display()
    ));
    let start = Instant::now();
    // Beside the workspace's own builds, which have other settings for the same packages.
    let status = cargo()
        .args(["install", "mdbook", "--version", MDBOOK, "--locked"])
        .args(["--no-default-features", "--features", "search", "--root"])
        .arg(&root)
        .arg("--target-dir")
        .arg(root.join("build"))
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "cargo install mdbook failed ({status})");
    fs::remove_dir_all(root.join("build")).context("cannot remove what the build has left")?;
    ui::note(format!("took {}", ui::duration(start.elapsed())));
    Ok(own)
}

/// Copies the documents into the folder of a book's sources.
fn stage(root: &Path, book: &Path) -> Result<()> {
    let pages = book.join("src");
    fs::create_dir_all(&pages)?;
    fs::write(book.join("book.toml"), SETTINGS)?;
    for path in documents(root)? {
        let from = root.join(&path);
        let Some(name) = staged(&path) else {
            continue;
        };
        let to = pages.join(&name);
        fs::create_dir_all(to.parent().context("a folder")?)?;
        if path.ends_with(".md") {
            let text = fs::read_to_string(&from).with_context(|| format!("cannot read {path}"))?;
            fs::write(&to, with_links(&path, &text))?;
        } else {
            fs::copy(&from, &to).with_context(|| format!("cannot copy {path}"))?;
        }
    }
    Ok(())
}

/// Paths of the files of a book, from the root: documents of the root, its licence, and `docs`.
fn documents(root: &Path) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(root)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") || name == "LICENSE" {
            paths.push(name);
        }
    }
    for entry in WalkDir::new(root.join(DOCS)) {
        let entry = entry?;
        if entry.file_type().is_file() {
            let path = entry.path().strip_prefix(root)?;
            paths.push(path.to_string_lossy().replace('\\', "/"));
        }
    }
    paths.sort();
    Ok(paths)
}

/// Path within the book of a file of the workspace; `None` if it is not part of the book.
fn staged(path: &str) -> Option<String> {
    for (document, page) in RENAMED {
        if path == document {
            return Some(page.to_owned());
        }
    }
    if let Some(page) = path.strip_prefix(DOCS) {
        return Some(page.to_owned());
    }
    (!path.contains('/')).then(|| path.to_owned())
}

/// The document at `path` with links between the places that pages have in the book.
fn with_links(path: &str, text: &str) -> String {
    let page = staged(path).unwrap_or_default();
    let mut adapted = String::with_capacity(text.len());
    let mut done = 0;
    for link in links::links(text) {
        let Some((target, anchor)) = link.within(path) else {
            continue;
        };
        if target == path {
            continue;
        }
        let Some(mut target) = staged(&target) else {
            continue;
        };
        if target == "SUMMARY.md" {
            // mdBook's own page of contents, which is made of the summary.
            "toc.html".clone_into(&mut target);
        }
        adapted += &text[done..link.at];
        adapted += &links::relative(&page, &target);
        if !anchor.is_empty() {
            adapted += &format!("#{anchor}");
        }
        done = link.at + link.target.len();
    }
    adapted + &text[done..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_follow_their_pages_into_the_book() {
        let text = "[a](docs/a.md#b), [l](LICENSE), [h](#x), [w](https://e.org) `[c](docs/c)`";
        let book = "[a](a.md#b), [l](LICENSE), [h](#x), [w](https://e.org) `[c](docs/c)`";
        assert_eq!(with_links("README.md", text), book);
        assert_eq!(
            with_links("docs/a.md", "[r](../README.md)"),
            "[r](index.md)"
        );
        let text = "[a](../a.md) [r](../../README.md#x)";
        assert_eq!(
            with_links("docs/c/d.md", text),
            "[a](../a.md) [r](../index.md#x)"
        );
    }

    #[test]
    fn the_book_has_all_documents() {
        let folder = tempfile::tempdir().unwrap();
        stage(workspace(), folder.path()).unwrap();
        for page in [
            "SUMMARY.md",
            "index.md",
            "sql-reference.md",
            "quality/f1.svg",
            "LICENSE",
        ] {
            assert!(folder.path().join("src").join(page).exists(), "{page}");
        }
    }
}
