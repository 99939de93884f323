//! Documents, and the reasons why some cannot be used.
use anyhow::Result;
use std::path::Path;

/// One document to load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// A name for people: the file's path, or the line's identifier.
    pub name: String,
    /// The text.
    pub body: String,
}

/// Consumer of documents.
pub type Take<'a> = dyn FnMut(Document) -> Result<()> + 'a;

/// Documents that were left out, with reasons; the first few in full.
#[derive(Debug, Default)]
pub struct Complaints {
    /// Number of documents were left out.
    pub count: usize,
    /// The first of the reasons, each with its place.
    pub first: Vec<String>,
}

impl Complaints {
    /// Number of are kept in full.
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
