//! Which PostgreSQL to build for.
use anyhow::{Context, Result};
use neardup_pgserver::{PgConfig, SUPPORTED};
use std::path::{Path, PathBuf};

/// Where Debian and Ubuntu keep their versions side by side.
const DEBIAN: &str = "/usr/lib/postgresql";

/// The PostgreSQL that the flag or the environment names; else the one on PATH, or the newest of
/// Debian's, preferring one that has a server and is supported. `None` when there is none at all.
///
/// # Errors
/// When the one named does not work.
pub fn postgres(flag: Option<&Path>) -> Result<Option<PgConfig>> {
    if let Some(program) = flag {
        let named = PgConfig::ask(&absolute(program)?).context("--pg-config does not work")?;
        return Ok(Some(named));
    }
    for name in ["PG_CONFIG", "PGRX_PG_CONFIG_PATH"] {
        if let Some(program) = std::env::var_os(name).filter(|value| !value.is_empty()) {
            let named = PgConfig::ask(&absolute(Path::new(&program))?)
                .with_context(|| format!("the environment variable {name} does not work"))?;
            return Ok(Some(named));
        }
    }
    let found: Vec<PgConfig> = candidates()
        .iter()
        .filter_map(|program| PgConfig::ask(program).ok())
        .collect();
    let usable = |pg: &&PgConfig| pg.has_server() && SUPPORTED.contains(&pg.major);
    let best = found.iter().find(usable).or(found.first());
    Ok(best.cloned())
}

/// A plain name such as `pg_config` is looked for on PATH; the build needs a full path.
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

/// The names of a folder's entries; empty when there is no such folder.
fn list(dir: &Path) -> Vec<String> {
    std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect()
}

/// Version folders such as `9.6` and `15`, highest first.
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
        let error = postgres(Some(Path::new("/no/such/pg_config"))).unwrap_err();
        assert!(format!("{error:#}").contains("/no/such/pg_config"));
    }
}
