//! Runs ClickHouse in a Python process (package `chdb`), which answers the benchmark's queries over
//! pipes.
use super::super::session::Time;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Python program that runs ClickHouse. It reads one query per line, and answers with a line of
/// JSON: the result or the error, and the times in seconds.
const SERVE: &str = r#"
import json, sys, time
from chdb import session
server = session.Session()
for line in sys.stdin:
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        answer = {"result": str(server.query(json.loads(line), "TabSeparated")).strip()}
    except Exception as error:
        answer = {"error": str(error)}
    answer["wall"], answer["cpu"] = time.perf_counter() - wall, time.process_time() - cpu
    print(json.dumps(answer), flush=True)
"#;

/// ClickHouse in a running Python process.
pub struct ClickHouse {
    child: Child,
    queries: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// Version of ClickHouse.
    pub version: String,
}

/// Returns the path of the Python interpreter of the benchmark's virtual environment in the target
/// folder. The environment has chdb, and rensa if it is installed.
pub fn python(target: &Path) -> PathBuf {
    target.join("bench").join("venv").join("bin").join("python")
}

/// Returns the shell command that makes the virtual environment and installs chdb in it.
pub fn how_to_install(target: &Path) -> String {
    let venv = target.join("bench").join("venv");
    let venv = venv.display();
    format!("python3 -m venv {venv} && {venv}/bin/pip install chdb==4.4.0")
}

impl ClickHouse {
    /// Starts ClickHouse in the virtual environment of the target folder. `None` if the environment
    /// or the package chdb is missing.
    pub fn start(target: &Path) -> Result<Option<Self>> {
        let python = python(target);
        let has = Command::new(&python)
            .args(["-c", "import chdb"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if !has.is_ok_and(|status| status.success()) {
            return Ok(None);
        }
        let mut child = Command::new(&python)
            .args(["-c", SERVE])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run {}", python.display()))?;
        let queries = child.stdin.take().context("no pipe")?;
        let answers = BufReader::new(child.stdout.take().context("no pipe")?);
        let mut this = Self {
            child,
            queries,
            answers,
            version: String::new(),
        };
        this.version = this.ask("SELECT version()")?.1;
        this.ask("CREATE DATABASE bench ENGINE = Atomic")?;
        Ok(Some(this))
    }

    /// Creates a ClickHouse table in memory with one column `t`, one row for each line of `file`.
    pub fn load(&mut self, table: &str, file: &Path) -> Result<()> {
        let file = file.display();
        self.ask(&format!(
            "CREATE TABLE bench.{table} (t String) ENGINE = Memory"
        ))?;
        self.ask(&format!(
            "INSERT INTO bench.{table} SELECT line FROM file('{file}', 'LineAsString')"
        ))?;
        Ok(())
    }

    /// Runs a query. Returns the time that it took, and its result as text.
    fn ask(&mut self, query: &str) -> Result<(Time, String)> {
        writeln!(self.queries, "{}", json!(query))?;
        self.queries.flush()?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let answer: Value = serde_json::from_str(&line).context("chdb has ended")?;
        if let Some(error) = answer["error"].as_str() {
            bail!("{query}: {error}");
        }
        let time = Time {
            wall: answer["wall"].as_f64().context("no time")?,
            cpu: answer["cpu"].as_f64(),
        };
        Ok((
            time,
            answer["result"].as_str().unwrap_or_default().to_owned(),
        ))
    }

    /// Returns the times of at least three repetitions of a query in one thread. The query first
    /// runs once without being measured.
    pub fn times(&mut self, query: &str) -> Result<Vec<Time>> {
        let query = format!("{query} SETTINGS max_threads = 1");
        self.ask(&query)?;
        let (mut times, begin) = (Vec::new(), Instant::now());
        while times.len() < 3 || (begin.elapsed() < Duration::from_millis(1500) && times.len() < 50)
        {
            times.push(self.ask(&query)?.0);
        }
        Ok(times)
    }
}

impl Drop for ClickHouse {
    fn drop(&mut self) {
        // The process also ends by itself when its input ends. Killing it avoids waiting for that.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
