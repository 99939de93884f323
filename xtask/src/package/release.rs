//! Version, moment and maintainer of a release, from the workspace and its last commit.
use crate::cargo::workspace;
use crate::program;
use anyhow::{Context, Result};
use std::process::Command;

/// Facts that all packages of a release state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// The extension's version, for example 0.1.0.
    pub version: String,
    /// Seconds since 1970 that stand for the moment of the release in every package.
    pub epoch: u64,
    /// Name and address: DEBFULLNAME and DEBEMAIL, or else the author of the last commit.
    pub maintainer: String,
}

impl Release {
    /// The release of the last commit; SOURCE_DATE_EPOCH, if set, is its moment.
    ///
    /// # Errors
    /// If git cannot be asked and the environment does not say.
    pub fn of_workspace() -> Result<Self> {
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

    /// The version of Debian's packages: that of the extension, and the number of the packaging.
    pub fn debian_version(&self) -> String {
        format!("{}-1", self.version)
    }

    /// The moment as Debian's changelogs have it.
    pub fn rfc_date(&self) -> String {
        rfc_date(self.epoch)
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// A property of the last commit, in git's format.
fn last_commit(format: &str) -> Result<String> {
    let mut git = Command::new("git");
    git.current_dir(workspace());
    program::output(git.args(["log", "-1", &format!("--format={format}")]))
}

/// A moment in the format of RFC 5322, in UTC.
fn rfc_date(epoch: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let (days, second) = (epoch / 86_400, epoch % 86_400);
    let (mut year, mut day) = (1970, days);
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [
        31,
        28 + u64::from(is_leap(year)),
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ];
    let mut month = 0;
    while day >= lengths[month] {
        day -= lengths[month];
        month += 1;
    }
    format!(
        "{}, {:02} {} {year} {:02}:{:02}:{:02} +0000",
        DAYS[(days % 7) as usize],
        day + 1,
        MONTHS[month],
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(rfc_date(0), "Thu, 01 Jan 1970 00:00:00 +0000");
        assert_eq!(rfc_date(951_782_399), "Mon, 28 Feb 2000 23:59:59 +0000");
        assert_eq!(rfc_date(951_782_400), "Tue, 29 Feb 2000 00:00:00 +0000");
        assert_eq!(rfc_date(1_795_352_264), "Sun, 22 Nov 2026 12:57:44 +0000");
        assert_eq!(rfc_date(4_107_542_400), "Mon, 01 Mar 2100 00:00:00 +0000");
    }
}
