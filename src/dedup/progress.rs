//! Progress of a long function, reported by NOTICEs.
//!
//! Each of the server's `pg_stat_progress_*` views belongs to a command from a fixed list. A
//! function would have to pretend to be one of these commands.
use std::borrow::Cow;
use std::time::{Duration, Instant};

use crate::settings;
use neardup_pg::backend;
use neardup_pg::errors::notice;

/// Time between two reports of a phase.
const EVERY: Duration = Duration::from_secs(1);
/// Units between two readings of the clock.
const STEPS: u64 = 256;

/// Current part of a phase, such as the third of four bands.
struct Part {
    name: &'static str,
    number: u64,
    of: u64,
}

/// Progress of one phase. Reports nothing in workers, or unless `neardup.progress` is on.
pub struct Progress {
    on: bool,
    phase: Cow<'static, str>,
    unit: &'static str,
    total: f64,
    /// True if `total` is an estimate.
    is_estimate: bool,
    /// Current part, if the phase has parts.
    part: Option<Part>,
    done: u64,
    /// Number of units at which the clock is read next.
    next_check: u64,
    next: Instant,
}

impl Progress {
    /// Begins a phase of `total` units.
    pub fn new(phase: impl Into<Cow<'static, str>>, unit: &'static str, total: f64) -> Self {
        Self::begin(phase.into(), unit, (total, false), None)
    }

    /// Begins a phase of about `total` units.
    pub fn estimated(phase: &'static str, unit: &'static str, total: f64) -> Self {
        Self::begin(phase.into(), unit, (total, true), None)
    }

    /// Begins the first of several parts of a phase of about `total` units altogether.
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

    /// Counts completed units.
    #[inline]
    pub fn advance(&mut self, units: u64) {
        self.done += units;
        if self.on && self.done >= self.next_check {
            self.next_check = self.done + STEPS;
            self.check();
        }
    }

    /// Sets the number of completed units. For units that take long.
    pub fn reach(&mut self, done: u64) {
        self.done = done;
        if self.on {
            self.check();
        }
    }

    /// Sets the number of completed parts of the phase, and of completed units in all parts.
    pub fn reach_part(&mut self, parts_done: u64, done: u64) {
        if let Some(part) = &mut self.part {
            part.number = (parts_done + 1).min(part.of);
        }
        self.reach(done);
    }

    /// Reports the end of the phase. A phase that ends early, or by an error, does not report it.
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
            // An estimate can be too low.
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
