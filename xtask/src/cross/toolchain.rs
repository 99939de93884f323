//! A Rust compiler that has the standard library of another machine: the one that cargo uses, if
//! rustup has given it that library, or else Debian's packages, which need no rustup.
use super::Machine;
use super::debian::{Age, Packages};
use super::programs::Programs;
use crate::program::output;
use crate::{signals, ui};
use anyhow::{Context, Result, bail, ensure};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Suites of Debian to take a compiler from, the last of each line, in the order in which they are
/// tried, and how old their lists may be. Debian builds an upload for one machine sooner than for
/// another, and mirrors follow by and by: compiler and library may be of two versions, and a list
/// not the one that the suite states.
const SOURCES: [(&[&str], Age); 3] = [
    (&["trixie", "trixie-backports"], Age::Valid),
    (&["forky"], Age::Any),
    (&["sid"], Age::Any),
];
/// Packages that the compiler calls in the system where it is used.
const ASSUMED: [&str; 3] = ["gcc", "binutils", "libc-dev"];

/// Compiler and programs that build and run programs of a machine.
pub struct Toolchain {
    /// The machine.
    pub machine: &'static Machine,
    /// The folder for all that the machine needs.
    pub root: PathBuf,
    /// The folder for what cargo builds.
    pub build: PathBuf,
    /// The programs from the system's packages.
    pub programs: Programs,
    /// The folder of Debian's compiler; `None` if the one that cargo uses has the library.
    rust: Option<PathBuf>,
}

impl Toolchain {
    /// Returns the compiler for a machine; Debian's is brought below `root` by the first call.
    ///
    /// # Errors
    /// When it cannot be downloaded or unpacked.
    pub fn provide(machine: &'static Machine, programs: Programs, root: &Path) -> Result<Self> {
        let rust = match has_library(machine) {
            true => None,
            false => Some(root.join("rust")),
        };
        if let Some(rust) = rust.as_ref().filter(|rust| !rust.is_dir()) {
            bring(machine, root, rust)?;
        }
        Ok(Self {
            machine,
            root: root.to_owned(),
            build: root.join("build"),
            programs,
            rust,
        })
    }

    /// The environment for cargo.
    pub fn variables(&self) -> Vec<(String, OsString)> {
        let rust = self.machine.rust;
        let target = rust.to_uppercase().replace('-', "_");
        let runner = format!(
            "{} -L /usr/{}",
            self.programs.qemu.display(),
            self.machine.gnu
        );
        let mut variables = vec![
            ("CARGO_BUILD_TARGET".to_owned(), rust.into()),
            (
                format!("CARGO_TARGET_{target}_LINKER"),
                self.programs.gcc.clone().into(),
            ),
            (format!("CARGO_TARGET_{target}_RUNNER"), runner.into()),
        ];
        if let Some(folder) = &self.rust {
            variables.push(("RUSTC".to_owned(), folder.join("rustc").into()));
            variables.push(("RUSTDOC".to_owned(), folder.join("rustdoc").into()));
        }
        variables
    }
}

/// Returns whether the compiler that cargo uses has the standard library of a machine.
fn has_library(machine: &Machine) -> bool {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut ask = Command::new(rustc);
    let Ok(folder) = output(ask.args(["--print", "target-libdir", "--target", machine.rust]))
    else {
        return false;
    };
    let mut files = fs::read_dir(folder).into_iter().flatten().flatten();
    files.any(|file| file.file_name().to_string_lossy().starts_with("libstd-"))
}

/// Takes the compiler from the first suite that gives it.
fn bring(machine: &Machine, root: &Path, rust: &Path) -> Result<()> {
    let mut reasons = String::new();
    for source in SOURCES {
        let suite = source.0.last().copied().unwrap_or_default();
        let text = format!(
            "Bringing Debian's Rust for {} from {suite} (140 MB)",
            machine.debian
        );
        let Err(error) = ui::step(text, || unpack(source, machine, root, rust)) else {
            return Ok(());
        };
        signals::wait_if_interrupted();
        ui::note(format!("{suite} does not give it: {error:#}"));
        reasons += &format!("\n  {suite}: {error:#}");
    }
    bail!(
        "Debian's Rust with the standard library of {name} cannot be had:{reasons}\n\
         Debian's archive may be in the midst of a change: try again some hours later, or, with \
         rustup, run\n\n  rustup target add {name}\n\nand this again.",
        name = machine.rust
    )
}

/// Downloads the compiler and unpacks it; `rust` appears when all is in it.
fn unpack(source: (&[&str], Age), machine: &Machine, root: &Path, rust: &Path) -> Result<()> {
    let staging = tempfile::tempdir_in(root)?;
    let lists = staging.path().join("apt");
    let architectures = ["amd64", machine.debian];
    let packages = Packages::fetch(&lists, &architectures, source, &ASSUMED)?;
    // Both must be of one version. The other machine's dependencies are not wanted.
    let version = packages.version("rustc")?;
    ensure!(
        is_new_enough(&version, env!("CARGO_PKG_RUST_VERSION")),
        "its rustc is {version}, and neardup needs {}",
        env!("CARGO_PKG_RUST_VERSION")
    );
    packages.download(&[&format!("rustc={version}")])?;
    packages.download_alone(&format!("libstd-rust-dev:{}={version}", machine.debian))?;
    let tree = staging.path().join("tree");
    fs::create_dir(&tree)?;
    packages.unpack(&tree)?;
    for program in ["rustc", "rustdoc"] {
        write_program(&tree.join(program), &wrapper(program))?;
    }
    fs::set_permissions(&tree, PermissionsExt::from_mode(0o755))?;
    fs::rename(&tree, rust).with_context(|| format!("cannot make {}", rust.display()))
}

/// A script that runs a program of the compiler with its own C library: the system's may be older.
fn wrapper(program: &str) -> String {
    format!(
        "#!/bin/sh\nroot=${{0%/*}}\n\
         exec \"$root/usr/lib64/ld-linux-x86-64.so.2\" \
         --library-path \"$root/usr/lib/x86_64-linux-gnu\" \
         \"$root/usr/bin/{program}\" --sysroot \"$root/usr\" \"$@\"\n"
    )
}

/// Writes a script that can be run.
pub fn write_program(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text)
        .and_then(|()| fs::set_permissions(path, PermissionsExt::from_mode(0o755)))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Returns whether a version of Debian's is not below `wanted`, both with major and minor number.
fn is_new_enough(version: &str, wanted: &str) -> bool {
    let numbers = |version: &str| -> Option<(u32, u32)> {
        let mut parts = version.split(['.', '+', '~', '-']).map(str::parse);
        Some((parts.next()?.ok()?, parts.next()?.ok()?))
    };
    numbers(version).is_some_and(|version| Some(version) >= numbers(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        assert!(is_new_enough("1.96.1+dfsg1-2~bpo13+1", "1.95"));
        assert!(is_new_enough("1.95.0+dfsg1-2", "1.95"));
        assert!(!is_new_enough("1.85.0+dfsg3-1", "1.95"));
        assert!(!is_new_enough("1.9.0-1", "1.95"));
        assert!(is_new_enough("2.0~rc1-1", "1.95"));
        assert!(!is_new_enough("(none)", "1.95"));
    }
}
