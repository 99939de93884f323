//! Facts about the machine and the server, printed and stored with the results of each benchmark,
//! because readers need them to judge the results.
use super::session::Session;
use anyhow::Result;
use serde_json::{Value, json};
use std::fs;

/// Facts about the machine and the server of a benchmark.
pub struct Machine {
    /// Name of the processor, or its architecture if the system does not report a name.
    pub cpu: String,
    /// Number of processors that this program may use.
    pub cores: usize,
    /// Memory of the machine in bytes; `None` if the system does not report it.
    pub memory: Option<u64>,
    /// Version and build of PostgreSQL, as `version()` returns them.
    pub server: String,
}

impl Machine {
    /// Collects the facts from the system and from the server of `session`.
    pub fn ask(session: &mut Session) -> Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Self {
            cpu: field("/proc/cpuinfo", "model name")
                .unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            cores,
            memory: field("/proc/meminfo", "MemTotal").and_then(|text| {
                let kilobytes: u64 = text.strip_suffix("kB")?.trim().parse().ok()?;
                Some(kilobytes * 1024)
            }),
            server: session.value("SELECT version()")?,
        })
    }

    /// Returns the facts as one line of text, printed below the results.
    pub fn line(&self) -> String {
        let memory = self.memory.map_or(String::new(), |bytes| {
            format!(", {:.0} GB of memory", bytes as f64 / (1u64 << 30) as f64)
        });
        format!(
            "{}, {} cores{memory}; {}",
            self.cpu, self.cores, self.server
        )
    }

    /// Returns the facts as JSON, stored with the results.
    pub fn json(&self) -> Value {
        json!({
            "cpu": self.cpu,
            "cores": self.cores,
            "memory_bytes": self.memory,
            "server": self.server,
        })
    }
}

/// Returns the first value of the field `name` in the file at `path`, which has lines of the form
/// `name : value`.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

/// Returns the number of runnable processes of the machine, averaged over the last minute; `None`
/// if the system does not report it. Above 1, other programs ran beside the benchmark.
pub fn load() -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse().ok()
}

/// Prints the load of the machine before and after a benchmark, if the system reports it.
pub fn print_load(load: [Option<f64>; 2]) {
    if let [Some(before), Some(after)] = load {
        println!(
            "Load of the machine: {before:.1} before, {after:.1} after (1 is this benchmark's own)."
        );
    }
}
