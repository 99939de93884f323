//! The files that the checks read.
use super::masked::masked;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use walkdir::{DirEntry, WalkDir};

/// Endings of the files that are read.
const ENDINGS: [&str; 6] = ["rs", "sql", "md", "sh", "toml", "py"];
/// Files without such an ending.
const NAMED: [&str; 1] = [".ci/run"];
/// Folders of the root whose content is generated or not the project's.
const SKIPPED: [&str; 2] = ["target", ".git"];

/// A file of the workspace.
#[derive(Debug)]
pub struct Source {
    /// Path from the workspace's root, with slashes.
    pub path: String,
    pub text: String,
    /// Rust code with blanks in place of comments and literals; the text itself for other files.
    pub code: String,
}

impl Source {
    /// A source with this text.
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

/// Number of the line, from 1, in which a byte of a text lies.
pub fn line_of(text: &str, byte: usize) -> usize {
    1 + text.as_bytes()[..byte]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
}

/// Reads all sources below `root`, in the order of their paths.
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
