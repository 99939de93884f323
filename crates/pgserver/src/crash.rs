//! kill -9 of a whole server.
use crate::process::Process;
use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(20);

/// Kills a postmaster and all its backends at once, as a power cut would, and waits until they are
/// gone. The postmaster is halted first, so that it starts no further process meanwhile.
pub(crate) fn kill_9(process: &Process) -> Result<()> {
    process.signal(Signal::STOP)?;
    let children = children_of(process.pid())?;
    for pid in &children {
        // One that has ended by itself is as dead as wanted.
        kill_process(*pid, Signal::KILL).ok();
    }
    process.signal(Signal::KILL)?;
    if process.wait(LIMIT)?.is_none() {
        bail!("the server survives SIGKILL");
    }
    // Until the last backend is gone the shared memory is in use, and the server does not start.
    let start = Instant::now();
    while children.iter().any(|pid| test_kill_process(*pid).is_ok()) {
        if start.elapsed() > LIMIT {
            bail!("a backend survives SIGKILL");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// The processes whose parent is `parent`.
fn children_of(parent: Pid) -> Result<Vec<Pid>> {
    let output = std::process::Command::new("ps")
        .args(["-A", "-o", "ppid=", "-o", "pid="])
        .output()
        .context("cannot run ps to list the server's processes")?;
    if !output.status.success() {
        bail!("ps failed ({})", output.status);
    }
    Ok(parse_children(
        &String::from_utf8_lossy(&output.stdout),
        parent.as_raw_pid(),
    ))
}

fn parse_children(listing: &str, parent: i32) -> Vec<Pid> {
    listing
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let ppid: i32 = words.next()?.parse().ok()?;
            let pid: i32 = words.next()?.parse().ok()?;
            (ppid == parent).then(|| Pid::from_raw(pid)).flatten()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_children_only() {
        let listing = "    0     1\n   10    11\n  110    12\n   10    13\n    1    10\n";
        let children: Vec<i32> = parse_children(listing, 10)
            .into_iter()
            .map(Pid::as_raw_pid)
            .collect();
        assert_eq!(children, [11, 13]);
    }
}
