//! A Rust compiler that has the standard library of another machine. rustup brings both where it
//! can reach its servers; Debian's packages do for everybody else, and so they are what is taken.
use super::Machine;
use super::debian::Packages;
use super::programs::Programs;
use crate::ui;
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Suites of Debian: the second has the newest compiler that runs with the C library of the first.
const SUITES: [&str; 2] = ["trixie", "trixie-backports"];
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
    /// The folder of the compiler.
    rust: PathBuf,
}

impl Toolchain {
    /// Returns the compiler for a machine, below `root`, brought there by the first call.
    ///
    /// # Errors
    /// When it cannot be downloaded or unpacked.
    pub fn provide(machine: &'static Machine, programs: Programs, root: &Path) -> Result<Self> {
        let rust = root.join("rust");
        if !rust.is_dir() {
            let text = format!("Bringing Debian's Rust for {} (140 MB)", machine.debian);
            ui::step(text, || unpack(machine, root, &rust))?;
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
        vec![
            ("RUSTC".to_owned(), self.rust.join("rustc").into()),
            ("RUSTDOC".to_owned(), self.rust.join("rustdoc").into()),
            ("CARGO_BUILD_TARGET".to_owned(), rust.into()),
            (
                format!("CARGO_TARGET_{target}_LINKER"),
                self.programs.gcc.clone().into(),
            ),
            (format!("CARGO_TARGET_{target}_RUNNER"), runner.into()),
        ]
    }
}

/// Downloads the compiler and unpacks it; `rust` appears when all is in it.
fn unpack(machine: &Machine, root: &Path, rust: &Path) -> Result<()> {
    let staging = tempfile::tempdir_in(root)?;
    let lists = staging.path().join("apt");
    let architectures = ["amd64", machine.debian];
    let packages = Packages::fetch(&lists, &architectures, &SUITES, &ASSUMED)?;
    // Both must be of one version. The other machine's dependencies are not wanted.
    let version = packages.version("rustc")?;
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
