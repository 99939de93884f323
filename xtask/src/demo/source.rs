//! Sources of documents.
use super::document::{Complaints, Take};
use super::{folder, formats, machine};
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};

/// Where the documents come from.
#[derive(Debug, PartialEq, Eq)]
pub enum Source {
    /// Licence, README and copyright files that this machine has.
    Machine,
    /// All files below a folder, each a document.
    Folder(PathBuf),
    /// A file with a document per line: identifier, tab, text.
    Tsv(PathBuf),
    /// A file with a JSON object per line, with the text in `text` or `body`.
    JsonLines(PathBuf),
}

impl Source {
    /// Returns the source that `path` names.
    ///
    /// # Errors
    /// When nothing is there, or it is of no kind that is known here.
    pub fn of(path: Option<&Path>) -> Result<Self> {
        let Some(path) = path else {
            return Ok(Self::Machine);
        };
        let metadata = match path.metadata() {
            Ok(metadata) => metadata,
            Err(error) => bail!("cannot read {}: {error}", path.display()),
        };
        if metadata.is_dir() {
            return Ok(Self::Folder(path.to_owned()));
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.to_lowercase();
        match name.strip_suffix(".gz").unwrap_or(&name) {
            plain if plain.ends_with(".tsv") => Ok(Self::Tsv(path.to_owned())),
            plain if plain.ends_with(".jsonl") || plain.ends_with(".ndjson") => {
                Ok(Self::JsonLines(path.to_owned()))
            }
            _ => bail!(
                "{} is neither a folder of text files, nor a .tsv (identifier, tab, text), nor a \
                 .jsonl (one object per line with a field \"text\" or \"body\")",
                path.display()
            ),
        }
    }

    /// Hands each document to `take`, and what cannot be used to `complaints`.
    ///
    /// # Errors
    /// When `take` fails, or the source as a whole cannot be read.
    pub fn read(&self, complaints: &mut Complaints, take: &mut Take) -> Result<()> {
        match self {
            Self::Machine => machine::read(complaints, take),
            Self::Folder(dir) => folder::read(dir, complaints, take),
            Self::Tsv(path) => formats::read(path, formats::tsv, complaints, take),
            Self::JsonLines(path) => formats::read(path, formats::json, complaints, take),
        }
    }

    /// A few words about it.
    pub fn describe(&self) -> String {
        match self {
            Self::Machine => "licence, README and copyright files of this machine".to_owned(),
            Self::Folder(path) | Self::Tsv(path) | Self::JsonLines(path) => {
                path.display().to_string()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_told_apart_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, "").unwrap();
            path
        };
        let of = |path: &Path| Source::of(Some(path));
        let (tsv, json) = (file("a.TSV.gz"), file("a.jsonl"));
        assert_eq!(of(dir.path()).unwrap(), Source::Folder(dir.path().into()));
        assert_eq!(of(&tsv).unwrap(), Source::Tsv(tsv));
        assert_eq!(of(&json).unwrap(), Source::JsonLines(json));
        assert_eq!(Source::of(None).unwrap(), Source::Machine);
        assert!(of(&file("a.pdf")).is_err());
        let missing = of(&dir.path().join("missing")).unwrap_err().to_string();
        assert!(missing.contains("missing"), "{missing}");
    }
}
