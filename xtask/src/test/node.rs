//! Provides Node.js packages and a browser for the tests over a connection that need them.
use crate::cargo::{target_dir, workspace};
use crate::program::run;
use crate::ui;
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::process::Command;

/// Names of the files that pin the versions of Node.js packages.
const PINS: [&str; 2] = ["package.json", "package-lock.json"];
/// Words in the names of tests that need Node.js packages. A test whose name contains one of them
/// may need the packages.
const CLIENTS: &[&str] = &["clients", "drivers", "node", "drizzle", "javascript"];
/// Words in the names of tests that need a browser.
const BROWSER: &[&str] = &["clients", "report", "browser"];
/// Names under which Chromium may be installed.
const CHROMIUM: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// Returns the folder with the Node.js packages that `tests/drivers/node` pins. The first call
/// creates it in the target folder. Returns `None` if the tests that `filters` select do not need
/// the packages. If the packages cannot be installed, prints a message and returns `None`.
pub fn with_packages(filters: &[String]) -> Option<PathBuf> {
    if !are_selected(CLIENTS, filters) {
        return None;
    }
    let what = "node-postgres and the examples in JavaScript of docs/clients.md are not tested";
    or_report(what, packages("node", "node-drivers"))
}

/// Returns a browser, and the folder with the script of `tests/drivers/browser` and its Node.js
/// packages. Returns `None` if the tests that `filters` select do not need a browser. If the
/// browser or the packages are missing, prints a message and returns `None`.
pub fn with_browser(filters: &[String]) -> Option<Browser> {
    if !are_selected(BROWSER, filters) {
        return None;
    }
    or_report("The report is not looked at in a browser", browser())
}

/// Browser in which tests look at the report.
pub struct Browser {
    /// Path of Chromium.
    pub chromium: PathBuf,
    /// Folder with the Node.js packages and the script that control the browser.
    pub packages: PathBuf,
}

fn browser() -> Result<Browser> {
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    let named = std::env::var_os("NEARDUP_TEST_CHROMIUM").map(PathBuf::from);
    let found = || {
        std::env::split_paths(&on_path)
            .flat_map(|folder| CHROMIUM.map(|name| folder.join(name)))
            .find(|program| program.is_file())
    };
    let chromium = named.or_else(found);
    let chromium = chromium.context("no Chromium is installed (Debian's package: chromium)")?;
    let packages = packages("browser", "node-browser")?;
    // The script is copied each time, because it may have changed. It must be in the folder of its
    // packages.
    let script = "report.mjs";
    let from = workspace().join("tests/drivers/browser").join(script);
    std::fs::copy(from, packages.join(script))?;
    Ok(Browser { chromium, packages })
}

/// Returns whether a filter may select a test whose name contains one of the words `tests`: the
/// filter is part of a word, or contains one. Without filters, all tests are selected.
fn are_selected(tests: &[&str], filters: &[String]) -> bool {
    let selects = |filter: &String| {
        (tests.iter()).any(|test| test.contains(filter.as_str()) || filter.contains(test))
    };
    filters.is_empty() || filters.iter().any(selects)
}

/// Returns the value of `found`. If `found` is an error, returns `None` and prints `what`, a
/// sentence that says what is not tested, followed by the error.
fn or_report<T>(what: &str, found: Result<T>) -> Option<T> {
    found
        .inspect_err(|error| ui::heading(format!("{what}: {error:#}")))
        .ok()
}

/// Returns the path of the folder `name` in the target folder. If necessary, first installs Node.js
/// packages there: those that the files in the folder `pinned_by` of `tests/drivers` list, in the
/// versions that they pin.
fn packages(pinned_by: &str, name: &str) -> Result<PathBuf> {
    let folder = target_dir()?.join(name);
    let from = workspace().join("tests/drivers").join(pinned_by);
    let done = folder.join("done");
    let wanted = std::fs::read(from.join(PINS[1]))?;
    if std::fs::read(&done).ok().as_ref() != Some(&wanted) {
        ui::step("Installing packages for Node.js", || {
            std::fs::create_dir_all(&folder)?;
            for name in PINS {
                std::fs::copy(from.join(name), folder.join(name))?;
            }
            // Drizzle lists all drivers that it supports as optional peers, which are not needed.
            let omitted = ["--omit=dev", "--omit=optional", "--omit=peer"];
            run(Command::new("npm")
                .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
                .args(omitted)
                .current_dir(&folder))
        })?;
        // This file is written last, because it marks the folder as complete.
        std::fs::write(&done, &wanted)?;
    }
    Ok(folder)
}
