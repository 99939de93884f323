//! `cargo xtask generate`: writes the files, and the parts of documents, that are made from other
//! files of the workspace.
mod address;
mod messages;
mod plots;
mod reference;
mod script;

use crate::cargo::workspace;
use crate::ui;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;
use std::process::ExitCode;

/// Writes the generated files that are outdated: the SQL script, the list of messages, the plots of
/// benchmarks, and generated parts of the SQL reference and of files with the project's address.
///
/// # Errors
/// If a source cannot be read or is invalid, or a file cannot be written.
pub fn command() -> Result<ExitCode> {
    let root = workspace();
    let write = |(path, text): (String, String)| -> Result<()> {
        let file = root.join(&path);
        if fs::read_to_string(&file).is_ok_and(|found| found == text) {
            return Ok(());
        }
        fs::write(&file, text).with_context(|| format!("cannot write {path}"))?;
        ui::note(format!("wrote {path}"));
        Ok(())
    };
    // The reference is made from the SQL script, so the script is written first.
    write(script::file(root)?)?;
    write(messages::file(root)?)?;
    reference::files(root)?.into_iter().try_for_each(write)?;
    plots::files(root)?.into_iter().try_for_each(write)?;
    address::files(root)?.into_iter().try_for_each(write)?;
    Ok(ExitCode::SUCCESS)
}

/// Checks that all generated files of the workspace `root` are up to date.
///
/// # Errors
/// If a file is outdated, or a source is invalid.
pub fn ensure_current(root: &Path) -> Result<()> {
    ensure_script(root)?;
    ensure_same(root, &messages::file(root)?)?;
    let parts = [
        reference::files(root)?,
        plots::files(root)?,
        address::files(root)?,
    ];
    (parts.iter().flatten()).try_for_each(|file| ensure_same(root, file))
}

/// Checks that the generated SQL script of the extension is up to date.
///
/// # Errors
/// If the script is outdated, or a section is invalid.
pub fn ensure_script(root: &Path) -> Result<()> {
    ensure_same(root, &script::file(root)?)
}

/// Fails unless the file at `path` has the content `text`.
fn ensure_same(root: &Path, (path, text): &(String, String)) -> Result<()> {
    let found = fs::read_to_string(root.join(path)).unwrap_or_default();
    ensure!(
        found == *text,
        "{path} is outdated: run cargo xtask generate"
    );
    Ok(())
}
