//! The running server processes of this program, so that a signal handler can stop them all.
use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Time that a server has for a stop before a stronger signal follows.
const PATIENCE: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(10);

static RUNNING: Mutex<Vec<Weak<Process>>> = Mutex::new(Vec::new());
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// A postmaster that this program started and has to reap.
#[derive(Debug)]
pub(crate) struct Process {
    child: Mutex<Child>,
    pid: Pid,
}

impl Process {
    /// Takes charge of a child process.
    pub(crate) fn register(mut child: Child) -> Result<Arc<Self>> {
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let Some(pid) = pid else {
            child.kill().ok();
            bail!("the server's process has an impossible id");
        };
        let process = Arc::new(Self {
            child: Mutex::new(child),
            pid,
        });
        let mut running = locked(&RUNNING);
        running.retain(|other| other.strong_count() > 0);
        running.push(Arc::downgrade(&process));
        drop(running);
        // A signal may have come between the start and the registration.
        if interrupted() {
            process.stop()?;
            bail!("interrupted");
        }
        Ok(process)
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// The exit status, once the process has ended.
    pub(crate) fn ended(&self) -> Result<Option<ExitStatus>> {
        // Polls instead of waiting, because the signal handler needs the lock as well.
        locked(&self.child)
            .try_wait()
            .context("cannot look after the server's process")
    }

    /// Waits until the process has ended; `None` when the time is over first.
    pub(crate) fn wait(&self, limit: Duration) -> Result<Option<ExitStatus>> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.ended()? {
                return Ok(Some(status));
            }
            if start.elapsed() > limit {
                return Ok(None);
            }
            std::thread::sleep(POLL);
        }
    }

    /// Fast shutdown (rolls transactions back and writes a checkpoint); when that takes too long,
    /// immediate shutdown, and then SIGKILL.
    pub(crate) fn stop(&self) -> Result<()> {
        for signal in [Signal::INT, Signal::QUIT, Signal::KILL] {
            if self.ended()?.is_some() {
                return Ok(());
            }
            self.signal(signal)?;
            if self.wait(PATIENCE)?.is_some() {
                return Ok(());
            }
        }
        bail!(
            "the server (process {}) does not stop",
            self.pid.as_raw_pid()
        )
    }

    /// Immediate shutdown.
    pub(crate) fn stop_immediately(&self) -> Result<()> {
        self.signal(Signal::QUIT)?;
        // A caller that asks for this wants no stronger signal.
        match self.wait(6 * PATIENCE)? {
            Some(_) => Ok(()),
            None => bail!("the server does not stop immediately"),
        }
    }

    /// Sends a signal. Skips a process that has ended, because its id may have been reused.
    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        // The lock prevents other threads from reaping the child, so its id is still valid.
        let mut child = locked(&self.child);
        if child.try_wait()?.is_none() {
            kill_process(self.pid, signal).context("cannot signal the server")?;
        }
        Ok(())
    }
}

/// Stops every server that this program has started; for signal handlers. No server starts after
/// this.
pub fn stop_all() {
    INTERRUPTED.store(true, Ordering::SeqCst);
    let running: Vec<_> = locked(&RUNNING).iter().filter_map(Weak::upgrade).collect();
    for process in running {
        if let Err(error) = process.stop() {
            eprintln!("{error:#}");
        }
    }
}

/// Returns whether [`stop_all`] was called: failures that follow are its consequences.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// A panic elsewhere does not make these values wrong.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn stops_a_process_and_reports_its_end() {
        let child = Command::new("sleep").arg("600").spawn().unwrap();
        let process = Process::register(child).unwrap();
        assert!(process.ended().unwrap().is_none());
        process.stop().unwrap();
        assert!(!process.ended().unwrap().unwrap().success());
        // Once it has ended, signals go nowhere.
        process.signal(Signal::KILL).unwrap();
    }
}
