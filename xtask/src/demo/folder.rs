//! A folder of text files.
use super::document::{Complaints, Document, Take, text};
use anyhow::Result;
use std::fs;
use std::path::Path;
use walkdir::{DirEntry, WalkDir};

/// Larger files are no documents that a demo should read into memory.
const LARGEST: u64 = 256 << 20;

/// Reads all files below `dir` in the order of their names. What is hidden (a name that begins
/// with a dot) is left out.
pub fn read(dir: &Path, complaints: &mut Complaints, take: &mut Take) -> Result<()> {
    let visible = |entry: &DirEntry| {
        entry.depth() == 0 || !entry.file_name().to_string_lossy().starts_with('.')
    };
    let walk = WalkDir::new(dir).sort_by_file_name().into_iter();
    for entry in walk.filter_entry(visible) {
        match entry {
            Ok(entry) => {
                let path = entry.path();
                // Links to files count, links to folders are not followed.
                if path.is_file() {
                    let name = path.strip_prefix(dir).unwrap_or(path).display();
                    read_file(path, name.to_string(), complaints, take)?;
                }
            }
            Err(error) => {
                let path = error.path().unwrap_or(dir).to_owned();
                complaints.add(&path, None, error);
            }
        }
    }
    Ok(())
}

/// Reads one file as a document called `name`.
pub fn read_file(
    path: &Path,
    name: String,
    complaints: &mut Complaints,
    take: &mut Take,
) -> Result<()> {
    let size = fs::metadata(path).map_or(0, |metadata| metadata.len());
    if size > LARGEST {
        let reason = format!("larger than {} MiB", LARGEST >> 20);
        complaints.add(path, None, reason);
        return Ok(());
    }
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) => {
            complaints.add(path, None, error);
            return Ok(());
        }
    };
    match text(bytes) {
        Ok(body) => take(Document { name, body })?,
        Err((line, reason)) => complaints.add(path, Some(line), reason),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_files_in_order_and_names_the_bad_ones() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        };
        write("b.txt", b"second");
        write("a/deep/a.txt", b"first");
        write("c.bin", b"line\n\xff\xfe");
        write(".git/config", b"hidden");
        let mut complaints = Complaints::default();
        let mut names = Vec::new();
        read(dir.path(), &mut complaints, &mut |document| {
            names.push(format!("{}={}", document.name, document.body));
            Ok(())
        })
        .unwrap();
        assert_eq!(names, ["a/deep/a.txt=first", "b.txt=second"]);
        assert_eq!(complaints.count, 1);
        assert!(complaints.first[0].contains("c.bin:2: not UTF-8"));
    }
}
