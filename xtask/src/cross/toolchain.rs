//! Provides a Rust compiler with the standard library for another processor: cargo's own compiler
//! if rustup has added that library, or else Debian's packages, which do not need rustup.
use super::Machine;
use super::debian::{Age, Packages};
use super::programs::Programs;
use crate::program::{output, write_program};
use crate::{signals, ui};
use anyhow::{Context, Result, bail, ensure};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Sources of Debian's compiler, in the order in which they are tried. Each source has Debian
/// suites, and the accepted age of the package lists of these suites. If several suites have a
/// package, the last suite is preferred.
///
/// A source can fail for two reasons. First, the compiler is for this processor and its standard
/// library for another one, and both must have the same version. Debian may have built a new
/// version for only one of the processors. Second, mirrors lag, so a package list may not have the
/// checksum that the suite states for it.
const SOURCES: [(&[&str], Age); 3] = [
    (&["trixie", "trixie-backports"], Age::Valid),
    (&["forky"], Age::Any),
    (&["sid"], Age::Any),
];
/// Packages that the compiler takes from the system on which it runs. They are not downloaded.
const ASSUMED: [&str; 3] = ["gcc", "binutils", "libc-dev"];

/// Compiler and other programs that build and run programs for a machine.
pub struct Toolchain {
    /// Machine for which programs are built.
    pub machine: &'static Machine,
    /// Folder for all files of the machine: compiler, server and builds.
    pub root: PathBuf,
    /// Target folder of cargo's builds for the machine.
    pub build: PathBuf,
    /// QEMU and the C compiler, from the system's packages.
    pub programs: Programs,
    /// Folder of Debian's Rust compiler; `None` if cargo's own compiler has the standard library
    /// for the machine.
    rust: Option<PathBuf>,
}

impl Toolchain {
    /// Returns the toolchain for a machine. The first call unpacks Debian's compiler below `root`
    /// if it is needed.
    ///
    /// # Errors
    /// If the compiler cannot be downloaded or unpacked.
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

    /// Returns the environment variables with which cargo builds programs for the machine and runs
    /// them by QEMU.
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

/// Returns whether cargo's own compiler has the standard library for a machine.
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

/// Downloads Debian's compiler for `machine` and unpacks it into the folder `rust`. Takes the first
/// of [`SOURCES`] that has a suitable one. The call uses a temporary folder in `root`.
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

/// Downloads the compiler from `source` and unpacks it into a temporary folder in `root`. Renames
/// this folder to `rust` when it is complete, so that an interrupted call leaves no partial
/// compiler.
fn unpack(source: (&[&str], Age), machine: &Machine, root: &Path, rust: &Path) -> Result<()> {
    let staging = tempfile::tempdir_in(root)?;
    let lists = staging.path().join("apt");
    let architectures = ["amd64", machine.debian];
    let packages = Packages::fetch(&lists, &architectures, source, &ASSUMED)?;
    // The compiler and the standard library must have the same version. The library is downloaded
    // alone, because the packages that it depends on are not needed.
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

/// Returns a script that runs the compiler program `program`. It uses the C library that was
/// unpacked with the compiler, because the system's C library may be older.
fn wrapper(program: &str) -> String {
    format!(
        "#!/bin/sh\nroot=${{0%/*}}\n\
         exec \"$root/usr/lib64/ld-linux-x86-64.so.2\" \
         --library-path \"$root/usr/lib/x86_64-linux-gnu\" \
         \"$root/usr/bin/{program}\" --sysroot \"$root/usr\" \"$@\"\n"
    )
}

/// Returns whether a Debian package's version is at least `wanted`. Compares only the major and the
/// minor number.
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
