//! Version, time and maintainer of a release, from the workspace and its last commit.
use crate::cargo::workspace;
use crate::program;
use anyhow::{Context, Result};
use std::process::Command;

/// Data that all packages of a release contain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// Version of the extension, for example 0.1.0.
    pub version: String,
    /// Time of the release in every package, in seconds since 1970.
    pub epoch: u64,
    /// Name and address: DEBFULLNAME and DEBEMAIL, or the author of the last commit.
    pub maintainer: String,
}

impl Release {
    /// Reads the release of the last commit. SOURCE_DATE_EPOCH overrides its time.
    ///
    /// # Errors
    /// If git fails and the environment does not have the value.
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

    /// Returns the time in the format of Debian changelogs.
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

/// Returns a property of the last commit, in git's format.
fn last_commit(format: &str) -> Result<String> {
    let mut git = Command::new("git");
    git.current_dir(workspace());
    program::output(git.args(["log", "-1", &format!("--format={format}")]))
}
