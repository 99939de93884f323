//! Prepares a private copy of a PostgreSQL server with the extension, for the commands demo, test,
//! psql, torture and bench.
use crate::program::runs;
use crate::setup::PgChoice;
use crate::{cargo, extension, setup, signals, ui};
use anyhow::{Result, bail, ensure};
use neardup_pgserver::{Artifacts, Instance, Lock, OsUser, PgConfig, PrivateCopy, stop_leftovers};
use std::path::Path;

/// Private copy of a PostgreSQL installation in which the extension is installed.
pub struct Private {
    /// PostgreSQL that was copied, and that the extension was built for.
    pub pg: PgConfig,
    /// Library, control file and scripts of the extension.
    pub artifacts: Artifacts,
    /// Programs, folders and operating system user with which commands create servers.
    pub instance: Instance,
    /// True if Citus is installed in the copy too.
    pub has_citus: bool,
}

/// Finds or installs what the build needs, builds the extension, and installs it in a private copy
/// of the chosen PostgreSQL.
pub fn prepare(choice: &PgChoice) -> Result<Private> {
    prepare_with(choice, None)
}

/// Does the same as [`prepare`]. Also adds Citus to the copy if `citus` is given: the folder below
/// which Citus was installed by `make install DESTDIR=`.
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

/// Replaces the psql of the copy if it does not run, as the psql of one Python wheel does not. The
/// psql of any installed version works with the server.
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

/// Reserves for this command the names of servers in `dir` that begin with `purpose`. Stops servers
/// that an earlier run left running. Arranges that this command's own servers are stopped when a
/// signal ends the command.
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
