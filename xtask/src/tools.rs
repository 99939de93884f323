//! Provides programs from crates.io that commands need (mdbook, cargo-deb and so on), in pinned
//! versions.
use crate::cargo::{cargo, target_dir};
use crate::program::output;
use crate::ui;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Program from crates.io in a pinned version.
pub struct Tool {
    /// Name of the package on crates.io, and of its program.
    pub name: &'static str,
    /// Version of the package.
    pub version: &'static str,
    /// Additional options for `cargo install`, such as features.
    pub options: &'static [&'static str],
}

impl Tool {
    /// Returns the path of the program. It is the program on PATH if that has the pinned version.
    /// Otherwise it is a program below `target/tools`, which the first call installs.
    ///
    /// # Errors
    /// If cargo cannot install the program.
    pub fn provide(&self) -> Result<PathBuf> {
        let Self { name, version, .. } = self;
        let root = target_dir()?
            .join("tools")
            .join(format!("{name}-{version}"));
        let own = root.join("bin").join(name);
        for program in [PathBuf::from(name), own.clone()] {
            if self.has_version(&program) {
                return Ok(program);
            }
        }
        ui::heading(format!("Installing {name} {version} (takes some minutes)"));
        let status = cargo()
            .args(["install", name, "--version", version, "--locked"])
            .args(self.options)
            .arg("--root")
            .arg(&root)
            // The tool is built in its own folder, because the workspace's builds compile some of
            // the same packages with other settings.
            .arg("--target-dir")
            .arg(root.join("build"))
            .status()
            .context("cannot run cargo")?;
        ensure!(status.success(), "cargo install {name} failed ({status})");
        std::fs::remove_dir_all(root.join("build")).context("cannot remove the tool's build")?;
        Ok(own)
    }

    /// Returns whether the program at this path runs and has the pinned version. Tries `--version`
    /// with and without the name of the subcommand, because some subcommands of cargo need it.
    fn has_version(&self, program: &Path) -> bool {
        let subcommand = self.name.strip_prefix("cargo-");
        let calls = [None, subcommand];
        calls.into_iter().any(|subcommand| {
            let mut command = Command::new(program);
            let found = output(command.args(subcommand).arg("--version"));
            found.is_ok_and(|found| found.ends_with(self.version))
        })
    }
}
