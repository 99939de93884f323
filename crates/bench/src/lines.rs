//! Reads files of tab-separated values, plain or gzipped, for the benchmark and the evaluation.
use anyhow::{Context, Result, bail};
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Calls `each` with the tab-separated columns of each line of the file at `path`, in order. Skips
/// empty lines. Decompresses a file whose name ends in `.gz`.
///
/// # Errors
/// If the file cannot be read, or `each` returns a reason. The error names the file and the line.
pub fn each_line(
    path: &Path,
    mut each: impl FnMut(&[&str]) -> std::result::Result<(), String>,
) -> Result<()> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let reader: Box<dyn Read> = if path.extension().is_some_and(|ending| ending == "gz") {
        Box::new(MultiGzDecoder::new(BufReader::new(file)))
    } else {
        Box::new(file)
    };
    for (number, line) in (1..).zip(BufReader::new(reader).lines()) {
        let result = match &line {
            Ok(line) if line.is_empty() => Ok(()),
            Ok(line) => each(&line.split('\t').collect::<Vec<_>>()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(reason) = result {
            bail!("{}:{number}: {reason}", path.display());
        }
    }
    Ok(())
}
