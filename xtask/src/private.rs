//! Prepares a private copy of a PostgreSQL server with the extension, for the commands demo, test,
//! psql, torture and bench.
use crate::program::runs;
use crate::setup::PgChoice;
use crate::{cargo, extension, setup, signals, ui};
use anyhow::{Result, bail, ensure};
use neardup_pgserver::{Artifacts, Instance, Lock, OsUser, PgConfig, PrivateCopy, stop_leftovers};
use std::path::{Path, PathBuf};

/// Options that change what a private copy contains.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Variant {
    /// Also test with Citus: PATH is the folder that the "make install DESTDIR=..." of Citus was
    /// given, or / if Citus is installed
    #[arg(long, value_name = "PATH")]
    pub citus: Option<PathBuf>,
    /// Build the extension for this target of Rust, because the server of --pg-config uses another
    /// C library than this system; for example x86_64-unknown-linux-musl
    #[arg(long, value_name = "TARGET")]
    pub target: Option<String>,
}

impl Variant {
    /// Returns the name of the copy's folder. Each variant has a folder of its own, because a
    /// command that refreshes one variant would remove files of another.
    fn folder(&self, major: u32) -> String {
        let citus = self.citus.as_ref().map(|_| "citus");
        let parts = [citus, self.target.as_deref()];
        let mut name = major.to_string();
        for part in parts.into_iter().flatten() {
            name += &format!("-{part}");
        }
        name
    }

    /// Builds the extension for `pg`.
    fn build(&self, pg: &PgConfig) -> Result<Artifacts> {
        let Some(target) = &self.target else {
            return extension::build(pg);
        };
        let variables = [("CARGO_BUILD_TARGET", target.into())];
        extension::build_for(pg, &cargo::target_dir()?, Some(target), &variables)
    }
}

/// Private copy of a PostgreSQL installation, with the extension in it.
pub struct Private {
    /// PostgreSQL installation that was copied. The extension was built for it.
    pub pg: PgConfig,
    /// Library, control file and scripts of the extension.
    pub artifacts: Artifacts,
    /// What commands need to create servers: the programs of the copy, the folder for data, and the
    /// operating system user.
    pub instance: Instance,
    /// True if Citus is installed in the copy too.
    pub has_citus: bool,
}

/// Finds or installs what the build needs, builds the extension, and installs it in a private copy
/// of the chosen PostgreSQL.
pub fn prepare(choice: &PgChoice) -> Result<Private> {
    prepare_with(choice, &Variant::default())
}

/// Does the same as [`prepare`], for a variant of the copy.
pub fn prepare_with(choice: &PgChoice, variant: &Variant) -> Result<Private> {
    let pg = setup::run(choice)?.pg;
    let artifacts = variant.build(&pg)?;
    let name = variant.folder(pg.major);
    let preferred = cargo::target_dir()?.join("pg").join(name);
    let user = OsUser::for_server()?;
    let copy = ui::step("Preparing a private copy of the server", || {
        let copy = PrivateCopy::make(&pg, &preferred, &user)?;
        copy.install(&artifacts)?;
        ensure_psql(&copy)?;
        if let Some(root) = &variant.citus {
            copy.link_installed(&pg, root)?;
            ensure!(
                copy.has_extension("citus"),
                "there is no Citus for {} in {}",
                pg.version,
                root.display()
            );
        }
        Ok(copy)
    })?;
    if !copy.root().starts_with(&preferred) {
        ui::note(format!(
            "in {}, as the user \"{}\" that the server runs under cannot reach {}",
            copy.root().display(),
            user.name(),
            preferred.display()
        ));
    }
    Ok(Private {
        pg,
        artifacts,
        instance: Instance::new(&copy, user),
        has_citus: variant.citus.is_some(),
    })
}

/// Ensures that the copy has a psql that runs. If its own psql does not run, replaces it by the
/// psql of another installation on this machine. One of the Python wheels that provide servers has
/// a psql that does not run. The psql of any version works with the server. Fails if no psql on
/// this machine runs.
pub fn ensure_psql(copy: &PrivateCopy) -> Result<()> {
    if runs(&copy.bindir().join("psql")) {
        return Ok(());
    }
    let others = setup::installed();
    let mut programs = others.iter().map(|other| other.bindir().join("psql"));
    match programs.find(|program| runs(program)) {
        Some(program) => copy.replace_client(&program),
        None => bail!("psql does not run: install PostgreSQL's client programs"),
    }
}

/// Reserves all server names in `dir` that begin with `purpose`, until the lock is dropped. Only
/// this command may then create servers with these names. Fails if another command has reserved
/// them. Stops servers that an earlier command left running. If a signal ends this command, its
/// servers are stopped too.
pub fn reserve_server_names(dir: &Path, purpose: &str) -> Result<Lock> {
    let Some(lock) = Lock::try_take(dir, purpose)? else {
        let holder = Lock::holder(dir, purpose).map_or(String::new(), |id| format!(" {id}"));
        bail!("another cargo xtask {purpose} (process{holder}) is running here");
    };
    let left = stop_leftovers(dir, purpose)?;
    if left > 0 {
        ui::note(format!(
            "stopped {left} server(s) that a killed run had left"
        ));
    }
    signals::sweep_on_signal(dir, purpose);
    Ok(lock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_variant_has_a_folder_of_its_own() {
        let folder = |citus: Option<&str>, target: Option<&str>| {
            let variant = Variant {
                citus: citus.map(PathBuf::from),
                target: target.map(str::to_owned),
            };
            variant.folder(15)
        };
        let musl = Some("x86_64-unknown-linux-musl");
        assert_eq!(folder(None, None), "15");
        assert_eq!(folder(Some("/"), None), "15-citus");
        assert_eq!(folder(None, musl), "15-x86_64-unknown-linux-musl");
        assert_eq!(
            folder(Some("/"), musl),
            "15-citus-x86_64-unknown-linux-musl"
        );
    }
}
