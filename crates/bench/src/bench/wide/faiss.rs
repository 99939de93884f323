//! Runs FAISS in a Python process (`faiss.py`), which answers the benchmark's searches over pipes,
//! one line of JSON each.
use super::Search;
use crate::bench::session::Session;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Python program that runs FAISS.
const PROGRAM: &str = include_str!("faiss.py");

/// Running Python process with a FAISS index over the values of the table `docs`.
pub struct Faiss {
    process: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    files: tempfile::TempDir,
    /// Version of FAISS.
    pub version: String,
}

/// Result of a series of FAISS searches, one for each query.
pub struct Answer {
    /// Mean seconds of one query, for each repetition of the series.
    pub times: Vec<f64>,
    /// For each query, a number that summarizes its results: 1,000 for each row found, plus the
    /// distances of these rows ([`super::super::contenders::Query::sums`]). If FAISS was too slow
    /// to run all queries, it ran only the first ones, and only these have a number.
    pub sums: Vec<i64>,
}

impl Faiss {
    /// Starts FAISS in the interpreter `python`, with the current values of the table `docs`.
    pub fn start(python: &Path, session: &mut Session) -> Result<Self> {
        let files = tempfile::tempdir()?;
        let docs = files.path().join("docs");
        write_values(session, "docs", &docs)?;
        let mut process = Command::new(python)
            .args(["-c", PROGRAM])
            .arg(&docs)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run {}", python.display()))?;
        let requests = process.stdin.take();
        let answers = process.stdout.take().context("no output")?;
        let mut faiss = Self {
            process,
            requests,
            answers: BufReader::new(answers),
            files,
            version: String::new(),
        };
        let first = faiss.answer().with_context(|| {
            format!(
                "{} does not work with FAISS; pip install faiss-cpu gives it what it needs",
                python.display()
            )
        })?;
        faiss.version = first["version"].as_str().unwrap_or_default().to_owned();
        Ok(faiss)
    }

    /// Runs the search `search` for each of the first `count` values of the table `table`. If this
    /// would take more than about a second, searches only for as many values as FAISS can in this
    /// time.
    pub fn search(
        &mut self,
        session: &mut Session,
        table: &str,
        count: u64,
        search: Search,
    ) -> Result<Answer> {
        let queries = self.queries(session, table)?;
        let search = match search {
            Search::Within(radius) => json!(["within", radius]),
            Search::Nearest(limit) => json!(["nearest", limit]),
        };
        let request = json!({ "queries": queries, "count": count, "search": search });
        let requests = self.requests.as_mut().context("no input")?;
        writeln!(requests, "{request}")?;
        requests.flush()?;
        let answer = self.answer()?;
        let numbers = |name: &str| answer[name].as_array().cloned().unwrap_or_default();
        Ok(Answer {
            times: numbers("times").iter().filter_map(Value::as_f64).collect(),
            sums: numbers("sums").iter().filter_map(Value::as_i64).collect(),
        })
    }

    /// Returns the path of the file with the values of `table`. Writes the file if it does not
    /// exist.
    fn queries(&self, session: &mut Session, table: &str) -> Result<PathBuf> {
        let path = self.files.path().join(table);
        if !path.exists() {
            write_values(session, table, &path)?;
        }
        Ok(path)
    }

    fn answer(&mut self) -> Result<Value> {
        let mut line = String::new();
        let length = self.answers.read_line(&mut line)?;
        ensure!(length > 0, "FAISS has ended");
        Ok(serde_json::from_str(&line)?)
    }
}

impl Drop for Faiss {
    fn drop(&mut self) {
        // The process ends when its input ends.
        drop(self.requests.take());
        _ = self.process.wait();
    }
}

/// Writes the values of `table` in the order of `id` into a file, 8 bytes each.
fn write_values(session: &mut Session, table: &str, path: &Path) -> Result<()> {
    let copy = format!("COPY (SELECT fp FROM {table} ORDER BY id) TO STDOUT (FORMAT binary)");
    let mut rows = BufReader::with_capacity(1 << 16, session.client.copy_out(&copy)?);
    let mut file = BufWriter::new(File::create(path)?);
    // COPY's binary format: 19 bytes of signature, flags and the length of an extension; for each
    // row the number of fields, here 1, and the length and bytes of the field; -1 after the last
    // row (PostgreSQL's documentation of COPY, "Binary Format").
    rows.read_exact(&mut [0; 19])?;
    loop {
        let mut fields = [0; 2];
        rows.read_exact(&mut fields)?;
        if fields != 1i16.to_be_bytes() {
            break;
        }
        let mut field = [0; 12];
        rows.read_exact(&mut field)?;
        file.write_all(&field[4..])?;
    }
    Ok(file.flush()?)
}
