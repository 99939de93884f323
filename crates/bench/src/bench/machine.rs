//! Facts about the machine and the server, which readers need to judge the figures.
use super::session::Session;
use anyhow::Result;
use serde_json::{Value, json};
use std::fs;

/// Facts about the machine, as far as the system reports them.
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// Processors that this program may use.
    pub cores: usize,
    /// Memory in bytes.
    pub memory: Option<u64>,
    /// The server's version and build.
    pub server: String,
}

impl Machine {
    /// Asks the system and the server.
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

    /// A line for people.
    pub fn line(&self) -> String {
        let memory = self.memory.map_or(String::new(), |bytes| {
            format!(", {:.0} GB of memory", bytes as f64 / (1u64 << 30) as f64)
        });
        format!(
            "{}, {} cores{memory}; {}",
            self.cpu, self.cores, self.server
        )
    }

    /// The facts for programs.
    pub fn json(&self) -> Value {
        json!({
            "cpu": self.cpu,
            "cores": self.cores,
            "memory_bytes": self.memory,
            "server": self.server,
        })
    }
}

/// The first value of a field in a file of `name : value` lines.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

/// Runnable processes, averaged over the last minute: above 1 something else was running too.
pub fn load() -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse().ok()
}

/// Prints the load before and after a benchmark, if it is known.
pub fn print_load(load: [Option<f64>; 2]) {
    if let [Some(before), Some(after)] = load {
        println!(
            "Load of the machine: {before:.1} before, {after:.1} after (1 is this benchmark's own)."
        );
    }
}
