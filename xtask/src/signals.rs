//! Handles Ctrl-C and similar signals in all commands: stops the private servers before a signal
//! ends the program.
use anyhow::{Context, Result};
use neardup_pgserver::{interrupted, stop_all, stop_leftovers};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// True while a child process uses the terminal and handles Ctrl-C itself.
static INTERACTIVE: AtomicBool = AtomicBool::new(false);
/// Servers that child processes may have started and that a signal must stop. Each element is for a
/// group of servers: the folder that contains their data folders, and a prefix of the servers'
/// names.
static SWEEP: Mutex<Vec<(PathBuf, String)>> = Mutex::new(Vec::new());

/// Starts the thread that handles signals. Call it once, at the start of the program.
pub fn install() -> Result<()> {
    let mut signals =
        Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot watch for signals")?;
    std::thread::spawn(move || {
        for signal in signals.forever() {
            // While a child process such as psql uses the terminal, Ctrl-C is for the child.
            if signal == SIGINT && INTERACTIVE.load(Ordering::SeqCst) {
                continue;
            }
            stop_all();
            let sweep = SWEEP.lock().unwrap_or_else(PoisonError::into_inner);
            for (dir, prefix) in sweep.iter() {
                if let Err(error) = stop_leftovers(dir, prefix) {
                    eprintln!("{error:#}");
                }
            }
            std::process::exit(128 + signal);
        }
    });
    Ok(())
}

/// Arranges that a signal also stops the servers in the folder `dir` whose names begin with
/// `prefix`. This program may not know these servers, because its child processes may have started
/// them.
pub fn sweep_on_signal(dir: &Path, prefix: &str) {
    SWEEP
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push((dir.to_owned(), prefix.to_owned()));
}

/// Calls `run`, which waits for a child process on the terminal. Meanwhile this program ignores
/// Ctrl-C, because the child handles it.
pub fn while_interactive<T>(run: impl FnOnce() -> T) -> T {
    INTERACTIVE.store(true, Ordering::SeqCst);
    let result = run();
    INTERACTIVE.store(false, Ordering::SeqCst);
    result
}

/// Waits until the program ends if a signal has arrived; otherwise returns at once. The thread that
/// handles signals ends the program. Call this before reporting an error that the signal may have
/// caused.
pub fn wait_if_interrupted() {
    while interrupted() {
        std::thread::sleep(Duration::from_secs(1));
    }
}
