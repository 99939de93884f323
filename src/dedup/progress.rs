//! Progress of a long function, told by NOTICEs.
//!
//! The server's own views, `pg_stat_progress_*`, are each of one command, and their commands are a
//! fixed list: a function would have to pretend to be one of them.
use std::time::{Duration, Instant};

use crate::pg::errors::notice;
use crate::settings;

/// Time between two reports of a phase.
const EVERY: Duration = Duration::from_secs(1);
/// Units between two readings of the clock.
const STEPS: u64 = 256;

/// Progress of one phase. Nothing is told unless `neardup.progress` is on.
pub struct Progress {
    on: bool,
    phase: &'static str,
    unit: &'static str,
    total: f64,
    done: u64,
    /// Number of units at which the clock is read next.
    next_check: u64,
    next: Instant,
}

impl Progress {
    /// Begins a phase of about `total` units.
    pub fn new(phase: &'static str, unit: &'static str, total: f64) -> Self {
        let progress = Progress {
            on: settings::progress(),
            phase,
            unit,
            total,
            done: 0,
            next_check: STEPS,
            next: Instant::now() + EVERY,
        };
        progress.tell();
        progress
    }

    /// Counts units that are done.
    #[inline]
    pub fn advance(&mut self, units: u64) {
        self.done += units;
        if self.on && self.done >= self.next_check {
            self.next_check = self.done + STEPS;
            self.check();
        }
    }

    /// Notes how many units are done, each of which takes long.
    pub fn reach(&mut self, done: u64) {
        self.done = done;
        if self.on {
            self.check();
        }
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
            // An estimate may be too low.
            let total = self.total.max(self.done as f64);
            notice(format!(
                "neardup: {}: {} of {total:.0} {}",
                self.phase, self.done, self.unit
            ));
        }
    }
}
