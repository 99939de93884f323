//! From nothing to a private server with the extension: what demo, test and psql have in common.
use crate::program::runs;
use crate::setup::PgChoice;
use crate::{cargo, extension, setup, signals, ui};
use anyhow::{Result, bail, ensure};
use neardup_pgserver::{Artifacts, Instance, Lock, OsUser, PgConfig, PrivateCopy, stop_leftovers};
use std::path::Path;

/// A private copy of the server into which the extension has been built and installed.
pub struct Private {
    /// The PostgreSQL that it was built for.
    pub pg: PgConfig,
    /// The extension's files.
    pub artifacts: Artifacts,
    /// Where servers can be made.
    pub instance: Instance,
    /// The copy has Citus as well.
    pub has_citus: bool,
}

/// Set-up, build, private copy, installation into the copy.
pub fn prepare(choice: &PgChoice) -> Result<Private> {
    prepare_with(choice, None)
}

/// As [`prepare`], with Citus out of the folder that its `make install DESTDIR=` was given, if any.
pub fn prepare_with(choice: &PgChoice, citus: Option<&Path>) -> Result<Private> {
    let pg = setup::run(choice)?.pg;
    let artifacts = extension::build(&pg)?;
    let preferred = cargo::target_dir()?.join("pg").join(pg.major.to_string());
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

/// Sees to it that the copy's psql runs: that of one wheel does not, and any version's will do.
fn ensure_psql(copy: &PrivateCopy) -> Result<()> {
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

/// Takes the names of servers in `dir` that begin with `purpose` for this command: whatever an
/// earlier run left running there is stopped, and so is what runs when a signal ends this one.
pub fn take(dir: &Path, purpose: &str) -> Result<Lock> {
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
