//! Finds installed PostgreSQL versions, and reads the options by which the user chooses one to
//! build for.
use anyhow::{Context, Result, ensure};
use neardup_pgserver::{PgConfig, SUPPORTED};
use std::path::{Path, PathBuf};

/// Folder in which Debian and Ubuntu install PostgreSQL, with one folder for each major version.
const DEBIAN: &str = "/usr/lib/postgresql";

/// Options that choose the PostgreSQL to build for. Without them, it is the one that an environment
/// variable names, the one on PATH, or the newest of Debian's.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct PgChoice {
    /// The pg_config of the PostgreSQL to build for [default: $PG_CONFIG, $PGRX_PG_CONFIG_PATH, the
    /// one on PATH, the newest in /usr/lib/postgresql]
    #[arg(long, value_name = "PROGRAM", help_heading = "PostgreSQL")]
    pub pg_config: Option<PathBuf>,
    /// The major version of PostgreSQL to build for, installed on this machine or unpacked below
    /// target/; `test`, `package` and `release` take several, as in 16,17,18
    #[arg(
        long,
        value_name = "VERSION",
        value_delimiter = ',',
        help_heading = "PostgreSQL"
    )]
    #[arg(conflicts_with = "pg_config")]
    pub pg: Vec<u32>,
}

impl PgChoice {
    /// Returns the choice of one major version of PostgreSQL.
    pub fn major(major: u32) -> Self {
        Self {
            pg_config: None,
            pg: vec![major],
        }
    }

    /// Returns the chosen major version; `None` if the user did not choose one.
    ///
    /// # Errors
    /// If the user chose several versions, or a version that is not supported.
    pub fn only_major(&self) -> Result<Option<u32>> {
        ensure!(
            self.pg.len() < 2,
            "only `test`, `package` and `release` take several versions"
        );
        let major = self.pg.first().copied();
        if let Some(major) = major {
            let (first, last) = (SUPPORTED.start(), SUPPORTED.end());
            ensure!(
                SUPPORTED.contains(&major),
                "--pg {major}: neardup builds for PostgreSQL {first} to {last}"
            );
        }
        Ok(major)
    }
}

/// PostgreSQL installations that were found, from which the build chooses one.
pub struct Found {
    /// Installations, in order of preference.
    pub all: Vec<PgConfig>,
    /// True if the user named one installation. Then `all` has only that one.
    pub is_named: bool,
}

/// Finds the PostgreSQL installations that the user's choice allows.
///
/// # Errors
/// If an installation that the user named does not work.
pub fn find(choice: &PgChoice) -> Result<Found> {
    if let Some(program) = &choice.pg_config {
        let named =
            PgConfig::from_program(&absolute(program)?).context("--pg-config does not work")?;
        return Ok(Found {
            all: vec![named],
            is_named: true,
        });
    }
    let major = choice.only_major()?;
    let mut all: Vec<PgConfig> = named_by_environment()?.into_iter().collect();
    let is_named = major.is_none() && !all.is_empty();
    if !is_named {
        all.extend(installed());
    }
    all.retain(|pg| major.is_none_or(|major| pg.major == major));
    Ok(Found { all, is_named })
}

fn named_by_environment() -> Result<Option<PgConfig>> {
    for name in ["PG_CONFIG", "PGRX_PG_CONFIG_PATH"] {
        if let Some(program) = std::env::var_os(name).filter(|value| !value.is_empty()) {
            let named = PgConfig::from_program(&absolute(Path::new(&program))?)
                .with_context(|| format!("the environment variable {name} does not work"))?;
            return Ok(Some(named));
        }
    }
    Ok(None)
}

/// Returns the PostgreSQL installations of this machine whose `pg_config` works: first those on
/// PATH, then Debian's, newest first.
pub fn installed() -> Vec<PgConfig> {
    candidates()
        .iter()
        .filter_map(|program| PgConfig::from_program(program).ok())
        .collect()
}

/// Returns the absolute path of a program, as the build needs it. If `program` is a plain name,
/// such as `pg_config`, searches for it on PATH.
fn absolute(program: &Path) -> Result<PathBuf> {
    if program.components().count() == 1
        && let Some(found) = on_path().into_iter().find(|path| path.ends_with(program))
    {
        return Ok(found);
    }
    std::path::absolute(program).with_context(|| format!("cannot find {}", program.display()))
}

fn candidates() -> Vec<PathBuf> {
    let mut all = on_path();
    all.extend(
        newest_first(list(Path::new(DEBIAN)))
            .into_iter()
            .map(|version| Path::new(DEBIAN).join(version).join("bin/pg_config"))
            .filter(|path| path.is_file()),
    );
    all
}

fn on_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|dir| dir.join("pg_config"))
        .filter(|path| path.is_absolute() && path.is_file())
        .collect()
}

/// Returns the names of the entries of a folder. Empty if the folder does not exist.
fn list(dir: &Path) -> Vec<String> {
    std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect()
}

/// Sorts the names of version folders, such as `9.6` and `15`, by their major version, highest
/// first. Drops other names.
fn newest_first(names: Vec<String>) -> Vec<String> {
    let number = |name: &str| -> Option<u32> { name.split('.').next()?.parse().ok() };
    let mut versions: Vec<String> = names
        .into_iter()
        .filter(|name| number(name).is_some())
        .collect();
    versions.sort_by_key(|name| std::cmp::Reverse(number(name)));
    versions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_numbers() {
        let names = ["9.6", "15", "common", "10"].map(str::to_owned).to_vec();
        assert_eq!(newest_first(names), ["15", "10", "9.6"]);
    }

    #[test]
    fn a_program_named_in_vain_is_an_error() {
        let choice = PgChoice {
            pg_config: Some("/no/such/pg_config".into()),
            pg: Vec::new(),
        };
        let Err(error) = find(&choice) else {
            panic!("it was found");
        };
        assert!(format!("{error:#}").contains("/no/such/pg_config"));
    }

    #[test]
    fn one_supported_version_can_be_chosen() {
        assert_eq!(PgChoice::major(18).only_major().unwrap(), Some(18));
        assert_eq!(PgChoice::default().only_major().unwrap(), None);
        let error = PgChoice::major(14).only_major().unwrap_err().to_string();
        assert!(error.contains("15 to 18"), "{error}");
        let several = PgChoice {
            pg: vec![16, 17],
            ..PgChoice::default()
        };
        assert!(several.only_major().is_err());
    }
}
