//! Simulates crashes: sends SIGKILL to a whole server or to one of its processes.
use crate::process::Process;
use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::time::{Duration, Instant};

/// Maximum time until a killed process has ended; after that, an error is returned. The time is
/// long, because the machine may be very busy.
const KILL_TIMEOUT: Duration = Duration::from_secs(120);

/// Kills a postmaster and all its child processes by SIGKILL, like a power failure, and waits until
/// they have ended. Suspends the postmaster first, so that it cannot start another child.
pub(crate) fn kill_9(process: &Process) -> Result<()> {
    process.signal(Signal::STOP)?;
    let children = children_of(process.pid())?;
    for pid in &children {
        // Ignore the error, because the child may have ended already.
        kill_process(*pid, Signal::KILL).ok();
    }
    process.signal(Signal::KILL)?;
    if process.wait(KILL_TIMEOUT)?.is_none() {
        bail!("the server survives SIGKILL");
    }
    // Wait for the children as well: the server cannot be restarted while one of them uses the
    // shared memory.
    let start = Instant::now();
    while children.iter().any(|pid| test_kill_process(*pid).is_ok()) {
        if start.elapsed() > KILL_TIMEOUT {
            bail!("a backend survives SIGKILL");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Kills the child process `pid` of a postmaster by SIGKILL, and waits until the postmaster has
/// reaped it. Returns false if the postmaster has no such child.
pub(crate) fn kill_9_child(process: &Process, pid: i32) -> Result<bool> {
    let children = children_of(process.pid())?;
    let Some(child) = children.into_iter().find(|child| child.as_raw_pid() == pid) else {
        return Ok(false);
    };
    kill_process(child, Signal::KILL).ok();
    // A dead process keeps its id until its parent reaps it. The postmaster decides to restart
    // directly after that, before it accepts another client.
    let start = Instant::now();
    while test_kill_process(child).is_ok() {
        if start.elapsed() > KILL_TIMEOUT {
            bail!("the server does not notice that process {pid} was killed");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(true)
}

/// Lists the child processes of `parent`. Reads /proc, because a minimal system may lack `ps`.
fn children_of(parent: Pid) -> Result<Vec<Pid>> {
    let mut children = Vec::new();
    for entry in std::fs::read_dir("/proc").context("cannot list processes")? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // Ignore the error, because the process may have ended since the listing.
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        if parent_in(&stat) == Some(parent.as_raw_pid()) {
            children.extend(Pid::from_raw(pid));
        }
    }
    Ok(children)
}

/// Parses the parent's process id from the text of `/proc/PID/stat` (proc(5)). Returns `None` if
/// the text has no such number. The number is the second field after the program's name. The name
/// is in parentheses and may contain any characters, so the last `)` ends it.
fn parent_in(stat: &str) -> Option<i32> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_parent_of_processes_with_odd_names() {
        assert_eq!(parent_in("11 (postgres) S 10 11 11 0"), Some(10));
        assert_eq!(parent_in("12 (a) b (c) S 110 12"), Some(110));
        assert_eq!(parent_in(""), None);
    }

    #[test]
    fn finds_its_own_child() {
        let mut child = std::process::Command::new("sleep")
            .arg("600")
            .spawn()
            .unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let found = children_of(rustix::process::getpid()).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.iter().any(|child| child.as_raw_pid() == pid));
    }
}
