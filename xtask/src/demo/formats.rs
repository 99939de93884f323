//! Files with one document per line: tab-separated values and JSON lines, plain or gzipped.
use super::document::{Complaints, Document, Take, text};
use crate::ui::plural;
use anyhow::{Context, Result};
use flate2::read::MultiGzDecoder;
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Reads one line into a document, or says what is wrong with it. The number counts from 1.
pub type Parser = fn(&str, usize) -> std::result::Result<Document, String>;

/// Hands the documents of the file at `path` to `take`; lines that cannot be used go to
/// `complaints`, blank ones are passed over.
pub fn read(
    path: &Path,
    parse: Parser,
    complaints: &mut Complaints,
    take: &mut Take,
) -> Result<()> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let gzipped = path
        .extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("gz"));
    let reader: Box<dyn Read> = if gzipped {
        Box::new(MultiGzDecoder::new(BufReader::new(file)))
    } else {
        Box::new(file)
    };
    read_lines(BufReader::new(reader), path, parse, complaints, take)
}

fn read_lines(
    mut reader: impl BufRead,
    path: &Path,
    parse: Parser,
    complaints: &mut Complaints,
    take: &mut Take,
) -> Result<()> {
    for number in 1.. {
        let mut bytes = Vec::new();
        if let Err(error) = reader.read_until(b'\n', &mut bytes) {
            // A gzip that breaks off, or a disk error: what was read so far still counts.
            complaints.add(path, Some(number), error);
            break;
        }
        if bytes.is_empty() {
            break;
        }
        for ending in [b'\n', b'\r'] {
            if bytes.last() == Some(&ending) {
                bytes.pop();
            }
        }
        let line = match text(bytes) {
            Ok(line) => line,
            Err((_, reason)) => {
                complaints.add(path, Some(number), reason);
                continue;
            }
        };
        if line.trim().is_empty() {
            continue;
        }
        match parse(&line, number) {
            Ok(document) => take(document)?,
            Err(reason) => complaints.add(path, Some(number), reason),
        }
    }
    Ok(())
}

/// `identifier<TAB>text`, with tabs, line ends and backslashes in the text written as `\t`, `\n`,
/// `\r` and `\\`.
pub fn tsv(line: &str, _number: usize) -> std::result::Result<Document, String> {
    let columns: Vec<&str> = line.split('\t').collect();
    let [name, body] = columns[..] else {
        return Err(format!(
            "{} where identifier, tab, text are expected (a tab in the text is written \\t)",
            plural(columns.len(), "column", "columns")
        ));
    };
    Ok(Document {
        name: name.to_owned(),
        body: unescape(body),
    })
}

/// A backslash before any other letter stands for itself.
fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        plain.push_str(&rest[..at]);
        let escaped = rest[at + 1..].chars().next();
        let replacement = match escaped {
            Some('t') => Some('\t'),
            Some('n') => Some('\n'),
            Some('r') => Some('\r'),
            Some('\\') => Some('\\'),
            _ => None,
        };
        plain.push(replacement.unwrap_or('\\'));
        rest = &rest[at + 1 + usize::from(replacement.is_some())..];
    }
    plain.push_str(rest);
    plain
}

/// An object with the text in `text` or `body` and, if it likes, an identifier in `id`.
pub fn json(line: &str, number: usize) -> std::result::Result<Document, String> {
    let value: Value = serde_json::from_str(line).map_err(|error| {
        // It counts lines too, of which there is one.
        let message = error.to_string();
        let what = message.split(" at line ").next().unwrap_or(&message);
        format!("not JSON: {what} (column {})", error.column())
    })?;
    let Value::Object(mut fields) = value else {
        return Err("not a JSON object".to_owned());
    };
    let body = ["text", "body"]
        .iter()
        .find_map(|name| fields.remove(*name));
    let body = match body {
        Some(Value::String(body)) => body,
        Some(_) => return Err("the text is not a string".to_owned()),
        None => return Err("neither \"text\" nor \"body\" in the object".to_owned()),
    };
    if body.contains('\0') {
        return Err("a zero byte, which PostgreSQL cannot store in a text".to_owned());
    }
    let name = match fields.remove("id") {
        Some(Value::String(id)) => id.replace('\0', ""),
        None | Some(Value::Null) => format!("line {number}"),
        Some(other) => other.to_string(),
    };
    Ok(Document { name, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(bytes: &[u8], parse: Parser) -> (Vec<(String, String)>, Vec<String>) {
        let mut complaints = Complaints::default();
        let mut documents = Vec::new();
        let path = Path::new("f");
        read_lines(bytes, path, parse, &mut complaints, &mut |document| {
            documents.push((document.name, document.body));
            Ok(())
        })
        .unwrap();
        (documents, complaints.first)
    }

    fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(name, body)| ((*name).to_owned(), (*body).to_owned()))
            .collect()
    }

    #[test]
    fn escapes_are_undone_once() {
        assert_eq!(unescape(r"a\tb\nc\\n\r"), "a\tb\nc\\n\r");
        assert_eq!(unescape(r"C:\dir \é end\"), r"C:\dir \é end\");
        assert_eq!(unescape(""), "");
    }

    #[test]
    fn tsv_keeps_the_good_lines_and_names_the_bad() {
        let (documents, complaints) = parsed(
            b"1\tone\\ntext\r\nno tab here\n\n3\t\xff\n4\tfour\tfive\n5\tlast",
            tsv,
        );
        assert_eq!(documents, owned(&[("1", "one\ntext"), ("5", "last")]));
        assert_eq!(complaints.len(), 3);
        assert!(complaints[0].starts_with("f:2: 1 column"), "{complaints:?}");
        assert!(
            complaints[1].starts_with("f:4: not UTF-8"),
            "{complaints:?}"
        );
        assert!(complaints[2].starts_with("f:5: 3 column"), "{complaints:?}");
    }

    #[test]
    fn json_takes_either_field_and_names_the_bad_lines() {
        let (documents, complaints) = parsed(
            br#"{"id": 7, "text": "seven"}
{"body": "named by its line"}
{"id": "x"}
{"text": 3}
{"text": "cut off
[1]
{"id": "nul", "text": "a\u0000b"}
"#,
            json,
        );
        assert_eq!(
            documents,
            owned(&[("7", "seven"), ("line 2", "named by its line")])
        );
        let expected = [
            "f:3: neither",
            "f:4: the text",
            "f:5: not JSON",
            "f:6: not a JSON",
        ];
        for (complaint, beginning) in complaints.iter().zip(expected) {
            assert!(complaint.starts_with(beginning), "{complaint}");
        }
        assert!(complaints[4].contains("zero byte"), "{complaints:?}");
    }

    #[test]
    fn gzipped_files_are_read_as_plain_ones() {
        use flate2::{Compression, write::GzEncoder};
        use std::io::Write;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.tsv.gz");
        let mut encoder = GzEncoder::new(File::create(&path).unwrap(), Compression::fast());
        encoder.write_all(b"1\tone\n2\ttwo\n").unwrap();
        encoder.finish().unwrap();
        let mut complaints = Complaints::default();
        let mut bodies = Vec::new();
        read(&path, tsv, &mut complaints, &mut |document| {
            bodies.push(document.body);
            Ok(())
        })
        .unwrap();
        assert_eq!(bodies, ["one", "two"]);
        assert_eq!(complaints.count, 0);
    }
}
