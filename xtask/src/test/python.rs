//! Provides the Python packages that tests need: drivers and ORMs from PyPI, and neardup's own
//! wheel.
use crate::cargo::{target_dir, workspace};
use crate::program::{make_venv, run};
use crate::{package, ui};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names of the test modules that need the Python packages.
const MODULES: [&str; 6] = [
    "drivers",
    "applications",
    "wheel",
    "clients",
    "engines",
    "distributed::times",
];

/// Returns the Python interpreter of a virtual environment, which has the packages that
/// `tests/drivers/requirements.txt` pins and the current neardup wheel. The first call creates the
/// environment in the target folder. Returns `None` if the tests that `filters` select do not need
/// it. If the pinned packages cannot be installed, prints a message and returns `None`.
///
/// # Errors
///
/// If the wheel cannot be built or installed.
pub fn with_drivers(filters: &[String]) -> Result<Option<PathBuf>> {
    let is_selected = |filter: &String| {
        MODULES
            .iter()
            .any(|module| module.contains(filter.as_str()))
            || names_a_test(filter)
    };
    if !filters.is_empty() && !filters.iter().any(is_selected) {
        return Ok(None);
    }
    match environment() {
        Ok(folder) => wheel(&folder).map(Some),
        Err(error) => {
            let what =
                "The package for Python, drivers, docs/applications.md and DuckDB are not tested";
            ui::heading(format!("{what}: {error:#}"));
            Ok(None)
        }
    }
}

/// Returns whether a filter may be part of the name of a single test that needs the Python
/// packages.
fn names_a_test(filter: &str) -> bool {
    let parts = [
        "drivers::",
        "psycopg",
        "asyncpg",
        "pg8000",
        "tests",
        "applications::",
        "wheel::",
        "clients::",
        "engines::",
        "duckdb",
        "spark",
        "sqlalchemy",
        "django",
        "retries",
    ];
    parts.iter().any(|part| filter.contains(part))
}

/// Returns the folder of the virtual environment with the pinned packages. The first call creates
/// it.
fn environment() -> Result<PathBuf> {
    let folder = target_dir()?.join("python-drivers");
    let pins = workspace().join("tests/drivers/requirements.txt");
    let done = folder.join("requirements.txt");
    let wanted = std::fs::read(&pins)?;
    if std::fs::read(&done).ok() != Some(wanted) || !interpreter(&folder).exists() {
        ui::step("Installing packages for Python", || {
            make_venv(&folder, &["--requirement".as_ref(), pins.as_ref()])
        })?;
        // This file is written last, because it marks the environment as complete.
        std::fs::copy(&pins, &done)?;
    }
    Ok(folder)
}

fn interpreter(folder: &Path) -> PathBuf {
    folder.join("bin/python")
}

/// Builds neardup's wheel by maturin, and installs it into the virtual environment in `folder`
/// unless the same wheel is already installed there. Returns the Python interpreter.
fn wheel(folder: &Path) -> Result<PathBuf> {
    let python = interpreter(folder);
    let (made, installed) = (folder.join("wheel"), folder.join("installed.whl"));
    let wheel = ui::step("Building the package for Python", || {
        package::build_wheel(folder, &made, &[], &[])
    })?;
    let bytes = std::fs::read(&wheel)?;
    if std::fs::read(&installed).ok().as_ref() != Some(&bytes) {
        let pip = ["-m", "pip", "install", "--quiet", "--no-index", "--no-deps"];
        run(Command::new(&python)
            .args(pip)
            .arg("--force-reinstall")
            .arg(&wheel))
        .context("cannot install the wheel")?;
        std::fs::write(&installed, &bytes)?;
    }
    Ok(python)
}
