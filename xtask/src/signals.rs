//! Stops the private servers before Ctrl-C or a similar signal ends the program.
use anyhow::{Context, Result};
use neardup_pgserver::{interrupted, stop_all, stop_leftovers};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

static INTERACTIVE: AtomicBool = AtomicBool::new(false);
static SWEEP: Mutex<Vec<(PathBuf, String)>> = Mutex::new(Vec::new());

/// Starts the thread that handles signals.
pub fn install() -> Result<()> {
    let mut signals =
        Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot watch for signals")?;
    std::thread::spawn(move || {
        for signal in signals.forever() {
            // While psql uses the terminal, Ctrl-C cancels its query.
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

/// Also stops servers in `dir` with this name prefix, which child processes have started.
pub fn sweep_on_signal(dir: &Path, prefix: &str) {
    SWEEP
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push((dir.to_owned(), prefix.to_owned()));
}

/// Lets the child that `run` waits for handle Ctrl-C.
pub fn while_interactive<T>(run: impl FnOnce() -> T) -> T {
    INTERACTIVE.store(true, Ordering::SeqCst);
    let result = run();
    INTERACTIVE.store(false, Ordering::SeqCst);
    result
}

/// After a signal, waits until the thread ends the program.
pub fn wait_if_interrupted() {
    while interrupted() {
        std::thread::sleep(Duration::from_secs(1));
    }
}
