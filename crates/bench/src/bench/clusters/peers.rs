//! Python libraries that cluster documents, to which `cargo xtask bench --clusters` compares
//! neardup. Each runs in a process of its own.
use super::Measured;
use crate::bench::session::Time;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Python library that clusters documents.
pub struct Peer {
    /// Name of the library in the table, with the parameters of the measured call.
    pub what: &'static str,
    /// Arguments of `pip install` that install the library.
    pub packages: &'static str,
    /// Python statement that fails if the library is not installed.
    import: &'static str,
    /// Python program with two arguments: a file of JSON lines with the documents, and a folder. It
    /// clusters the documents and writes the file `clusters` into the folder. Each line of this
    /// file has a document number and the number of its cluster. The program's last line of output
    /// has the library's version and the times as JSON.
    program: &'static str,
}

/// The compared libraries. The Python scripts in this folder need these versions.
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

/// Environment variables that limit the libraries to one thread.
const ONE_THREAD: [&str; 3] = ["OMP_NUM_THREADS", "POLARS_MAX_THREADS", "RAYON_NUM_THREADS"];

impl Peer {
    /// Returns true if the Python interpreter at the path `python` can import this library.
    pub fn is_installed(&self, python: &Path) -> Result<bool> {
        let status = Command::new(python)
            .args(["-c", self.import])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .with_context(|| format!("cannot run {}", python.display()))?;
        Ok(status.success())
    }

    /// Clusters the documents of the JSON lines file `documents` by this library, in a process of
    /// the interpreter `python`. Returns the library's times and clusters.
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

/// Reads the file of clusters that a library's program wrote. Returns pairs of a document number
/// and the number of its cluster.
fn read(path: &Path) -> Result<Vec<(u64, u64)>> {
    let text = fs::read_to_string(path)?;
    (text.lines())
        .map(|line| {
            let (document, cluster) = line.split_once(' ').context("no cluster")?;
            Ok((document.parse()?, cluster.parse()?))
        })
        .collect()
}
