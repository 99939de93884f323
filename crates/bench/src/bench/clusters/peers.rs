//! Libraries for Python that cluster documents, each in a process of its own.
use super::Measured;
use crate::bench::session::Time;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// A library.
pub struct Peer {
    /// Its name and what it is asked for.
    pub what: &'static str,
    /// Packages to install.
    pub packages: &'static str,
    /// Statement that fails where it is not installed.
    import: &'static str,
    /// Program that clusters the documents of its first argument, a file of JSON lines, and writes
    /// numbers of documents with their clusters into the folder of its second.
    program: &'static str,
}

/// All of them, with versions whose interfaces the programs use.
pub const PEERS: [Peer; 3] = [
    Peer {
        what: "rensa, 128 hashes, 16 bands",
        packages: "rensa==0.5.0",
        import: "import rensa",
        program: include_str!("rensa.py"),
    },
    Peer {
        what: "text-dedup, 128 hashes, 0.8",
        packages: "text-dedup==0.4.1",
        import: "import text_dedup.minhash",
        program: include_str!("text_dedup.py"),
    },
    Peer {
        what: "datatrove, 14 bands of 8",
        packages: "'datatrove[io,processing]==0.10.1' spacy",
        import: "import datatrove.pipeline.dedup.minhash, spacy",
        program: include_str!("datatrove.py"),
    },
];

/// Variables of the environment that keep a library's parts to one thread.
const ONE_THREAD: [&str; 3] = ["OMP_NUM_THREADS", "POLARS_MAX_THREADS", "RAYON_NUM_THREADS"];

impl Peer {
    /// Returns true if the interpreter has it.
    pub fn is_installed(&self, python: &Path) -> Result<bool> {
        let status = Command::new(python)
            .args(["-c", self.import])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .with_context(|| format!("cannot run {}", python.display()))?;
        Ok(status.success())
    }

    /// Clusters the documents of a file.
    pub fn run(&self, python: &Path, documents: &Path) -> Result<Measured> {
        let folder = tempfile::tempdir()?;
        let output = Command::new(python)
            .args(["-c", self.program])
            .args([documents, folder.path()])
            .envs(ONE_THREAD.map(|name| (name, "1")))
            .output()
            .with_context(|| format!("cannot run {}", python.display()))?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}: {errors}", self.what);
        let text = String::from_utf8(output.stdout)?;
        let last = text.lines().last().context("no output")?;
        let answer: Value = serde_json::from_str(last).with_context(|| last.to_owned())?;
        Ok(Measured {
            version: answer["version"].as_str().map(str::to_owned),
            time: Time {
                wall: answer["wall"].as_f64().context("no time")?,
                cpu: answer["cpu"].as_f64(),
            },
            index: None,
            clusters: read(&folder.path().join("clusters"))?,
        })
    }
}

/// Reads a file of two numbers a line.
fn read(path: &Path) -> Result<Vec<(u64, u64)>> {
    let text = fs::read_to_string(path)?;
    (text.lines())
        .map(|line| {
            let (document, cluster) = line.split_once(' ').context("no cluster")?;
            Ok((document.parse()?, cluster.parse()?))
        })
        .collect()
}
