//! Installs and unpacks system packages by apt-get. Each installation is simulated first. On a
//! machine with a PostgreSQL server, an installation is rejected if it would change an installed
//! package, because upgrades restart running servers.
use super::{Missing, find, sudo};
use crate::program::{output, run};
use crate::ui;
use anyhow::{Context, Result, bail};
use neardup_pgserver::{PgConfig, is_root};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const INSTALL: [&str; 4] = ["install", "-y", "--no-install-recommends", "--no-remove"];

/// Installs system packages. On a machine with a PostgreSQL server, only adds packages and does not
/// change any.
///
/// # Errors
/// [`Missing`] if installed packages would have to change. Another error if apt-get fails.
pub fn install(packages: &[String]) -> Result<()> {
    run_visibly(apt_get().arg("update"))?;
    let arguments = || {
        INSTALL
            .into_iter()
            .chain(packages.iter().map(String::as_str))
    };
    let simulated = output(apt_get().arg("--simulate").args(arguments()))
        .with_context(|| format!("apt-get cannot install {}", packages.join(" ")))?;
    if find::installed().iter().any(PgConfig::has_server) {
        refuse_changes(packages, &simulated)?;
    }
    run_visibly(apt_get().args(arguments()))
}

/// Downloads packages without the packages that they depend on, and unpacks them into the folder
/// `root`. Does not install anything or require root.
///
/// # Errors
/// If apt-get does not know a package or cannot fetch it.
pub fn unpack(packages: &[String], root: &Path) -> Result<()> {
    if is_root() {
        // The package lists may be older than the archive. Without a network they are used
        // unchanged.
        run(apt_get().arg("update")).ok();
    }
    let archives = tempfile::tempdir()?;
    let mut download = apt_get();
    // apt usually downloads as its own user, which cannot write into this folder.
    download.args(["-o", "APT::Sandbox::User=root", "download"]);
    run(download.args(packages).current_dir(&archives))
        .with_context(|| format!("cannot download {}", packages.join(" ")))?;
    extract(archives.path(), root)
}

/// Unpacks all Debian packages (.deb) in the folder `archives` into the folder `root`.
///
/// # Errors
/// If a package cannot be unpacked.
pub fn extract(archives: &Path, root: &Path) -> Result<()> {
    for entry in fs::read_dir(archives)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "deb") {
            let mut dpkg = Command::new("dpkg-deb");
            run(dpkg.arg("--extract").args([&path, root]))
                .with_context(|| format!("cannot unpack {}", path.display()))?;
        }
    }
    Ok(())
}

fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command
        .args(["-q", "-o", "Dpkg::Use-Pty=0"])
        .env("LC_ALL", "C")
        .env("DEBIAN_FRONTEND", "noninteractive")
        // Ubuntu's needrestart restarts the services that use an upgraded library.
        .envs([("NEEDRESTART_SUSPEND", "1"), ("NEEDRESTART_MODE", "l")])
        .stdin(Stdio::null());
    command
}

fn run_visibly(command: &mut Command) -> Result<()> {
    let arguments: Vec<_> = command
        .get_args()
        .skip(3)
        .map(|a| a.to_string_lossy())
        .collect();
    ui::heading(format!("apt-get {}", arguments.join(" ")));
    // apt-get's output goes to standard error. Standard output is only for the results of this
    // program.
    let status = command.stdout(std::io::stderr()).status();
    let status = status.context("cannot run apt-get")?;
    if !status.success() {
        bail!("apt-get failed ({status}); it says why above");
    }
    Ok(())
}

/// Fails if the output of a simulated installation shows changes to installed packages.
fn refuse_changes(packages: &[String], simulated: &str) -> Result<()> {
    let changes = changes(simulated);
    if changes.is_empty() {
        return Ok(());
    }
    let list: String = changes
        .iter()
        .map(|change| format!("  - {change}\n"))
        .collect();
    let text = format!(
        "The build needs {packages}. A PostgreSQL server is installed here, and installing these \
         packages would change installed ones, which may restart it:\n{list}\
         Nothing was changed. When that suits the server, type\n\n  {sudo}apt-get install \
         --no-install-recommends {packages}\n\nand run this again.",
        packages = packages.join(" "),
        sudo = sudo(),
    );
    Err(Missing(text).into())
}

/// Returns the changes to installed packages in the output of `apt-get --simulate install`:
/// upgrades, removals, and the configuration of packages that an earlier run left half installed.
fn changes(simulated: &str) -> Vec<String> {
    let mut unpacked = Vec::new();
    let mut changes = Vec::new();
    for line in simulated.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            // The line of a package that is already installed has its old version in brackets.
            ["Inst", name, old, new, ..] if old.starts_with('[') => {
                unpacked.push(name);
                let (old, new) = (old.trim_matches(['[', ']']), new.trim_matches('('));
                changes.push(format!("upgrade of {name} from {old} to {new}"));
            }
            ["Inst", name, ..] => unpacked.push(name),
            ["Remv" | "Purg", name, ..] => changes.push(format!("removal of {name}")),
            ["Conf", name, ..] if !unpacked.contains(&name) => {
                changes.push(format!("configuration of {name}"));
            }
            _ => {}
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of simulated `apt-get install postgresql-server-dev-15` on Debian 12 with PostgreSQL
    /// 15.18.
    const UPGRADE: &str = "\
Reading package lists...
The following packages will be upgraded:
  libpq5 postgresql-15 postgresql-client-15
Inst libpq5 [15.18-0+deb12u1] (15.20-0+deb12u1 Debian-Security:12/oldstable-security [amd64]) []
Inst postgresql-15 [15.18-0+deb12u1] (15.20-0+deb12u1 Debian-Security:12/oldstable [amd64])
Inst libssl-dev (3.0.22-1~deb12u2 Debian-Security:12/oldstable-security [amd64])
Conf libpq5 (15.20-0+deb12u1 Debian-Security:12/oldstable-security [amd64])
Conf postgresql-15 (15.20-0+deb12u1 Debian-Security:12/oldstable-security [amd64])
Conf libssl-dev (3.0.22-1~deb12u2 Debian-Security:12/oldstable-security [amd64])
";
    /// Output of a simulated installation that only adds packages.
    const ADDITIONS: &str = "\
NOTE: This is only a simulation!
Inst libclang1-14 (1:14.0.6-12 Debian:12.15/oldstable [amd64])
Inst libgc1:amd64 (1:8.2.2-3 Debian:12.15/oldstable [amd64])
Conf libclang1-14 (1:14.0.6-12 Debian:12.15/oldstable [amd64])
Conf libgc1:amd64 (1:8.2.2-3 Debian:12.15/oldstable [amd64])
";

    fn refusal(simulated: &str) -> String {
        let error = refuse_changes(&["libclang-dev".to_owned()], simulated).unwrap_err();
        assert!(error.is::<Missing>());
        error.to_string()
    }

    #[test]
    fn additions_are_allowed() {
        assert!(changes(ADDITIONS).is_empty());
        refuse_changes(&["libclang-dev".to_owned()], ADDITIONS).unwrap();
        refuse_changes(&["libclang-dev".to_owned()], "").unwrap();
    }

    #[test]
    fn upgrades_are_refused_and_named() {
        let expected = [
            "upgrade of libpq5 from 15.18-0+deb12u1 to 15.20-0+deb12u1",
            "upgrade of postgresql-15 from 15.18-0+deb12u1 to 15.20-0+deb12u1",
        ];
        assert_eq!(changes(UPGRADE), expected);
        let text = refusal(UPGRADE);
        for part in [
            expected[1],
            "apt-get install --no-install-recommends libclang-dev\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn packages_of_ubuntu_and_of_postgresql_are_known() {
        for (line, change) in [
            (
                "Inst postgresql-16 [16.9-0ubuntu0.24.04.1] (16.10-0ubuntu0.24.04.1 \
                 Ubuntu:24.04/noble-updates [amd64])",
                "upgrade of postgresql-16 from 16.9-0ubuntu0.24.04.1 to 16.10-0ubuntu0.24.04.1",
            ),
            (
                "Inst postgresql-18:arm64 [18.0-1.pgdg13+3] (18.1-1.pgdg13+2 \
                 apt.postgresql.org:13/trixie-pgdg [arm64])",
                "upgrade of postgresql-18:arm64 from 18.0-1.pgdg13+3 to 18.1-1.pgdg13+2",
            ),
        ] {
            assert_eq!(changes(line), [change]);
        }
    }

    /// Only this file may call apt-get, because a call in another file would not be simulated
    /// first.
    #[test]
    fn no_other_file_calls_apt_get() {
        let sources = crate::cargo::workspace().join("xtask/src");
        let call = ["Command::new(\"", "apt-get\")"].concat();
        let files: Vec<_> = walkdir::WalkDir::new(sources)
            .into_iter()
            .map(|entry| entry.unwrap().into_path())
            .filter(|path| path.is_file())
            .filter(|path| fs::read_to_string(path).unwrap().contains(&call))
            .collect();
        assert_eq!(files.len(), 1, "{files:?}");
        assert!(files[0].ends_with("setup/apt.rs"), "{files:?}");
    }

    #[test]
    fn removals_and_half_installed_packages_count() {
        let simulated = "Remv postgresql-15 [15.18-0+deb12u1]\nPurg libpq5 [15.18-0+deb12u1]\n\
                         Conf postgresql-16 (16.9-1 x [amd64])\n";
        assert_eq!(
            changes(simulated),
            [
                "removal of postgresql-15",
                "removal of libpq5",
                "configuration of postgresql-16"
            ]
        );
    }
}
