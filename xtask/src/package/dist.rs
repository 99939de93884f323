//! `cargo xtask release`: makes every file of a release in one folder, installs and uses each file
//! that this machine can use, and writes a manifest that states the result for each.
use super::manifest::{Artefact, Manifest, Outcome};
use super::release::Release;
use super::trial::Trial;
use super::{deb, image, rpm, sbom, servers, source, stage, tarball, trial, wheel};
use crate::cargo::{cargo, target_dir, workspace};
use crate::setup::{self, PgChoice};
use crate::{check, program, ui};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Options of `cargo xtask release`.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Do not fail if the release lacks something, or if a file cannot be made or does not work;
    /// report it and make the other files
    #[arg(long)]
    dry_run: bool,
    /// Folder for the files, which is emptied first [default: target/release-files]
    #[arg(long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

/// Makes the files for each server version that the user chose, and prints the manifest.
///
/// # Errors
/// Without `--dry-run`: if the release lacks something (see [`obstacles`]), if a file cannot be
/// made, or if a file that this machine can try does not work.
pub fn command(choice: &PgChoice, options: &Options) -> Result<ExitCode> {
    let release = Release::from_workspace()?;
    let obstacles = obstacles(&release)?;
    if !options.dry_run {
        ensure!(obstacles.is_empty(), "\n{}", obstacles.join("\n"));
    }
    obstacles.iter().for_each(ui::note);
    let target = target_dir()?;
    let output = match &options.output {
        Some(folder) => std::path::absolute(folder)?,
        None => target.join("release-files"),
    };
    stage::empty(&output)?;
    let work = target.join("package");
    let mut manifest = Manifest::default();
    portable_files(&mut manifest, &release, &work, &output);
    for (index, server) in servers(choice)?.iter().enumerate() {
        let is_first = index == 0;
        server_files(&mut manifest, server, &release, &work, &output, is_first)?;
    }
    manifest.write(&output)?;
    print!("{}", manifest.text()?);
    let complete = manifest.is_complete();
    ensure!(complete || options.dry_run, "some files are missing");
    Ok(ExitCode::SUCCESS)
}

/// Returns reasons that prevent a release: the project has no address, the changelog has no date,
/// there is no maintainer, or some changes are not committed.
fn obstacles(release: &Release) -> Result<Vec<String>> {
    let mut obstacles = Vec::from_iter(check::lacking_for_release()?);
    obstacles.extend(release.maintainer().err().map(|error| error.to_string()));
    let mut git = Command::new("git");
    git.current_dir(workspace())
        .args(["status", "--porcelain", "--untracked-files=no"]);
    if !program::output(&mut git)?.is_empty() {
        obstacles.push("some changes are not committed".to_owned());
    }
    Ok(obstacles)
}

/// Makes the files that do not depend on the version of the server: sources, Python package, crate
/// and list of components. Writes them to the folder `output`, and records them in `manifest`.
/// `work` is the folder for builds.
fn portable_files(manifest: &mut Manifest, release: &Release, work: &Path, output: &Path) {
    manifest.record("sources for PGXN and rpmbuild", || {
        let files = source::make(release, output)?;
        let unused = "rpmbuild tries them below, if this machine has it";
        Ok(Artefact::all_built(files, unused))
    });
    manifest.record("package for Python", || {
        let files = wheel::make(release, work, output)?;
        let use_file = |file: PathBuf| {
            let state = trial::python(&file, &work.join("trial-python"));
            Artefact::tried(file, state)
        };
        Ok(files.into_iter().map(use_file).collect())
    });
    manifest.record("crate", || {
        let file = pack_crate(release, work, output)?;
        let state = trial::rust(&file, release, work);
        Ok(vec![Artefact::tried(file, state)])
    });
    manifest.record("list of components (CycloneDX)", || {
        let file = sbom::make(release, work, output)?;
        Ok(vec![Artefact::built(file, "nothing to run")])
    });
}

/// Makes the packages for the server that `server` chooses in the folder `output`, and records them
/// in `manifest`. `work` is the folder for builds.
///
/// The package for rpm becomes part of the release only if the server comes from PostgreSQL's own
/// rpm packages. Another server has other folders than the servers of the users, and the package
/// would install its files into these wrong folders. If `is_first` is true, the function still
/// makes and tries the package for such a server, as a test of the specification for rpmbuild.
fn server_files(
    manifest: &mut Manifest,
    server: &PgChoice,
    release: &Release,
    work: &Path,
    output: &Path,
    is_first: bool,
) -> Result<()> {
    let pg = setup::run(server)?.pg;
    let name = format!("PostgreSQL {}", pg.major);
    let trial = Trial::new(&pg, &work.join(format!("trial-pg{}", pg.major)))?;
    let stage = work.join(format!("stage-pg{}", pg.major));
    manifest.record(&format!("binary packages for {name}"), || {
        let built = super::build(&pg, release, work)?;
        let archive = tarball::make(&built, release, &stage, output)?;
        let state = trial.archive(&archive, &stage);
        let package = deb::require_tools()
            .and_then(|()| deb::make(&built, release, &stage.join("deb"), output));
        let package = tried("package for Debian", package, |it| trial.debian(it, &stage));
        let mut files = vec![Artefact::tried(archive.clone(), state), package];
        if image::is_for(pg.major) {
            let image = image::make(&built, &archive, release, &stage, output);
            files.push(tried("image of the extension", image, |it| trial.image(it)));
        }
        Ok(files)
    });
    if is_first || rpm::is_for_users(&pg) {
        manifest.record(&format!("package for rpm, {name}"), || {
            let package = rpm::make(&pg, work, output)?;
            let outcome = trial.rpm(&package);
            if !rpm::is_for_users(&pg) {
                let what = "neardup.spec (its package has the folders of this server)";
                return Ok(vec![Artefact::tried(what.into(), outcome)]);
            }
            let to = output.join(package.file_name().unwrap_or_default());
            stage::copy(&package, &to, 0o644)?;
            Ok(vec![Artefact::tried(to, outcome)])
        });
    }
    Ok(())
}

/// Returns the entry of a file that `made` contains if it could be made. `what` describes the file,
/// and `attempt` tries it.
fn tried(
    what: &str,
    made: Result<PathBuf>,
    attempt: impl FnOnce(&Path) -> Result<Outcome>,
) -> Artefact {
    match made {
        Ok(file) => {
            let outcome = attempt(&file);
            Artefact::tried(file, outcome)
        }
        Err(error) => Artefact::missing(what, &error),
    }
}

/// Packs the crate `neardup-sketch` for crates.io, into the folder `output`. `work` is the folder
/// for builds. The other crates of the workspace are not published.
fn pack_crate(release: &Release, work: &Path, output: &Path) -> Result<PathBuf> {
    let target = work.join("crate");
    // Cargo's own verification compiles the packed files, and so does the trial.
    program::run(
        cargo()
            .args(["package", "--package", "neardup-sketch"])
            .args(["--no-verify", "--allow-dirty", "--quiet", "--target-dir"])
            .arg(&target)
            .env("SOURCE_DATE_EPOCH", release.epoch.to_string()),
    )
    .context("cargo cannot pack the crate")?;
    let name = format!("neardup-sketch-{}.crate", release.version);
    let to = output.join(&name);
    stage::copy(&target.join("package").join(name), &to, 0o644)?;
    Ok(to)
}
