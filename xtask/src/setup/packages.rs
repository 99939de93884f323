//! Installs missing requirements of the build from the system's packages, or tells the user the
//! command that installs them.
use super::{Missing, Need, apt, os_release};
use crate::ui;
use anyhow::{Context, Result};
use neardup_pgserver::{PgConfig, is_root};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Folder of settings files that Debian's PostgreSQL packages read when they create a database
/// cluster.
const CREATECLUSTER_DIR: &str = "/etc/postgresql-common/createcluster.d";

/// Installs the packages for `needs` by apt-get, if the user is root on Debian or a derivative.
/// `pg` is the PostgreSQL that lacks the parts in `needs`, if one was found.
///
/// # Errors
/// [`Missing`], with the command to type, for other users and systems. Another error if apt-get
/// fails.
pub fn provide(needs: &[Need], pg: Option<&PgConfig>) -> Result<()> {
    let list: String = needs.iter().map(|need| format!("  - {need}\n")).collect();
    if let Some(pg) = pg
        && !is_from_packages(pg)
        && needs.iter().any(|need| *need != Need::Libclang)
    {
        let text = format!(
            "the build needs what is not installed beside {}:\n{list}\
             It does not come from the system's packages. Complete that installation, or name \
             another one with --pg-config.",
            pg.program.display()
        );
        return Err(Missing(text).into());
    }
    let packages = debian_packages(needs, debian_default_major());
    if !is_debian() || !is_root() {
        let how = match is_debian() {
            true => format!(
                "Install it with\n\n  sudo apt-get install {}\n\nand run this again.",
                packages.join(" ")
            ),
            false => "Install it with this system's package manager and run this again.".to_owned(),
        };
        let text = format!("the build needs what is not installed:\n{list}{how}");
        return Err(Missing(text).into());
    }

    ui::heading(format!(
        "The build needs what is not installed:\n{list}==> Installing it with apt-get"
    ));
    let _no_cluster = NoCluster::announce(needs)?;
    apt::install(&packages)
}

/// Installs the packages `names` by apt-get, if the user is root on Debian or a derivative.
///
/// # Errors
/// [`Missing`], with the command to type, for other users and systems. Another error if apt-get
/// fails.
pub fn install_packages(names: &[&str]) -> Result<()> {
    let list = names.join(" ");
    if !is_debian() {
        let text = format!("this needs packages of Debian or its relatives: {list}");
        return Err(Missing(text).into());
    }
    if !is_root() {
        let text = format!("Install what is missing with\n\n  sudo apt-get install {list}");
        return Err(Missing(text).into());
    }
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    apt::install(&names)
}

/// Returns the error for an installed server that the user wants to build for, but that has no
/// header files.
pub fn no_headers(pg: &PgConfig) -> anyhow::Error {
    let package = format!("postgresql-server-dev-{}", pg.major);
    let how = match debian_version(&pg.version) {
        Some(version) if is_debian() => format!(
            "They are in {package}, version {version}. See which packages that would upgrade:\n\n  \
             apt-get install --simulate {package}={version}"
        ),
        _ => "Install those of exactly this version. Look before: installing them may upgrade \
              the server."
            .to_owned(),
    };
    let text = format!(
        "{} is installed without its header files ({}). This command does not change an \
         installed server. {how}\n\nThe demo and the tests need none of that: without \
         --pg-config and PG_CONFIG they unpack a private server.",
        pg.version,
        pg.program.display()
    );
    Missing(text).into()
}

/// Returns the version of the Debian package from PostgreSQL's version text `version`, which is
/// like `PostgreSQL 15.18 (Debian 15.18-0+deb12u1)`. `None` if the text does not contain it.
fn debian_version(version: &str) -> Option<&str> {
    let (_, package) = version.split_once('(')?;
    package.trim_end_matches(')').split_whitespace().nth(1)
}

/// Returns whether apt-get can provide the packages of this installed server, including its header
/// files.
pub fn has_packages(pg: &PgConfig) -> bool {
    is_debian() && pg.has_server() && is_from_packages(pg)
}

/// Returns whether a PostgreSQL may come from packages. Its programs are then below `/usr`, but not
/// below `/usr/local`.
fn is_from_packages(pg: &PgConfig) -> bool {
    pg.bindir().starts_with("/usr") && !pg.bindir().starts_with("/usr/local")
}

/// Returns whether this system is Debian or a derivative of it.
fn is_debian() -> bool {
    let os_release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    ["ID", "ID_LIKE"].iter().any(|name| {
        let names = os_release::field(&os_release, name).unwrap_or_default();
        names
            .split(' ')
            .any(|name| ["debian", "ubuntu"].contains(&name))
    })
}

/// Returns the names of the Debian packages that provide `needs`. For needs without a version,
/// `default_major` is the major version that the distribution offers, if it is known.
fn debian_packages(needs: &[Need], default_major: Option<u32>) -> Vec<String> {
    let mut all = Vec::new();
    for need in needs {
        match need {
            Need::Server(major) => all.push(match major.or(default_major) {
                Some(major) => format!("postgresql-{major}"),
                None => "postgresql".to_owned(),
            }),
            Need::Headers(major) => all.push(match major.or(default_major) {
                Some(major) => format!("postgresql-server-dev-{major}"),
                None => "postgresql-server-dev-all".to_owned(),
            }),
            Need::Libclang => all.extend(["libclang-dev".to_owned(), "clang".to_owned()]),
        }
    }
    all
}

/// Returns the major version on which the distribution's package `postgresql` depends; `None` if it
/// is unknown.
fn debian_default_major() -> Option<u32> {
    let output = Command::new("apt-cache")
        .args(["show", "--no-all-versions", "postgresql"])
        .stderr(Stdio::null())
        .output()
        .ok()?;
    default_major(&String::from_utf8_lossy(&output.stdout))
}

/// Returns the major version in a line such as `Depends: postgresql-15` of apt-cache's output.
fn default_major(shown: &str) -> Option<u32> {
    shown
        .lines()
        .find_map(|line| line.strip_prefix("Depends:"))?
        .split([',', '|'])
        .find_map(|package| {
            let name = package.split_whitespace().next()?;
            name.strip_prefix("postgresql-")?.parse().ok()
        })
}

/// Setting that keeps Debian's packages from creating and starting a database cluster while this
/// value exists, because the user has not asked for a running server. It leaves the user's own
/// setting unchanged.
struct NoCluster {
    /// True if the settings file was written and must be removed.
    written: bool,
}

impl NoCluster {
    const FILE: &str = "neardup-setup.conf";

    fn announce(needs: &[Need]) -> Result<Self> {
        let written = needs.iter().any(|need| matches!(need, Need::Server(_)));
        if written {
            let dir = Path::new(CREATECLUSTER_DIR);
            fs::create_dir_all(dir)
                .and_then(|()| fs::write(dir.join(Self::FILE), "create_main_cluster = false\n"))
                .with_context(|| format!("cannot write into {CREATECLUSTER_DIR}"))?;
        }
        Ok(Self { written })
    }
}

impl Drop for NoCluster {
    fn drop(&mut self) {
        if self.written {
            fs::remove_file(Path::new(CREATECLUSTER_DIR).join(Self::FILE)).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Need; 3] = [Need::Server(None), Need::Headers(None), Need::Libclang];

    #[test]
    fn debian_packages_carry_the_version() {
        assert_eq!(
            debian_packages(&ALL, Some(15)),
            [
                "postgresql-15",
                "postgresql-server-dev-15",
                "libclang-dev",
                "clang"
            ]
        );
        assert_eq!(
            debian_packages(&[Need::Headers(Some(17))], Some(15)),
            ["postgresql-server-dev-17"]
        );
    }

    #[test]
    fn the_servers_text_names_its_package() {
        for (text, version) in [
            (
                "PostgreSQL 15.18 (Debian 15.18-0+deb12u1)",
                "15.18-0+deb12u1",
            ),
            (
                "PostgreSQL 16.9 (Ubuntu 16.9-0ubuntu0.24.04.1)",
                "16.9-0ubuntu0.24.04.1",
            ),
            (
                "PostgreSQL 18.1 (Debian 18.1-1.pgdg13+2)",
                "18.1-1.pgdg13+2",
            ),
        ] {
            assert_eq!(debian_version(text), Some(version));
        }
        assert_eq!(debian_version("PostgreSQL 18.1"), None);
    }

    #[test]
    fn reads_the_distributions_version() {
        let shown = "Package: postgresql\nDepends: postgresql-common (>= 2), postgresql-17\n";
        assert_eq!(default_major(shown), Some(17));
        assert_eq!(default_major("Package: x\n"), None);
    }
}
