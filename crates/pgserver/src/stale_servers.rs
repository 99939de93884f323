//! Stops servers that a killed run has left behind. A lock marks the servers that are in use.
use crate::server::{DATA, HOME_PREFIX};
use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::fs::{self, File, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Lock on a purpose (test, demo, ...), held by this process while the value lives. The system
/// releases it however the process ends. So a server whose purpose is not locked is left over.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of `purpose` in `dir`; `None` when another process holds it, see
    /// [`Lock::holder`].
    ///
    /// # Errors
    /// When the lock's file cannot be made.
    pub fn try_take(dir: &Path, purpose: &str) -> Result<Option<Self>> {
        let path = Self::path(dir, purpose);
        let mut file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .with_context(|| format!("cannot open {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock {}", path.display()));
            }
        }
        file.set_len(0)?;
        write!(file, "{}", std::process::id())?;
        Ok(Some(Self { _file: file }))
    }

    /// The process that holds or last held the lock.
    pub fn holder(dir: &Path, purpose: &str) -> Option<u32> {
        let text = fs::read_to_string(Self::path(dir, purpose)).ok()?;
        text.trim().parse().ok()
    }

    fn path(dir: &Path, purpose: &str) -> PathBuf {
        dir.join(format!("lock-{purpose}"))
    }
}

/// Stops the servers in `dir` whose name begins with `prefix`. Call it only while holding the lock
/// that covers these names. Returns how many were stopped.
///
/// # Errors
/// When a server does not stop within 30 seconds.
pub fn stop_leftovers(dir: &Path, prefix: &str) -> Result<usize> {
    let beginning = format!("{HOME_PREFIX}{prefix}");
    let mut stopped = 0;
    for entry in fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(&beginning)
            && let Some(pid) = running_in(&entry.path().join(DATA))
        {
            stop(pid)?;
            stopped += 1;
        }
    }
    Ok(stopped)
}

/// The postmaster that works in this data folder, if any.
fn running_in(data: &Path) -> Option<Pid> {
    let mut text = String::new();
    let mut file = File::open(data.join("postmaster.pid")).ok()?;
    file.read_to_string(&mut text).ok()?;
    // The first line is the process; negative for a standalone backend.
    let pid = Pid::from_raw(
        text.lines()
            .next()?
            .trim()
            .parse()
            .ok()
            .filter(|&id| id > 1)?,
    )?;
    test_kill_process(pid).ok()?;
    // The id may be another process's by now. A postmaster's working directory is its data.
    let cwd = PathBuf::from(format!("/proc/{}/cwd", pid.as_raw_pid()));
    if Path::new("/proc/self/cwd").exists()
        && cwd.canonicalize().ok()? != data.canonicalize().ok()?
    {
        return None;
    }
    Some(pid)
}

/// Fast shutdown of a process that is not our child, then immediate.
fn stop(pid: Pid) -> Result<()> {
    for signal in [Signal::INT, Signal::QUIT] {
        kill_process(pid, signal).ok();
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(15) {
            if test_kill_process(pid).is_err() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    bail!(
        "a server of an earlier run (process {}) does not stop",
        pid.as_raw_pid()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn the_lock_is_exclusive_and_names_its_holder() {
        let dir = tempfile::tempdir().unwrap();
        let lock = Lock::try_take(dir.path(), "test").unwrap();
        assert!(lock.is_some());
        assert!(Lock::try_take(dir.path(), "test").unwrap().is_none());
        assert!(Lock::try_take(dir.path(), "demo").unwrap().is_some());
        assert_eq!(Lock::holder(dir.path(), "test"), Some(std::process::id()));
        drop(lock);
        assert!(Lock::try_take(dir.path(), "test").unwrap().is_some());
    }

    #[test]
    fn stops_what_runs_in_the_folder_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("server-test-a/data");
        fs::create_dir_all(&data).unwrap();
        let mut inside = Command::new("sleep");
        let mut inside = inside.arg("600").current_dir(&data).spawn().unwrap();
        let mut outside = Command::new("sleep").arg("600").spawn().unwrap();

        fs::write(data.join("postmaster.pid"), format!("{}\n", outside.id())).unwrap();
        assert_eq!(stop_leftovers(dir.path(), "test").unwrap(), 0);
        fs::write(data.join("postmaster.pid"), format!("{}\n", inside.id())).unwrap();
        assert_eq!(stop_leftovers(dir.path(), "demo").unwrap(), 0);
        assert!(outside.try_wait().unwrap().is_none());

        // `stop` waits until the process is gone, so the test has to reap it.
        let reaper = std::thread::spawn(move || inside.wait().unwrap());
        assert_eq!(stop_leftovers(dir.path(), "test").unwrap(), 1);
        assert!(!reaper.join().unwrap().success());
        outside.kill().unwrap();
        outside.wait().unwrap();
    }
}
