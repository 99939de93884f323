//! Builds the extension for a PostgreSQL version, and lists the files that an installation needs.
use crate::cargo::{cargo, target_dir, workspace};
use crate::{generate, ui};
use anyhow::{Context, Result, ensure};
use neardup_pgserver::{Artifacts, PgConfig};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

/// Name of the extension in CREATE EXTENSION.
pub const NAME: &str = "neardup";

/// Builds the extension for the PostgreSQL installation `pg`, in release mode. Returns the files to
/// install: library, control file and SQL scripts.
pub fn build(pg: &PgConfig) -> Result<Artifacts> {
    build_for(pg, &target_dir()?, None, &[] as &[(&str, OsString)])
}

/// Builds the extension for `pg` like [`build`], but in the target folder `target`, and with
/// `variables` added to cargo's environment.
pub fn build_in(pg: &PgConfig, target: &Path, variables: &[(&str, OsString)]) -> Result<Artifacts> {
    build_for(pg, target, None, variables)
}

/// Builds the extension for `pg` like [`build_in`], but for another processor if `machine` is
/// given. `machine` is the name of the processor's target in Rust, such as
/// `aarch64-unknown-linux-gnu`. `variables` must then have CARGO_BUILD_TARGET with the same name.
pub fn build_for(
    pg: &PgConfig,
    target: &Path,
    machine: Option<&str>,
    variables: &[(impl AsRef<OsStr>, OsString)],
) -> Result<Artifacts> {
    let feature = pg.feature()?;
    let text = format!(
        "Building the extension for {} (the first time takes some minutes)",
        pg.version
    );
    ui::step(text, || {
        let status = cargo()
            .args(["build", "--release", "--quiet", "--package", "neardup"])
            .args(["--no-default-features", "--features", &feature])
            .arg("--target-dir")
            .arg(target)
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .env("PGRX_PG_CONFIG_PATH", &pg.program)
            .status()
            .context("cannot run cargo")?;
        ensure!(
            status.success(),
            "the extension could not be built; cargo says why above"
        );
        Ok(())
    })?;
    generate::ensure_script(workspace())?;
    artifacts(&target.join(machine.unwrap_or_default()), workspace())
}

/// Finds the files to install: the library that was built below `target`, and the control file and
/// SQL scripts in the workspace.
fn artifacts(target: &Path, workspace: &Path) -> Result<Artifacts> {
    let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let library = target.join(format!("release/{prefix}{NAME}{suffix}"));
    ensure!(library.is_file(), "there is no {}", library.display());
    let control = workspace.join(format!("{NAME}.control"));
    let text = fs::read_to_string(&control)
        .with_context(|| format!("cannot read {}", control.display()))?;
    let version = default_version(&text)
        .with_context(|| format!("{} states no default_version", control.display()))?;

    let sql = workspace.join("sql");
    let needed = sql.join(format!("{NAME}--{version}.sql"));
    ensure!(needed.is_file(), "there is no {}", needed.display());
    let mut share = vec![control];
    for entry in fs::read_dir(&sql)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(&format!("{NAME}--")) && name.ends_with(".sql") {
            share.push(path);
        }
    }
    share.sort();
    Ok(Artifacts {
        name: NAME.to_owned(),
        library,
        share,
    })
}

/// Returns the value of `default_version` in the text of a control file; `None` if it is missing.
fn default_version(control: &str) -> Option<&str> {
    control.lines().find_map(|line| {
        let (name, value) = line.split_once('=')?;
        (name.trim() == "default_version").then(|| value.trim().trim_matches('\''))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_version_of_a_control_file() {
        let text = "# default_version = '9'\ncomment = 'x = y'\ndefault_version = '0.1.0'\n";
        assert_eq!(default_version(text), Some("0.1.0"));
        assert_eq!(default_version("comment = 'x'"), None);
    }
}
