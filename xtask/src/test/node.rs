//! Packages for Node.js and a browser, for modules of `tests/clients`.
use crate::cargo::{target_dir, workspace};
use crate::program::run;
use crate::ui;
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::process::Command;

/// Files that pin the packages.
const PINS: [&str; 2] = ["package.json", "package-lock.json"];
/// Parts of the names of tests that need the packages of clients.
const CLIENTS: &[&str] = &["clients", "drivers", "node", "drizzle", "javascript"];
/// Parts of the names of tests that need a browser.
const BROWSER: &[&str] = &["clients", "report", "browser"];
/// Names that Chromium has.
const CHROMIUM: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// The folder with the packages that `tests/drivers/node` pins, made in the target folder at the
/// first call. `None` if no test that `filters` select needs it, or if it cannot be made, which is
/// said.
pub fn with_packages(filters: &[String]) -> Option<PathBuf> {
    if !are_selected(CLIENTS, filters) {
        return None;
    }
    let what = "node-postgres and the examples in JavaScript of docs/clients.md are not tested";
    said(what, packages("node", "node-drivers"))
}

/// A browser, and the folder with the packages and the script of `tests/drivers/browser`. `None`
/// as for [`with_packages`].
pub fn with_browser(filters: &[String]) -> Option<Browser> {
    if !are_selected(BROWSER, filters) {
        return None;
    }
    said("The report is not looked at in a browser", browser())
}

/// Browser for tests.
pub struct Browser {
    /// The program.
    pub chromium: PathBuf,
    /// The folder with packages for Node.js that use it.
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
    // It may have changed, and finds its packages from its own folder on.
    let script = "report.mjs";
    let from = workspace().join("tests/drivers/browser").join(script);
    std::fs::copy(from, packages.join(script))?;
    Ok(Browser { chromium, packages })
}

/// Returns whether filters (none: everything) select one of these tests.
fn are_selected(tests: &[&str], filters: &[String]) -> bool {
    let selects = |filter: &String| {
        (tests.iter()).any(|test| test.contains(filter.as_str()) || filter.contains(test))
    };
    filters.is_empty() || filters.iter().any(selects)
}

/// Returns what was found; if nothing was, the reason is printed.
fn said<T>(what: &str, found: Result<T>) -> Option<T> {
    found
        .inspect_err(|error| ui::heading(format!("{what}: {error:#}")))
        .ok()
}

/// The packages that a folder of `tests/drivers` pins, in a folder of the target folder.
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
