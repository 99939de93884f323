//! Packages for Python, which `tests/drivers.rs` and `tests/applications.rs` run.
use crate::cargo::{target_dir, workspace};
use crate::program::run;
use crate::ui;
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The modules of the tests that need the packages.
const MODULES: [&str; 2] = ["drivers", "applications"];

/// The interpreter of a virtual environment with the packages that `tests/drivers/requirements.txt`
/// pins, made in the target folder at the first call. `None` if no test that `filters` select needs
/// it, or if it cannot be made, which is said.
pub fn with_drivers(filters: &[String]) -> Option<PathBuf> {
    let is_selected = |filter: &String| {
        MODULES
            .iter()
            .any(|module| module.contains(filter.as_str()))
            || names_a_test(filter)
    };
    if !filters.is_empty() && !filters.iter().any(is_selected) {
        return None;
    }
    match environment() {
        Ok(python) => Some(python),
        Err(error) => {
            let what = "Drivers for Python and docs/applications.md are not tested";
            ui::heading(format!("{what}: {error:#}"));
            None
        }
    }
}

/// Returns whether a filter selects a single one of the tests.
fn names_a_test(filter: &str) -> bool {
    let parts = [
        "drivers::",
        "psycopg",
        "asyncpg",
        "pg8000",
        "tests",
        "applications::",
        "sqlalchemy",
        "django",
        "retries",
    ];
    parts.iter().any(|part| filter.contains(part))
}

fn environment() -> Result<PathBuf> {
    let folder = target_dir()?.join("python-drivers");
    let pins = workspace().join("tests/drivers/requirements.txt");
    let (python, done) = (folder.join("bin/python"), folder.join("requirements.txt"));
    let wanted = std::fs::read(&pins)?;
    if std::fs::read(&done).ok() != Some(wanted) || !python.exists() {
        ui::step("Installing packages for Python", || install(&folder, &pins))?;
        // Last: it says that all is there.
        std::fs::copy(&pins, &done)?;
    }
    Ok(python)
}

fn install(folder: &Path, pins: &Path) -> Result<()> {
    let venv = ["-m", "venv", "--clear"].map(Path::new);
    run(Command::new("python3").args(venv).arg(folder))?;
    let pip = ["-m", "pip", "install", "--quiet", "--only-binary", ":all:"];
    run(Command::new(folder.join("bin/python"))
        .args(pip)
        .args([Path::new("--requirement"), pins]))
}
