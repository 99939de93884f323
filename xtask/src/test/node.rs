//! Packages for Node.js, which `tests/clients.rs` runs.
use crate::cargo::{target_dir, workspace};
use crate::program::run;
use crate::ui;
use anyhow::Result;
use std::path::PathBuf;
use std::process::Command;

/// Files that pin the packages.
const PINS: [&str; 2] = ["package.json", "package-lock.json"];
/// Parts of the names of tests that need them.
const TESTS: [&str; 4] = ["clients", "node", "drizzle", "javascript"];

/// The folder with the packages that `tests/drivers/node` pins, made in the target folder at the
/// first call. `None` if no test that `filters` select needs it, or if it cannot be made, which is
/// said.
pub fn with_packages(filters: &[String]) -> Option<PathBuf> {
    let is_selected = |filter: &String| {
        TESTS
            .iter()
            .any(|test| test.contains(filter.as_str()) || filter.contains(test))
    };
    if !filters.is_empty() && !filters.iter().any(is_selected) {
        return None;
    }
    match packages() {
        Ok(folder) => Some(folder),
        Err(error) => {
            let what = "The examples in JavaScript of docs/clients.md are not tested";
            ui::heading(format!("{what}: {error:#}"));
            None
        }
    }
}

fn packages() -> Result<PathBuf> {
    let folder = target_dir()?.join("node-drivers");
    let from = workspace().join("tests/drivers/node");
    let done = folder.join("done");
    let wanted = std::fs::read(from.join(PINS[1]))?;
    if std::fs::read(&done).ok().as_ref() != Some(&wanted) {
        ui::step("Installing packages for Node.js", || {
            std::fs::create_dir_all(&folder)?;
            for name in PINS {
                std::fs::copy(from.join(name), folder.join(name))?;
            }
            // Drizzle names all drivers that it knows as optional peers.
            let omitted = ["--omit=dev", "--omit=optional", "--omit=peer"];
            run(Command::new("npm")
                .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
                .args(omitted)
                .current_dir(&folder))
        })?;
        // Last: it says that all is there.
        std::fs::write(&done, &wanted)?;
    }
    Ok(folder)
}
