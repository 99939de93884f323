//! Makes the wheel and the source archive of the Python package with maturin, and the licence file
//! of its crates.
use super::licences::{Form, Licences};
use super::release::Release;
use super::{build, stage};
use crate::cargo::workspace;
use crate::program::{make_venv, run};
use crate::ui;
use anyhow::{Context, Result, ensure};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use walkdir::WalkDir;

/// Path of the Python package's licence file, from the workspace's root. The file is committed,
/// because every build tool includes it through `license-files` in `python/pyproject.toml`.
const COPYRIGHT: &str = "python/COPYRIGHT";
const PROJECT: &str = "python/pyproject.toml";
/// Name and version of the Python package with zig. zig has a linker and headers for glibc 2.17,
/// the oldest version that Rust supports.
const ZIG: &str = "ziglang==0.17.1";
/// Platform tag of the wheel: glibc 2.17 and later, which includes Red Hat Enterprise Linux 7 and
/// 8.
const PLATFORM: &str = "manylinux2014";
/// Pinned versions of Python packages, including maturin.
const PINS: &str = include_str!("../../../tests/drivers/requirements.txt");

/// Runs `cargo xtask licences`: writes the licence file of the Python package.
///
/// # Errors
/// If a crate's licence is not accepted, or the file cannot be written.
pub fn write_licences() -> Result<ExitCode> {
    let copyright = Licences::from_python_package()?.file(Form::Complete);
    stage::write(&workspace().join(COPYRIGHT), copyright, 0o644)?;
    ui::note(format!("wrote {COPYRIGHT}"));
    Ok(ExitCode::SUCCESS)
}

/// Checks that the licence file and the licence expression in the package's description match the
/// crates in `Cargo.lock`.
fn ensure_current() -> Result<()> {
    let licences = Licences::from_python_package()?;
    let found = fs::read_to_string(workspace().join(COPYRIGHT)).unwrap_or_default();
    ensure!(
        found == licences.file(Form::Complete),
        "{COPYRIGHT} is not that of the crates in Cargo.lock: run cargo xtask licences"
    );
    let line = format!("license = \"{}\"", licences.expression());
    let project = fs::read_to_string(workspace().join(PROJECT))?;
    let states = project.lines().any(|found| found == line);
    ensure!(states, "{PROJECT} does not have the line {line}");
    Ok(())
}

/// Builds the wheel and the source archive of the Python package into the folder `output`. `work`
/// is the folder for builds and tools. Returns the paths of both files.
///
/// # Errors
/// If maturin cannot be installed, the build fails, or the module contains paths of this machine.
pub fn make(release: &Release, work: &Path, output: &Path) -> Result<Vec<PathBuf>> {
    ensure_current()?;
    let environment = maturin(work)?;
    let target = work.join("python");
    let made = work.join("stage-python");
    ui::heading("Building the package for Python (the first time takes some minutes)");
    let mut variables = build::variables(None, release, &target)?;
    variables.push(("CARGO_TARGET_DIR", target.into()));
    let wheel = build_wheel(&environment, &made, &platform(), &variables)?;
    let tree = made.join("tree");
    stage::unzip(&wheel, &tree)?;
    build::ensure_no_paths(&with_ending(&tree, "so")?)?;
    let sources = build_sources(&environment, &work.join("stage-python-sources"), &variables)?;
    let mut copies = Vec::new();
    for file in [wheel, sources] {
        let to = output.join(file.file_name().unwrap_or_default());
        stage::copy(&file, &to, 0o644)?;
        copies.push(to);
    }
    Ok(copies)
}

/// Returns maturin's options for a wheel that also runs with old versions of glibc ([`PLATFORM`]).
/// On a system without glibc, returns no options. Then the wheel runs only on systems like the one
/// that builds it.
fn platform() -> Vec<String> {
    if !cfg!(all(target_os = "linux", target_env = "gnu")) {
        return Vec::new();
    }
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    ["--zig", "--target", &target, "--compatibility", PLATFORM]
        .map(str::to_owned)
        .to_vec()
}

/// Makes an archive of sources in the folder `made`, from which `pip` can build the Python package.
/// It has the sources of the package and of the workspace crates that the package uses.
/// `environment` is the virtual environment with maturin, and `variables` are environment variables
/// for maturin. Returns the path of the archive.
fn build_sources(
    environment: &Path,
    made: &Path,
    variables: &[(&str, OsString)],
) -> Result<PathBuf> {
    stage::empty(made)?;
    let mut maturin = Command::new(environment.join("bin/maturin"));
    maturin
        .args(["sdist", "--manifest-path"])
        .arg(workspace().join("python/Cargo.toml"))
        .arg("--out")
        .arg(made)
        .envs(variables.iter().map(|(name, value)| (name, value)));
    run(&mut maturin).context("maturin cannot archive the sources")?;
    with_ending(made, "gz")
}

/// Returns the path of the file below `folder` whose name has the extension `ending`. Fails unless
/// there is exactly one.
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

/// Builds the wheel of the Python package into the folder `made`, by the maturin in the virtual
/// environment `environment`. `options` are maturin's options, and `variables` are environment
/// variables for cargo. Returns the path of the wheel.
pub fn build_wheel(
    environment: &Path,
    made: &Path,
    options: &[String],
    variables: &[(&str, OsString)],
) -> Result<PathBuf> {
    stage::empty(made)?;
    let mut maturin = Command::new(environment.join("bin/maturin"));
    maturin
        .args(["build", "--release", "--locked", "--manifest-path"])
        .arg(workspace().join("python/Cargo.toml"))
        .arg("--interpreter")
        .arg(environment.join("bin/python"))
        .arg("--out")
        .arg(made)
        .args(options)
        .env("PATH", with_programs(environment)?)
        .envs(variables.iter().map(|(name, value)| (name, value)));
    run(&mut maturin).context("maturin cannot make the wheel")?;
    with_ending(made, "whl")
}

/// Returns a value for the environment variable PATH that has the programs of a virtual environment
/// first, because maturin runs the first Python on PATH to find zig.
fn with_programs(environment: &Path) -> Result<OsString> {
    let outer = std::env::var_os("PATH").unwrap_or_default();
    let folders = [environment.join("bin")].into_iter();
    Ok(std::env::join_paths(
        folders.chain(std::env::split_paths(&outer)),
    )?)
}

/// Returns the folder of a virtual environment with the pinned versions of maturin and, if
/// [`platform`] needs it, zig. The first call creates it.
fn maturin(work: &Path) -> Result<PathBuf> {
    let pin = PINS.lines().find(|line| line.starts_with("maturin=="));
    let pin = pin.context("no version of maturin is pinned")?;
    let pins: Vec<&OsStr> = match platform().is_empty() {
        true => vec![pin.as_ref()],
        false => vec![pin.as_ref(), ZIG.as_ref()],
    };
    let folder = work.join(
        pins.join(OsStr::new("-"))
            .to_string_lossy()
            .replace("==", "-"),
    );
    if !folder.join("bin/maturin").is_file() {
        ui::step(
            format!("Installing {}", pins.join(OsStr::new(" ")).display()),
            || make_venv(&folder, &pins),
        )
        .context(
            "the wheel needs python3 with venv, and maturin and ziglang from PyPI; \
             `--format deb,tarball,source` makes the others",
        )?;
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cargo::cargo;
    use crate::program::output;

    /// Compares the licence file with the output of `cargo tree`. This is the part of
    /// [`ensure_current`] that does not need cargo-about.
    #[test]
    fn licences_are_those_of_the_crates() -> Result<()> {
        let copyright = fs::read_to_string(workspace().join(COPYRIGHT))?;
        let tree = output(
            cargo()
                .args(["tree", "--locked", "--package", "neardup-python"])
                .args(["--edges", "normal,no-proc-macro", "--prefix", "none"])
                .args(["--format", "{p}"]),
        )?;
        // `cargo tree` prints a path after the version of neardup's own crates.
        for line in tree.lines().filter(|line| !line.contains('/')) {
            let mut words = line.split(' ');
            let (name, version) = (words.next(), words.next().context("a version")?);
            let part = format!(
                "\n{} {}",
                name.context("a name")?,
                version.trim_start_matches('v')
            );
            assert!(copyright.contains(&part), "{part} is not in {COPYRIGHT}");
        }
        Ok(())
    }
}
