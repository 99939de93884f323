//! Documents, wherever they come from, and what is told about those that cannot be used.
use super::{folder, lines, machine};
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};

/// One document to load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// A name for people: the file's path, or the line's identifier.
    pub name: String,
    /// The text.
    pub body: String,
}

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
    /// What `path` is.
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
            Self::Tsv(path) => lines::read(path, lines::tsv, complaints, take),
            Self::JsonLines(path) => lines::read(path, lines::json, complaints, take),
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

/// What takes the documents in.
pub type Take<'a> = dyn FnMut(Document) -> Result<()> + 'a;

/// What was left out, and why; the first few in full.
#[derive(Debug, Default)]
pub struct Complaints {
    /// How many documents were left out.
    pub count: usize,
    /// The first of the reasons, each with its place.
    pub first: Vec<String>,
}

impl Complaints {
    /// How many are kept in full.
    const KEPT: usize = 8;

    /// Notes that something was left out. `line` counts from 1.
    pub fn add(&mut self, path: &Path, line: Option<usize>, reason: impl std::fmt::Display) {
        self.count += 1;
        if self.first.len() < Self::KEPT {
            let line = line.map_or(String::new(), |line| format!(":{line}"));
            self.first
                .push(format!("{}{line}: {reason}", path.display()));
        }
    }
}

/// The bytes as text that PostgreSQL can store, or the line (from 1, relative) and the reason.
pub fn text(bytes: Vec<u8>) -> std::result::Result<String, (usize, String)> {
    let line_at = |bytes: &[u8], at: usize| bytes[..at].iter().filter(|&&b| b == b'\n').count() + 1;
    if let Some(at) = bytes.iter().position(|&byte| byte == 0) {
        return Err((
            line_at(&bytes, at),
            "a zero byte, which PostgreSQL cannot store in a text".to_owned(),
        ));
    }
    match String::from_utf8(bytes) {
        // Some editors begin a file with a mark that is no part of the text.
        Ok(text) => Ok(text
            .strip_prefix('\u{feff}')
            .map(str::to_owned)
            .unwrap_or(text)),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let bytes = error.as_bytes();
            let reason = format!("not UTF-8 (byte 0x{:02x})", bytes[at]);
            Err((line_at(bytes, at), reason))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_says_where_it_breaks() {
        assert_eq!(text(b"a\nb".to_vec()).unwrap(), "a\nb");
        assert_eq!(text("\u{feff}a".into()).unwrap(), "a");
        let (line, reason) = text(b"a\nb\nc\xe9d".to_vec()).unwrap_err();
        assert_eq!((line, reason.as_str()), (3, "not UTF-8 (byte 0xe9)"));
        let (line, reason) = text(b"a\n\0".to_vec()).unwrap_err();
        assert_eq!(line, 2);
        assert!(reason.contains("zero byte"), "{reason}");
    }

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

    #[test]
    fn complaints_are_all_counted_and_the_first_kept() {
        let mut complaints = Complaints::default();
        for line in 1..=20 {
            complaints.add(Path::new("a.tsv"), Some(line), "bad");
        }
        assert_eq!(complaints.count, 20);
        assert_eq!(complaints.first.len(), Complaints::KEPT);
        assert_eq!(complaints.first[0], "a.tsv:1: bad");
    }
}
