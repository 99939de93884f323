//! FAISS in a process of its own, which answers line by line.
use super::Search;
use crate::bench::session::Session;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The program at the other end of the pipe.
const PROGRAM: &str = include_str!("faiss.py");

/// A process with an index over the values of `docs`.
pub struct Faiss {
    process: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    files: tempfile::TempDir,
    /// Its version.
    pub version: String,
}

/// Result of a search.
pub struct Answer {
    /// Seconds a query, of each repetition.
    pub times: Vec<f64>,
    /// Results of the first queries, as [`super::super::contenders::Query::sums`].
    pub sums: Vec<i64>,
}

impl Faiss {
    /// Starts FAISS with the current contents of the table.
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

    /// Searches for the first `count` values of a table.
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

    /// The file with a table's values.
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
        // Without more requests it ends.
        drop(self.requests.take());
        _ = self.process.wait();
    }
}

/// Writes the values of a table into a file, in the order of their rows.
fn write_values(session: &mut Session, table: &str, path: &Path) -> Result<()> {
    let copy = format!("COPY (SELECT fp FROM {table} ORDER BY id) TO STDOUT (FORMAT binary)");
    let mut rows = BufReader::with_capacity(1 << 16, session.client.copy_out(&copy)?);
    let mut file = BufWriter::new(File::create(path)?);
    // The signature, flags and the length of an extension; per row the number of fields, 1, and
    // the length and bytes of the field; -1 ends it (PostgreSQL's documentation of COPY).
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
