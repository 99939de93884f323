//! Version, time, maintainer and address of a release, which its packages contain.
use crate::cargo::workspace;
use crate::{program, project};
use anyhow::{Context, Result};
use std::process::Command;

/// Data of a release that its packages state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// Version of the extension, for example 0.1.0.
    pub version: String,
    /// Time of the release in seconds since 1970. Packages have it as the time of all their files,
    /// so that equal sources give equal packages.
    pub epoch: u64,
    /// Name and mail address of the maintainer from DEBFULLNAME and DEBEMAIL, if both are set.
    pub maintainer: Option<String>,
    /// Address of the project, if it has one.
    pub repository: Option<&'static str>,
}

impl Release {
    /// Returns the release that consists of the last commit. Its time is the time of the commit, or
    /// the value of the environment variable SOURCE_DATE_EPOCH.
    ///
    /// # Errors
    /// If git fails, and SOURCE_DATE_EPOCH is not set.
    pub fn from_workspace() -> Result<Self> {
        let epoch = match variable("SOURCE_DATE_EPOCH") {
            Some(epoch) => epoch,
            None => last_commit_time()
                .context("set SOURCE_DATE_EPOCH where the sources are no git repository")?,
        };
        let maintainer = match (variable("DEBFULLNAME"), variable("DEBEMAIL")) {
            (Some(name), Some(address)) => Some(format!("{name} <{address}>")),
            _ => None,
        };
        Ok(Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            epoch: epoch
                .parse()
                .with_context(|| format!("SOURCE_DATE_EPOCH is no number: {epoch}"))?,
            maintainer,
            repository: project::repository(),
        })
    }

    /// Returns the name and mail address of the maintainer, which packages for Debian state.
    ///
    /// # Errors
    /// If the environment variables DEBFULLNAME and DEBEMAIL are not set. The author of the last
    /// commit may be another person, so there is no default.
    pub fn maintainer(&self) -> Result<&str> {
        self.maintainer.as_deref().context(
            "set DEBFULLNAME and DEBEMAIL to the name and mail address of the maintainer, which \
             packages for Debian state; `--format tarball,source,wheel` makes the others",
        )
    }

    /// Returns the time of the release in the format of Debian changelogs (RFC 5322).
    ///
    /// # Errors
    /// If GNU `date` is missing.
    pub fn rfc_date(&self) -> Result<String> {
        let mut date = Command::new("date");
        date.args(["--utc", "--rfc-email"]).env("LC_ALL", "C");
        program::output(date.arg(format!("--date=@{}", self.epoch)))
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns the time of the last commit in seconds since 1970.
fn last_commit_time() -> Result<String> {
    let mut git = Command::new("git");
    git.current_dir(workspace());
    program::output(git.args(["log", "-1", "--format=%ct"]))
}
