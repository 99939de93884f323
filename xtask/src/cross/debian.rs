//! Downloads Debian packages of any suite (release) and processor, and unpacks them into a folder.
//! apt-get gets its own lists and settings, so this neither changes the system nor requires root.
use super::programs::KEYRING;
use crate::program::{output, run};
use crate::setup;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const MIRROR: &str = "http://deb.debian.org/debian";

/// Accepted age of apt's package lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Age {
    /// Only lists that have not expired.
    Valid,
    /// Lists of any age, because a mirror may not have fetched newer ones. The signatures of the
    /// lists are still checked.
    Any,
}

/// apt's settings and package lists for some suites, by which packages are downloaded.
pub struct Packages {
    /// Path of apt's settings file.
    settings: PathBuf,
    /// Folder of the downloaded packages.
    archives: PathBuf,
}

impl Packages {
    /// Fetches the package lists of `suites` into `root`, for the processors `architectures`. A
    /// package name without a processor means the first of these processors. If several suites have
    /// a package, the last suite is preferred. `age` is the accepted age of the lists. apt treats
    /// the packages in `assumed` as installed, so it does not download them.
    ///
    /// # Errors
    /// If apt-get cannot fetch the lists, or they are too old.
    pub fn fetch(
        root: &Path,
        architectures: &[&str],
        (suites, age): (&[&str], Age),
        assumed: &[&str],
    ) -> Result<Self> {
        let archives = root.join("var/cache/apt/archives");
        for folder in [
            &archives.join("partial"),
            &root.join("var/lib/apt/lists/partial"),
            &root.join("var/lib/dpkg"),
            &root.join("etc/apt/apt.conf.d"),
            &root.join("etc/apt/preferences.d"),
        ] {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot make {}", folder.display()))?;
        }
        let sources = suites
            .iter()
            .map(|suite| format!("deb [{}] {MIRROR} {suite} main\n", options(age)));
        fs::write(
            root.join("etc/apt/sources.list"),
            sources.collect::<String>(),
        )?;
        let status = assumed.iter().map(|name| status_of(name));
        fs::write(root.join("var/lib/dpkg/status"), status.collect::<String>())?;
        let settings = root.join("apt.conf");
        fs::write(&settings, configuration(root, architectures, suites))?;
        let packages = Self { settings, archives };
        run(packages.program("apt-get").arg("update")).context("cannot fetch Debian's lists")?;
        Ok(packages)
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        command
            .env("APT_CONFIG", &self.settings)
            .env("LC_ALL", "C")
            .current_dir(&self.archives)
            .arg("-q");
        command
    }

    /// Downloads packages and the packages that they depend on into the folder of downloaded
    /// packages.
    pub fn download(&self, packages: &[&str]) -> Result<()> {
        let mut apt = self.program("apt-get");
        apt.args([
            "install",
            "--yes",
            "--download-only",
            "--no-install-recommends",
        ]);
        run(apt.args(packages)).with_context(|| format!("cannot download {}", packages.join(" ")))
    }

    /// Downloads one package, without the packages that it depends on, into the folder of
    /// downloaded packages.
    pub fn download_alone(&self, package: &str) -> Result<()> {
        run(self.program("apt-get").args(["download", package]))
            .with_context(|| format!("cannot download {package}"))
    }

    /// Returns the version of `package` that apt-get would download.
    pub fn version(&self, package: &str) -> Result<String> {
        let shown = output(self.program("apt-cache").args(["policy", package]))?;
        candidate(&shown)
            .with_context(|| format!("Debian has no {package}"))
            .map(str::to_owned)
    }

    /// Unpacks all downloaded packages into the folder `into`.
    pub fn unpack(&self, into: &Path) -> Result<()> {
        setup::extract(&self.archives, into)
    }
}

/// Returns the options for a suite in apt's list of sources. `age` is the accepted age of its
/// package lists.
fn options(age: Age) -> String {
    let ignored = match age {
        Age::Valid => "",
        Age::Any => " check-valid-until=no",
    };
    format!("signed-by={KEYRING}{ignored}")
}

/// Returns apt settings that keep all of apt's files below `root`. With them, apt accepts packages
/// for `architectures`, and prefers the last of `suites`.
fn configuration(root: &Path, architectures: &[&str], suites: &[&str]) -> String {
    let all: String = architectures
        .iter()
        .map(|name| format!(" {name:?};"))
        .collect();
    format!(
        "Dir {root:?};\nDir::State::status \"{root}/var/lib/dpkg/status\";\n\
         APT::Architecture {first:?};\nAPT::Architectures {{{all} }};\n\
         APT::Default-Release {preferred:?};\n\
         APT::Sandbox::User \"\";\nAcquire::Languages \"none\";\n\
         Acquire::Retries \"3\";\n",
        root = root.display().to_string(),
        first = architectures.first().copied().unwrap_or_default(),
        preferred = suites.last().copied().unwrap_or_default(),
    )
}

/// Returns an entry of dpkg's status file that declares `package` as installed.
fn status_of(package: &str) -> String {
    format!(
        "Package: {package}\nStatus: install ok installed\nArchitecture: all\n\
         Multi-Arch: foreign\nVersion: 999:0\nMaintainer: none\nDescription: assumed\n\n"
    )
}

/// Returns the version of a package that apt would install; `None` if there is no candidate.
/// `policy` is the output of `apt-cache policy`, which has the version in a line such as
/// `Candidate: 1.96.1`.
fn candidate(policy: &str) -> Option<&str> {
    policy
        .lines()
        .find_map(|line| line.trim().strip_prefix("Candidate: "))
        .filter(|version| *version != "(none)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_version_that_would_be_taken() {
        let shown = "rustc:\n  Installed: (none)\n  Candidate: 1.96.1+dfsg1-2\n";
        assert_eq!(candidate(shown), Some("1.96.1+dfsg1-2"));
        assert_eq!(candidate("rustc:\n  Candidate: (none)\n"), None);
        assert_eq!(candidate(""), None);
    }

    #[test]
    fn lists_are_signed_and_expire() {
        assert_eq!(options(Age::Valid), format!("signed-by={KEYRING}"));
        let ignored = format!("signed-by={KEYRING} check-valid-until=no");
        assert_eq!(options(Age::Any), ignored);
    }

    #[test]
    fn all_of_apt_stays_below_the_root() {
        let text = configuration(Path::new("/x"), &["amd64", "arm64"], &["a", "b"]);
        assert!(text.contains("Dir \"/x\";"), "{text}");
        assert!(
            text.contains("status \"/x/var/lib/dpkg/status\";"),
            "{text}"
        );
        assert!(
            text.contains("Architectures { \"amd64\"; \"arm64\"; };"),
            "{text}"
        );
        assert!(text.contains("Default-Release \"b\";"), "{text}");
    }
}
