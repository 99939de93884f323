//! Version, time and maintainer of a release, which its packages contain. They come from the
//! workspace and its last commit.
use crate::cargo::workspace;
use crate::program;
use anyhow::{Context, Result};
use std::process::Command;

/// Data of a release that its packages contain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// Version of the extension, for example 0.1.0.
    pub version: String,
    /// Time of the release in seconds since 1970, which all packages use as the time of their
    /// files.
    pub epoch: u64,
    /// Name and address of the maintainer: DEBFULLNAME and DEBEMAIL, or the author of the last
    /// commit.
    pub maintainer: String,
}

impl Release {
    /// Returns the release of the last commit. The environment variable SOURCE_DATE_EPOCH overrides
    /// its time.
    ///
    /// # Errors
    /// If git fails and the environment has no value instead.
    pub fn from_workspace() -> Result<Self> {
        let epoch = match variable("SOURCE_DATE_EPOCH") {
            Some(epoch) => epoch,
            None => last_commit("%ct")
                .context("set SOURCE_DATE_EPOCH where the sources are no git repository")?,
        };
        let maintainer = match (variable("DEBFULLNAME"), variable("DEBEMAIL")) {
            (Some(name), Some(address)) => format!("{name} <{address}>"),
            _ => last_commit("%an <%ae>")
                .context("set DEBFULLNAME and DEBEMAIL where the sources are no git repository")?,
        };
        Ok(Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            epoch: epoch
                .parse()
                .with_context(|| format!("SOURCE_DATE_EPOCH is no number: {epoch}"))?,
            maintainer,
        })
    }

    /// Returns the time of the release in the format of Debian changelogs.
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

/// Returns a property of the last commit, given as a format of `git log`.
fn last_commit(format: &str) -> Result<String> {
    let mut git = Command::new("git");
    git.current_dir(workspace());
    program::output(git.args(["log", "-1", &format!("--format={format}")]))
}
