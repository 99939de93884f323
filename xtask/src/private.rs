//! Prepares a private copy of a PostgreSQL server with the extension, for the commands demo, test,
//! psql, torture and bench.
use crate::program::runs;
use crate::setup::PgChoice;
use crate::{cargo, extension, setup, signals, ui};
use anyhow::{Result, bail, ensure};
use neardup_pgserver::{Artifacts, Instance, Lock, OsUser, PgConfig, PrivateCopy, stop_leftovers};
use std::path::Path;

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
    prepare_with(choice, None)
}

/// Does the same as [`prepare`]. If `citus` is given, also adds Citus to the copy. `citus` is the
/// folder that was DESTDIR in `make install DESTDIR=` of Citus, or `/` if Citus is installed.
pub fn prepare_with(choice: &PgChoice, citus: Option<&Path>) -> Result<Private> {
    let pg = setup::run(choice)?.pg;
    let artifacts = extension::build(&pg)?;
    // The copy with Citus has another name, because a command that refreshes the copy without Citus
    // would remove Citus.
    let name = match citus {
        Some(_) => format!("{}-citus", pg.major),
        None => pg.major.to_string(),
    };
    let preferred = cargo::target_dir()?.join("pg").join(name);
    let user = OsUser::for_server()?;
    let copy = ui::step("Preparing a private copy of the server", || {
        let copy = PrivateCopy::make(&pg, &preferred, &user)?;
        copy.install(&artifacts)?;
        ensure_psql(&copy)?;
        if let Some(root) = citus {
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
        has_citus: citus.is_some(),
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
