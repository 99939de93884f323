//! Makes the list of the components in the extension, in the format CycloneDX.
use super::release::Release;
use super::stage;
use crate::program;
use crate::tools::Tool;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const CYCLONEDX: Tool = Tool {
    name: "cargo-cyclonedx",
    version: "0.5.9",
    options: &[],
};

/// Writes the list of components into the folder `output`, and returns its path.
/// [`super::source::make`] must have packed the sources into the same folder before. `work` is a
/// folder for temporary files.
///
/// # Errors
/// If cargo-cyclonedx cannot be installed, or there are no packed sources.
pub fn make(release: &Release, work: &Path, output: &Path) -> Result<PathBuf> {
    let program = CYCLONEDX.provide()?;
    let name = format!("neardup-{}", release.version);
    // The tool writes a list beside each Cargo.toml of the workspace, so it works on a copy.
    let copy = work.join("sbom");
    stage::unzip(&output.join(format!("{name}.zip")), &copy)?;
    let sources = copy.join(&name);
    let mut command = Command::new(&program);
    command
        .current_dir(&sources)
        .args(["cyclonedx", "--format", "json", "--override-filename"])
        .arg(&name)
        .env("SOURCE_DATE_EPOCH", release.epoch.to_string());
    program::run(&mut command).context("cargo-cyclonedx failed")?;
    let list = sources.join(format!("{name}.json"));
    let parsed: Value = serde_json::from_slice(&fs::read(&list)?)?;
    let components = parsed["components"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    ensure!(
        (components.iter()).any(|component| component["name"] == "xxhash-rust"),
        "the list lacks a crate of the extension"
    );
    let to = output.join(format!("{name}-{}.cdx.json", std::env::consts::ARCH));
    stage::copy(&list, &to, 0o644)?;
    Ok(to)
}
