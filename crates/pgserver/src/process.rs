//! Server processes that this program has started, and their registry, by which a signal handler
//! can stop all of them.
use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Time that a server has to stop before it gets a stronger signal.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(10);

static RUNNING: Mutex<Vec<Weak<Process>>> = Mutex::new(Vec::new());
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Postmaster that this program has started as a child process. The program must reap it.
#[derive(Debug)]
pub(crate) struct Process {
    child: Mutex<Child>,
    pid: Pid,
}

impl Process {
    /// Registers the postmaster `child`, so that [`stop_all`] can stop it. If [`stop_all`] was
    /// called already, stops the postmaster and fails.
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
        // `stop_all` may have run between the start of the process and its registration.
        if interrupted() {
            process.stop()?;
            bail!("interrupted");
        }
        Ok(process)
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Returns the exit status of the process; `None` while it runs.
    pub(crate) fn ended(&self) -> Result<Option<ExitStatus>> {
        // Does not wait for the process, because the signal handler needs the same lock to stop it.
        locked(&self.child)
            .try_wait()
            .context("cannot look after the server's process")
    }

    /// Waits until the process has ended, and returns its exit status. `None` if it still runs
    /// after `limit`.
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

    /// Stops the server by a fast shutdown, which rolls transactions back and writes a checkpoint.
    /// If that takes longer than [`STOP_TIMEOUT`], follows with an immediate shutdown, and then
    /// with SIGKILL.
    pub(crate) fn stop(&self) -> Result<()> {
        for signal in [Signal::INT, Signal::QUIT, Signal::KILL] {
            if self.ended()?.is_some() {
                return Ok(());
            }
            self.signal(signal)?;
            if self.wait(STOP_TIMEOUT)?.is_some() {
                return Ok(());
            }
        }
        bail!(
            "the server (process {}) does not stop",
            self.pid.as_raw_pid()
        )
    }

    /// Stops the server by an immediate shutdown, without a checkpoint. Fails if it does not end.
    pub(crate) fn stop_immediately(&self) -> Result<()> {
        self.signal(Signal::QUIT)?;
        // Do not follow with SIGKILL: callers use this function to test the immediate shutdown.
        match self.wait(6 * STOP_TIMEOUT)? {
            Some(_) => Ok(()),
            None => bail!("the server does not stop immediately"),
        }
    }

    /// Sends a signal to the process. Does nothing if the process has ended, because its id may
    /// have been reused.
    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        // While this thread holds the lock no other thread can reap the child, so the process id
        // stays valid.
        let mut child = locked(&self.child);
        if child.try_wait()?.is_none() {
            kill_process(self.pid, signal).context("cannot signal the server")?;
        }
        Ok(())
    }
}

/// Stops every server that this program has started, and prevents the start of others. Signal
/// handlers call it.
pub fn stop_all() {
    INTERRUPTED.store(true, Ordering::SeqCst);
    let running: Vec<_> = locked(&RUNNING).iter().filter_map(Weak::upgrade).collect();
    for process in running {
        if let Err(error) = process.stop() {
            eprintln!("{error:#}");
        }
    }
}

/// Returns whether [`stop_all`] was called. Later errors of servers are consequences of that call.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// Locks a mutex, even if another thread has panicked while it held the lock. The values behind the
/// mutexes of this module stay valid after such a panic.
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
        // A signal to an ended process is ignored.
        process.signal(Signal::KILL).unwrap();
    }
}
