//! Report of the rounds, in words and numbers.
use crate::support::workload::Job;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Events of a round.
pub struct Round {
    pub number: u64,
    of: u64,
    /// Cause of the server's death.
    pub death: String,
    /// Work of the clients when the server died.
    pub busy: Vec<(&'static str, Job)>,
    /// Kills before the server had recovered, and shortly after.
    pub killed_in_recovery: u64,
    pub killed_after_recovery: u64,
    /// Indexes that the crash left half built, and sound indexes.
    pub unfinished: usize,
    pub indexes: usize,
    pub took: Duration,
}

impl Round {
    pub fn new(number: u64, of: u64) -> Self {
        Round {
            number,
            of,
            death: "nobody died".to_owned(),
            busy: Vec::new(),
            killed_in_recovery: 0,
            killed_after_recovery: 0,
            unfinished: 0,
            indexes: 0,
            took: Duration::ZERO,
        }
    }
}

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let busy: Vec<String> = self
            .busy
            .iter()
            .map(|(doing, job)| format!("{doing} {}", job.1.table))
            .collect();
        write!(
            f,
            "round {}/{}: {} amid {}",
            self.number,
            self.of,
            self.death,
            busy.join(", ")
        )?;
        for (times, when) in [
            (self.killed_in_recovery, "in"),
            (self.killed_after_recovery, "after"),
        ] {
            if times > 0 {
                write!(f, "; kill -9 {when} recovery, {times} time(s)")?;
            }
        }
        if self.unfinished > 0 {
            write!(f, "; {} unfinished index(es)", self.unfinished)?;
        }
        if self.indexes > 0 {
            let seconds = self.took.as_secs_f64();
            write!(f, "; {} indexes hold ({seconds:.1} s)", self.indexes)?;
        }
        Ok(())
    }
}

/// Counts over all rounds.
#[derive(Default)]
pub struct Report {
    rounds: u64,
    /// Number of rounds by cause of death.
    deaths: BTreeMap<String, u64>,
    /// Number of rounds in which a client did this work when the server died.
    busy: BTreeMap<&'static str, u64>,
    killed_in_recovery: u64,
    killed_after_recovery: u64,
    unfinished: usize,
    indexes: usize,
}

impl Report {
    pub fn add(&mut self, round: &Round) {
        self.rounds += 1;
        let kind = round.death.split(" (").next().unwrap_or_default();
        *self.deaths.entry(kind.to_owned()).or_default() += 1;
        let mut busy: Vec<_> = round.busy.iter().map(|&(doing, _)| doing).collect();
        busy.sort_unstable();
        busy.dedup();
        for doing in busy {
            *self.busy.entry(doing).or_default() += 1;
        }
        self.killed_in_recovery += round.killed_in_recovery;
        self.killed_after_recovery += round.killed_after_recovery;
        self.unfinished += round.unfinished;
        self.indexes += round.indexes;
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} rounds survived; {} checks of indexes; {} half-built indexes found and cleared",
            self.rounds, self.indexes, self.unfinished
        )?;
        for (death, rounds) in &self.deaths {
            writeln!(f, "{rounds:6}  {death}")?;
        }
        writeln!(f, "{:6}  kill -9 in recovery", self.killed_in_recovery)?;
        writeln!(
            f,
            "{:6}  kill -9 after recovery",
            self.killed_after_recovery
        )?;
        writeln!(f, "rounds in which the server died amid")?;
        for (doing, rounds) in &self.busy {
            writeln!(f, "{rounds:6}  {doing}")?;
        }
        Ok(())
    }
}
