//! Finds QEMU and a C compiler, from the system's packages, which run and link programs for another
//! processor.
use super::Machine;
use crate::setup;
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};

/// Public keys that verify Debian's package lists.
pub const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Programs with which this system runs and links programs for another machine.
pub struct Programs {
    /// QEMU, which runs programs for the machine.
    pub qemu: PathBuf,
    /// C compiler, which compiles and links for the machine.
    pub gcc: PathBuf,
}

/// Finds QEMU and the C compiler for a machine. If they are missing and the user is root on Debian,
/// installs them.
///
/// # Errors
/// If the user has to install something. The error names the command.
pub fn provide(machine: &Machine) -> Result<Programs> {
    if let Some(found) = find(machine) {
        return Ok(found);
    }
    let name = machine.debian;
    setup::install_packages(&[
        &format!("gcc-{}", machine.gnu),
        &format!("libc6-dev-{name}-cross"),
        "qemu-user-static",
        "debian-archive-keyring",
    ])?;
    match find(machine) {
        Some(found) => Ok(found),
        None => bail!("the packages are installed, but no compiler and QEMU for {name} is found"),
    }
}

fn find(machine: &Machine) -> Option<Programs> {
    let headers = Path::new("/usr").join(machine.gnu).join("include/stdio.h");
    let qemu = format!("qemu-{}", machine.qemu);
    let found = Programs {
        qemu: on_path(&format!("{qemu}-static")).or_else(|| on_path(&qemu))?,
        gcc: on_path(&format!("{}-gcc", machine.gnu))?,
    };
    (headers.is_file() && Path::new(KEYRING).is_file()).then_some(found)
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|dir| dir.join(program))
        .find(|path| path.is_file())
}
