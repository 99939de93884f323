//! Progress reports of functions over whole tables, sent as NOTICEs.
//!
//! The server's `pg_stat_progress_*` views belong to commands from a fixed list. A function would
//! have to pretend to be one of these commands.
use std::borrow::Cow;
use std::time::{Duration, Instant};

use crate::settings;
use neardup_pg::backend;
use neardup_pg::errors::notice;

/// Minimum time between two reports of a phase.
const EVERY: Duration = Duration::from_secs(1);
/// Number of completed units after which [`Progress::advance`] reads the clock again.
const STEPS: u64 = 256;

/// Current part of a phase, such as the third of four bands, for reports.
struct Part {
    name: &'static str,
    number: u64,
    of: u64,
}

/// Progress of one phase of a function, such as "reading texts". Reports nothing in parallel
/// workers, or if `neardup.progress` is off.
pub struct Progress {
    on: bool,
    phase: Cow<'static, str>,
    unit: &'static str,
    total: f64,
    /// True if `total` is an estimate.
    is_estimate: bool,
    /// Current part of the phase. `None` if the phase is not divided into parts.
    part: Option<Part>,
    done: u64,
    /// Number of completed units at which the clock is read next.
    next_check: u64,
    /// Time from which the next report is due.
    next: Instant,
}

impl Progress {
    /// Begins a phase of `total` units, such as rows. Reports contain the names `phase` and `unit`.
    pub fn new(phase: impl Into<Cow<'static, str>>, unit: &'static str, total: f64) -> Self {
        Self::begin(phase.into(), unit, (total, false), None)
    }

    /// Begins a phase of `total` units, such as rows, where `total` is an estimate.
    pub fn estimated(phase: &'static str, unit: &'static str, total: f64) -> Self {
        Self::begin(phase.into(), unit, (total, true), None)
    }

    /// Begins a phase that has `parts` parts, such as bands, and `total` units in all parts
    /// together. `total` is an estimate. Reports contain the name `part` and the number of the
    /// current part.
    pub fn with_parts(
        phase: &'static str,
        (unit, total): (&'static str, f64),
        (part, parts): (&'static str, u64),
    ) -> Self {
        let part = Part {
            name: part,
            number: 1,
            of: parts,
        };
        Self::begin(phase.into(), unit, (total, true), Some(part))
    }

    fn begin(
        phase: Cow<'static, str>,
        unit: &'static str,
        (total, is_estimate): (f64, bool),
        part: Option<Part>,
    ) -> Self {
        let progress = Progress {
            on: settings::progress() && !backend::is_parallel_worker(),
            phase,
            unit,
            total,
            is_estimate,
            part,
            done: 0,
            next_check: STEPS,
            next: Instant::now() + EVERY,
        };
        progress.tell();
        progress
    }

    /// Adds `units` to the number of completed units, and reports the number if a report is due.
    /// Reads the clock for that only once in [`STEPS`] units.
    #[inline]
    pub fn advance(&mut self, units: u64) {
        self.done += units;
        if self.on && self.done >= self.next_check {
            self.next_check = self.done + STEPS;
            self.check();
        }
    }

    /// Sets the number of completed units, and reports it if a report is due. Reads the clock in
    /// each call, so it is for units that take long.
    pub fn reach(&mut self, done: u64) {
        self.done = done;
        if self.on {
            self.check();
        }
    }

    /// Sets the number of completed parts of the phase, and the number of completed units in all
    /// parts. Reports them if a report is due.
    pub fn reach_part(&mut self, parts_done: u64, done: u64) {
        if let Some(part) = &mut self.part {
            part.number = (parts_done + 1).min(part.of);
        }
        self.reach(done);
    }

    /// Reports the end of the phase. Must not be called for a phase that stops early or by an
    /// error.
    pub fn finish(&mut self) {
        (self.total, self.is_estimate) = (self.done as f64, false);
        if let Some(part) = &mut self.part {
            part.number = part.of;
        }
        if self.done > 0 {
            self.tell();
        }
        self.on = false;
    }

    fn check(&mut self) {
        let now = Instant::now();
        if now >= self.next {
            self.next = now + EVERY;
            self.tell();
        }
    }

    fn tell(&self) {
        if self.on {
            // An estimated total can be less than the number of completed units.
            let total = self.total.max(self.done as f64);
            let about = if self.is_estimate { "about " } else { "" };
            let part = (self.part.as_ref()).map_or(String::new(), |part| {
                format!(", {} {} of {}", part.name, part.number, part.of)
            });
            notice(format!(
                "neardup: {}: {} of {about}{total:.0} {}{part}",
                self.phase, self.done, self.unit
            ));
        }
    }
}
