//! Stops private servers that a killed run of this program has left behind. A lock file marks the
//! servers that are in use.
use crate::server::{DATA, HOME_PREFIX};
use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::fs::{self, File, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Lock on all servers of one purpose (test, demo, ...). This process holds the lock until the
/// value is dropped. However the process ends, the operating system then releases the lock. So if a
/// server is running and its purpose is not locked, an earlier run has left the server behind.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock for servers of `purpose`. The lock's file is in `dir`. Returns `None` if
    /// another process holds the lock; see [`Lock::holder`].
    ///
    /// # Errors
    /// When the lock file cannot be created or locked.
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

    /// Returns the id of the process that holds or last held the lock for `purpose` in `dir`.
    /// `None` if the lock file has no id.
    pub fn holder(dir: &Path, purpose: &str) -> Option<u32> {
        let text = fs::read_to_string(Self::path(dir, purpose)).ok()?;
        text.trim().parse().ok()
    }

    fn path(dir: &Path, purpose: &str) -> PathBuf {
        dir.join(format!("lock-{purpose}"))
    }
}

/// Stops the servers in `dir` whose names begin with `prefix`, and returns the number of stopped
/// servers. `prefix` is the purpose of the servers, such as `test`. The caller must hold the
/// [`Lock`] for this purpose: without it, the servers may belong to another running command.
///
/// # Errors
/// When `dir` cannot be read, or a server does not stop within 30 seconds.
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

/// Returns the process id of the postmaster that runs in this data folder; `None` if there is none.
fn running_in(data: &Path) -> Option<Pid> {
    let mut text = String::new();
    let mut file = File::open(data.join("postmaster.pid")).ok()?;
    file.read_to_string(&mut text).ok()?;
    // The first line is the process id. It is negative for a standalone backend, which is not a
    // server.
    let pid = Pid::from_raw(
        text.lines()
            .next()?
            .trim()
            .parse()
            .ok()
            .filter(|&id| id > 1)?,
    )?;
    test_kill_process(pid).ok()?;
    // Another process may have this id by now. The working directory of a postmaster is its data
    // folder.
    let cwd = PathBuf::from(format!("/proc/{}/cwd", pid.as_raw_pid()));
    if Path::new("/proc/self/cwd").exists()
        && cwd.canonicalize().ok()? != data.canonicalize().ok()?
    {
        return None;
    }
    Some(pid)
}

/// Stops a server that is not a child of this process by a fast shutdown. If it still runs after 15
/// seconds, stops it by an immediate shutdown.
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
