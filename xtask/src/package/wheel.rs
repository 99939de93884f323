//! The wheel of the package for Python, by maturin, and the licences of the crates in it.
use super::copyright::{self, Form};
use super::release::Release;
use super::{build, linked, stage};
use crate::cargo::workspace;
use crate::program::run;
use crate::ui;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use walkdir::WalkDir;

/// File with the licences, from the workspace's root. It is committed, since every tool that builds
/// the package takes it along by `license-files` in `python/pyproject.toml`.
const COPYRIGHT: &str = "python/COPYRIGHT";
const PROJECT: &str = "python/pyproject.toml";
/// The pins of packages for Python, that of maturin among them.
const PINS: &str = include_str!("../../../tests/drivers/requirements.txt");

/// Writes the file with the licences.
///
/// # Errors
/// If a crate's licence is not known, or the file cannot be written.
pub fn write_licences() -> Result<ExitCode> {
    stage::write(&workspace().join(COPYRIGHT), licences()?, 0o644)?;
    ui::note(format!("wrote {COPYRIGHT}"));
    Ok(ExitCode::SUCCESS)
}

fn licences() -> Result<String> {
    copyright::file(&linked::in_python_package()?, Form::Complete)
}

/// Checks that the file with the licences, and the package's description, state those of the crates
/// in `Cargo.lock`.
fn ensure_current() -> Result<()> {
    let found = fs::read_to_string(workspace().join(COPYRIGHT)).unwrap_or_default();
    ensure!(
        found == licences()?,
        "{COPYRIGHT} is not that of the crates in Cargo.lock: run cargo xtask licences"
    );
    let all = copyright::expression(&linked::in_python_package()?)?;
    let line = format!("license = \"{all}\"");
    let project = fs::read_to_string(workspace().join(PROJECT))?;
    let states = project.lines().any(|found| found == line);
    ensure!(states, "{PROJECT} does not have the line {line}");
    Ok(())
}

/// Makes the wheel and returns its path.
///
/// # Errors
/// If maturin cannot be had, the build fails, or the module names folders of this machine.
pub fn make(release: &Release, work: &Path, output: &Path) -> Result<PathBuf> {
    ensure_current()?;
    let environment = maturin(work)?;
    let target = work.join("python");
    let made = work.join("stage-python");
    stage::empty(&made)?;
    ui::heading("Building the package for Python (the first time takes some minutes)");
    let mut maturin = Command::new(environment.join("bin/maturin"));
    maturin
        .args(["build", "--release", "--locked", "--manifest-path"])
        .arg(workspace().join("python/Cargo.toml"))
        .arg("--interpreter")
        .arg(environment.join("bin/python"))
        .arg("--target-dir")
        .arg(&target)
        .arg("--out")
        .arg(&made)
        .envs(build::variables(None, release, &target)?);
    run(&mut maturin).context("maturin cannot make the wheel")?;

    let wheel = with_ending(&made, "whl")?;
    let tree = made.join("tree");
    let mut unzip = Command::new("python3");
    run(unzip.args(["-m", "zipfile", "-e"]).args([&wheel, &tree]))?;
    build::ensure_no_paths(&with_ending(&tree, "so")?)?;
    let to = output.join(wheel.file_name().unwrap_or_default());
    stage::copy(&wheel, &to, 0o644)?;
    Ok(to)
}

/// The only file below a folder whose name has this ending.
fn with_ending(folder: &Path, ending: &str) -> Result<PathBuf> {
    let mut found = Vec::new();
    for entry in WalkDir::new(folder) {
        let path = entry?.into_path();
        if path.extension().is_some_and(|it| it == ending) {
            found.push(path);
        }
    }
    match found.as_slice() {
        [only] => Ok(only.clone()),
        _ => anyhow::bail!("not one file .{ending} in {}: {found:?}", folder.display()),
    }
}

/// A virtual environment with the pinned maturin, made at the first call.
fn maturin(work: &Path) -> Result<PathBuf> {
    let pin = PINS.lines().find(|line| line.starts_with("maturin=="));
    let pin = pin.context("no version of maturin is pinned")?;
    let folder = work.join(pin.replace("==", "-"));
    if !folder.join("bin/maturin").is_file() {
        ui::step(format!("Installing {pin}"), || {
            run(Command::new("python3")
                .args(["-m", "venv", "--clear"])
                .arg(&folder))?;
            let install = ["-m", "pip", "install", "--quiet", "--only-binary", ":all:"];
            run(Command::new(folder.join("bin/python"))
                .args(install)
                .arg(pin))
        })
        .context(
            "the wheel needs python3 with venv and maturin from PyPI; \
             `--format deb,tarball,source,image` makes the others",
        )?;
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licences_are_those_of_the_crates() -> Result<()> {
        ensure_current()
    }
}
