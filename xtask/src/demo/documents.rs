//! Reads the documents of the demo from several kinds of sources, and writes them as rows in the
//! text format of COPY.
use crate::ui;
use anyhow::{Context, Result, bail};
use flate2::read::MultiGzDecoder;
use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use walkdir::{DirEntry, WalkDir};

/// Maximum size of a document's file in bytes. Larger files are skipped, because a whole document
/// is read into memory.
const MAX_FILE_BYTES: u64 = 256 << 20;
/// Maximum number of skipped documents that are reported with the reason. Further skipped documents
/// are only counted.
const MAX_REASONS: usize = 8;
/// Folder in which Debian stores the licences of its packages.
const DEBIAN_DOCUMENTS: &str = "/usr/share/doc";

/// Source of the demo's documents.
#[derive(Debug, PartialEq, Eq)]
pub enum Source {
    /// Licence, README and copyright files that cargo and Debian's packages have put on this
    /// machine.
    Machine,
    /// All files below this folder, each a document.
    Folder(PathBuf),
    /// File with one document per line: identifier, tab, text.
    Tsv(PathBuf),
    /// File with one JSON object per line, with the text in `text` or `body`.
    JsonLines(PathBuf),
}

impl Source {
    /// Returns the source that `path` names, or the machine's own documents if there is no path.
    ///
    /// # Errors
    /// If the path does not exist, or its kind is not supported.
    pub fn new(path: Option<&Path>) -> Result<Self> {
        let Some(path) = path else {
            return Ok(Self::Machine);
        };
        let metadata = path.metadata();
        let metadata = metadata.with_context(|| format!("cannot read {}", path.display()))?;
        if metadata.is_dir() {
            return Ok(Self::Folder(path.to_owned()));
        }
        let name = path.to_string_lossy().to_lowercase();
        let extension = name.trim_end_matches(".gz").rsplit('.').next();
        match extension.unwrap_or_default() {
            "tsv" => Ok(Self::Tsv(path.to_owned())),
            "jsonl" | "ndjson" => Ok(Self::JsonLines(path.to_owned())),
            _ => bail!(
                "{} must be a folder of text files, a .tsv (identifier, tab, text) or a .jsonl \
                 (an object with \"text\" or \"body\" per line)",
                path.display()
            ),
        }
    }

    /// Returns a description of the source for users.
    pub fn describe(&self) -> String {
        match self {
            Self::Machine => "licence, README and copyright files of this machine".to_owned(),
            Self::Folder(path) | Self::Tsv(path) | Self::JsonLines(path) => {
                path.display().to_string()
            }
        }
    }

    /// Reads all documents of the source into `loader`. Documents that cannot be used are skipped.
    ///
    /// # Errors
    /// If the source as a whole cannot be read, or `loader` fails.
    pub fn read(&self, loader: &mut Loader<impl Write>) -> Result<()> {
        match self {
            Self::Machine => read_machine(loader),
            Self::Folder(folder) => read_folder(folder, usize::MAX, loader, |_| true),
            Self::Tsv(path) => read_lines(path, from_tsv, loader),
            Self::JsonLines(path) => read_lines(path, from_json, loader),
        }
    }
}

/// Writes documents as rows `id, name, body` in the text format of COPY. The numbers `id` begin
/// with 1. Counts the documents that are skipped, and keeps the first reasons.
pub struct Loader<W> {
    out: W,
    /// Number of documents that were written.
    pub documents: usize,
    skipped: usize,
    reasons: Vec<String>,
}

impl<W: Write> Loader<W> {
    /// Creates a loader that writes rows to `out`.
    pub fn new(out: W) -> Self {
        Self {
            out,
            documents: 0,
            skipped: 0,
            reasons: Vec::new(),
        }
    }

    /// Writes a document, or skips it if PostgreSQL cannot store it. `origin` is the file or line
    /// that a message about a skipped document names. `name` and `body` are the document's name and
    /// text in the table.
    fn add(&mut self, origin: &str, name: &str, body: &str) -> Result<()> {
        if body.contains('\0') {
            self.skip(
                origin,
                "a zero byte, which PostgreSQL cannot store in a text",
            );
            return Ok(());
        }
        self.documents += 1;
        let (number, name, body) = (self.documents, escaped(name), escaped(body));
        Ok(writeln!(self.out, "{number}\t{name}\t{body}")?)
    }

    /// Counts a skipped document. Keeps the reason, with the file or line `origin`, unless
    /// [`MAX_REASONS`] reasons are already kept.
    fn skip(&mut self, origin: &str, reason: impl std::fmt::Display) {
        self.skipped += 1;
        if self.reasons.len() < MAX_REASONS {
            self.reasons.push(format!("{origin}: {reason}"));
        }
    }

    /// Prints the first skipped documents with the reasons, and the number of further skipped
    /// documents.
    pub fn report_skipped(&self) {
        for reason in &self.reasons {
            ui::note(format!("skipped {reason}"));
        }
        let more = self.skipped - self.reasons.len();
        if more > 0 {
            ui::note(format!("…and {more} more skipped"));
        }
    }
}

/// Escapes a value for the text format of COPY.
fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\0' => (),
            c => text.push(c),
        }
    }
    text
}

/// Decodes UTF-8 text and removes a byte order mark. The error says where the text is not UTF-8.
fn decoded(bytes: Vec<u8>) -> Result<String, String> {
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        format!("not UTF-8 at byte {valid}")
    })?;
    Ok(text
        .strip_prefix('\u{feff}')
        .map(str::to_owned)
        .unwrap_or(text))
}

/// Reads the licence and README files of packages that cargo has downloaded, and the copyright
/// files of Debian's packages.
fn read_machine(loader: &mut Loader<impl Write>) -> Result<()> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let registries = home.map(|home| home.join("registry/src"));
    for registry in registries.into_iter().flat_map(fs::read_dir).flatten() {
        read_folder(&registry?.path(), 2, loader, |file| {
            let name = file.file_name().to_string_lossy().to_lowercase();
            let names = [
                "licen",
                "copying",
                "copyright",
                "notice",
                "unlicense",
                "readme",
            ];
            file.depth() == 2 && names.iter().any(|begin| name.starts_with(begin))
        })?;
    }
    // Some packages share a folder by a symbolic link. Each file is read once.
    read_folder(Path::new(DEBIAN_DOCUMENTS), 2, loader, |file| {
        file.file_name() == "copyright" && !file.path_is_symlink()
    })
}

/// Reads the files below a folder into `loader`, in the order of their names. Skips files for which
/// `is_wanted` returns false, hidden files and folders, and files more than `max_depth` levels
/// below the folder.
fn read_folder(
    folder: &Path,
    max_depth: usize,
    loader: &mut Loader<impl Write>,
    is_wanted: impl Fn(&DirEntry) -> bool,
) -> Result<()> {
    let is_visible = |entry: &DirEntry| {
        entry.depth() == 0 || !entry.file_name().to_string_lossy().starts_with('.')
    };
    let walk = WalkDir::new(folder)
        .max_depth(max_depth)
        .sort_by_file_name();
    for entry in walk.into_iter().filter_entry(is_visible) {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                loader.skip(&folder.to_string_lossy(), error);
                continue;
            }
        };
        // `is_file` follows links to files. The walk does not follow links to folders.
        let path = entry.path();
        if path.is_file() && is_wanted(&entry) {
            let name = path.strip_prefix(folder).unwrap_or(path).to_string_lossy();
            match read_file(path) {
                Ok(body) => loader.add(&path.to_string_lossy(), &name, &body)?,
                Err(reason) => loader.skip(&path.to_string_lossy(), reason),
            }
        }
    }
    Ok(())
}

fn read_file(path: &Path) -> Result<String, String> {
    if path
        .metadata()
        .is_ok_and(|file| file.len() > MAX_FILE_BYTES)
    {
        return Err(format!("larger than {} MiB", MAX_FILE_BYTES >> 20));
    }
    decoded(fs::read(path).map_err(|error| error.to_string())?)
}

/// Document in a line: its name and its text. The error is the reason why the line is skipped. If
/// the name is `None`, the line number becomes the name.
type Parsed = Result<(Option<String>, String), String>;

/// Reads a file with one document per line, plain or `.gz`, into `loader`. `parse` converts a line
/// to a document. Skips empty lines, lines that are not UTF-8, and lines for which `parse` returns
/// an error.
fn read_lines(
    path: &Path,
    parse: fn(&str) -> Parsed,
    loader: &mut Loader<impl Write>,
) -> Result<()> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let is_compressed = path
        .extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("gz"));
    let reader: Box<dyn Read> = match is_compressed {
        true => Box::new(MultiGzDecoder::new(BufReader::new(file))),
        false => Box::new(file),
    };
    for (number, line) in (1..).zip(BufReader::new(reader).split(b'\n')) {
        let origin = format!("{}:{number}", path.display());
        let line = match line {
            Ok(line) => line,
            // The compressed file is truncated. The lines before its end are still used.
            Err(error) => {
                loader.skip(&origin, error);
                break;
            }
        };
        let line = decoded(line);
        let text = line.as_deref().map(|line| line.trim_end_matches('\r'));
        match text
            .map_err(String::clone)
            .and_then(|text| match text.trim() {
                "" => Ok(None),
                _ => parse(text).map(Some),
            }) {
            Ok(Some((name, body))) => {
                let name = name.unwrap_or_else(|| format!("line {number}"));
                loader.add(&origin, &name, &body)?;
            }
            Ok(None) => (),
            Err(reason) => loader.skip(&origin, reason),
        }
    }
    Ok(())
}

/// Parses a line `identifier<TAB>text`. The text may have the escapes `\t`, `\n`, `\r` and `\\`.
/// Other backslashes are characters of the text.
fn from_tsv(line: &str) -> Parsed {
    let columns: Vec<&str> = line.split('\t').collect();
    let [name, text] = columns[..] else {
        return Err(format!(
            "{} columns instead of identifier, tab, text (a tab in the text is written \\t)",
            columns.len()
        ));
    };
    let mut body = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let escape = (c == '\\').then(|| chars.peek()).flatten();
        let replacement = match escape {
            Some('t') => '\t',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('\\') => '\\',
            _ => {
                body.push(c);
                continue;
            }
        };
        body.push(replacement);
        chars.next();
    }
    Ok((Some(name.to_owned()), body))
}

/// Parses a line with a JSON object, which has the text in `text` or `body` and optionally an
/// identifier in `id`.
fn from_json(line: &str) -> Parsed {
    let value: Value = serde_json::from_str(line).map_err(|error| format!("not JSON: {error}"))?;
    let body = [&value["text"], &value["body"]]
        .into_iter()
        .find(|field| !field.is_null());
    let body = body.ok_or("neither \"text\" nor \"body\" in an object")?;
    let body = body.as_str().ok_or("the text is not a string")?;
    let name = match &value["id"] {
        Value::Null => None,
        Value::String(id) => Some(id.clone()),
        other => Some(other.to_string()),
    };
    Ok((name, body.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};

    /// Returns the rows that are loaded from a file or folder, and the reasons for skipped
    /// documents.
    fn loaded(path: &Path) -> (Vec<String>, Vec<String>) {
        let mut loader = Loader::new(Vec::new());
        Source::new(Some(path)).unwrap().read(&mut loader).unwrap();
        let rows = String::from_utf8(loader.out).unwrap();
        (rows.lines().map(str::to_owned).collect(), loader.reasons)
    }

    fn file(folder: &tempfile::TempDir, name: &str, bytes: &[u8]) -> PathBuf {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    #[test]
    fn reads_files_in_order_and_reports_bad_files() {
        let folder = tempfile::tempdir().unwrap();
        file(&folder, "b.txt", b"\xef\xbb\xbfsecond\tb\\N\r\n.");
        file(&folder, "a/deep/a.txt", b"first");
        file(&folder, "c.bin", b"line\n\xff\xfe");
        file(&folder, "d.bin", b"\0");
        file(&folder, ".git/config", b"hidden");
        let (rows, reasons) = loaded(folder.path());
        assert_eq!(
            rows,
            ["1\ta/deep/a.txt\tfirst", "2\tb.txt\tsecond\\tb\\\\N\\r\\n."]
        );
        assert!(
            reasons[0].ends_with("c.bin: not UTF-8 at byte 5"),
            "{reasons:?}"
        );
        assert!(reasons[1].contains("zero byte"), "{reasons:?}");
    }

    #[test]
    fn reads_good_lines_of_tsv_and_reports_bad_lines() {
        let folder = tempfile::tempdir().unwrap();
        let lines = b"1\tone\\ntext\\\\ C:\\dir\r\nno tab here\n\n3\t\xff\n4\tfour\tfive\n5\tlast";
        let (rows, reasons) = loaded(&file(&folder, "a.TSV", lines));
        assert_eq!(rows, ["1\t1\tone\\ntext\\\\ C:\\\\dir", "2\t5\tlast"]);
        for (reason, part) in reasons
            .iter()
            .zip([":2: 1 column", ":4: not UTF-8", ":5: 3 col"])
        {
            assert!(reason.contains(part), "{reason}");
        }
        assert_eq!(reasons.len(), 3);
    }

    #[test]
    fn reads_good_objects_and_reports_bad_objects() {
        let folder = tempfile::tempdir().unwrap();
        let lines = br#"{"id": 7, "text": "seven"}
{"body": "named by its line"}
{"id": "x"}
{"text": 3}
{"text": "cut off
[1]
{"id": "nul", "text": "a\u0000b"}
"#;
        let path = file(&folder, "a.jsonl.gz", b"");
        let mut encoder = GzEncoder::new(File::create(&path).unwrap(), Compression::fast());
        encoder.write_all(lines).unwrap();
        encoder.finish().unwrap();
        let (rows, reasons) = loaded(&path);
        assert_eq!(rows, ["1\t7\tseven", "2\tline 2\tnamed by its line"]);
        let parts = [
            ":3: neither",
            ":4: the text",
            ":5: not JSON",
            ":6: neither",
            ":7: a zero",
        ];
        for (reason, part) in reasons.iter().zip(parts) {
            assert!(reason.contains(part), "{reason}");
        }
        assert_eq!(reasons.len(), parts.len());
    }

    #[test]
    fn rejects_other_kinds_of_files() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Source::new(Some(&file(&folder, "a.pdf", b""))).is_err());
        let missing = Source::new(Some(&folder.path().join("missing"))).unwrap_err();
        assert!(format!("{missing:#}").contains("missing"));
        assert_eq!(Source::new(None).unwrap(), Source::Machine);
    }
}
