//! Reads the files of the workspace that `cargo xtask check` checks.
use super::masked::masked;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use walkdir::{DirEntry, WalkDir};

/// File name extensions of the checked files.
const ENDINGS: [&str; 6] = ["rs", "sql", "md", "sh", "toml", "py"];
/// Paths of further checked files, whose names do not have an extension of [`ENDINGS`].
const NAMED: [&str; 1] = [".ci/run"];
/// Folders of the root with generated or external content, which are not checked.
const SKIPPED: [&str; 2] = ["target", ".git"];

/// File of the workspace that is checked.
#[derive(Debug)]
pub struct Source {
    /// Path from the workspace's root, with slashes.
    pub path: String,
    /// Content of the file.
    pub text: String,
    /// Content of the file. In a Rust file, blanks replace comments and literals.
    pub code: String,
}

impl Source {
    /// Creates a source from a path and the content of the file.
    pub fn new(path: &str, text: &str) -> Self {
        let code = if path.ends_with(".rs") {
            masked(text)
        } else {
            text.to_owned()
        };
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            code,
        }
    }
}

/// Returns the line number, from 1, of the byte offset `byte` in a text.
pub fn line_of(text: &str, byte: usize) -> usize {
    1 + text.as_bytes()[..byte]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
}

/// Reads all checked files below `root`, sorted by path.
///
/// # Errors
/// If a file cannot be read or is not UTF-8.
pub fn read(root: &Path) -> Result<Vec<Source>> {
    let wanted = |entry: &DirEntry| {
        entry.depth() != 1 || !SKIPPED.iter().any(|skipped| entry.file_name() == *skipped)
    };
    let mut sources = Vec::new();
    for entry in WalkDir::new(root)
        .sort_by_file_name()
        .into_iter()
        .filter_entry(wanted)
    {
        let entry = entry?;
        let path = entry.path().strip_prefix(root)?;
        let path = path.to_string_lossy().replace('\\', "/");
        let ending = Path::new(&path).extension().and_then(|name| name.to_str());
        let selected =
            NAMED.contains(&path.as_str()) || ending.is_some_and(|name| ENDINGS.contains(&name));
        if entry.file_type().is_file() && selected {
            let text =
                fs::read_to_string(entry.path()).with_context(|| format!("cannot read {path}"))?;
            sources.push(Source::new(&path, &text));
        }
    }
    Ok(sources)
}
