//! `cargo xtask package`: makes binary packages of the extension, a source archive for users who
//! build it themselves, and the Python package. `cargo xtask release` makes all files of a release.
//! The same commit and compiler produce the same bytes in any folder.
mod build;
mod deb;
mod dist;
mod image;
mod licences;
mod manifest;
mod release;
mod rpm;
mod sbom;
mod source;
mod stage;
mod tarball;
mod trial;
mod wheel;

pub use dist::{Options as ReleaseOptions, command as release};
pub use wheel::{build_wheel, write_licences};

use crate::cargo;
use crate::extension;
use crate::setup::{self, PgChoice};
use anyhow::{Context, Result};
use licences::Licences;
use neardup_pgserver::PgConfig;
use release::Release;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Options of `cargo xtask package`.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Packages to make; deb needs Debian's package dpkg-dev
    #[arg(long, value_enum, value_delimiter = ',')]
    #[arg(default_values_t = [Format::Deb, Format::Tarball, Format::Source, Format::Wheel])]
    format: Vec<Format>,
    /// Folder for the made packages [default: target/package]
    #[arg(long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

/// Kind of package that the command can make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A Debian package for each version of the server
    Deb,
    /// An archive with an install script for each version of the server
    Tarball,
    /// An archive of the sources for PGXN, and a specification for rpmbuild
    Source,
    /// A wheel of the Python package, and an archive of its sources; gets maturin and zig from PyPI
    Wheel,
}

/// Extension that was built for one server. It has the files that all packages for this server
/// contain.
struct Built {
    /// Major version of the server.
    major: u32,
    /// Path of the built library, from which the symbols were removed.
    library: PathBuf,
    /// Paths of the control file and the SQL scripts.
    share: Vec<PathBuf>,
    licences: Licences,
}

/// Builds the extension for each chosen version, makes the chosen packages and prints their paths.
///
/// # Errors
/// If a program is missing, the build fails, or the library contains paths of this machine.
pub fn command(choice: &PgChoice, options: &Options) -> Result<ExitCode> {
    let release = Release::from_workspace()?;
    let work = cargo::target_dir()?.join("package");
    let output = options.output.as_ref().unwrap_or(&work);
    fs::create_dir_all(output).with_context(|| format!("cannot make {}", output.display()))?;
    let wants = |format| options.format.contains(&format);
    if wants(Format::Deb) {
        release.maintainer()?;
        deb::require_tools()?;
    }

    let mut made = Vec::new();
    if wants(Format::Source) {
        made.extend(source::make(&release, output)?);
    }
    if wants(Format::Wheel) {
        made.extend(wheel::make(&release, &work, output)?);
    }
    if wants(Format::Deb) || wants(Format::Tarball) {
        for server in servers(choice)? {
            let pg = setup::run(&server)?.pg;
            let built = build(&pg, &release, &work)?;
            let stage = work.join(format!("stage-pg{}", pg.major));
            if wants(Format::Deb) {
                made.push(deb::make(&built, &release, &stage.join("deb"), output)?);
            }
            if wants(Format::Tarball) {
                made.push(tarball::make(&built, &release, &stage, output)?);
            }
        }
    }
    for path in &made {
        println!("{}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Splits the user's choice into one choice for each server version to build for.
fn servers(choice: &PgChoice) -> Result<Vec<PgChoice>> {
    if choice.pg.is_empty() {
        return Ok(vec![choice.clone()]);
    }
    let choices: Vec<PgChoice> = choice.pg.iter().copied().map(PgChoice::major).collect();
    // Rejects unsupported versions before the first build.
    for choice in &choices {
        choice.only_major()?;
    }
    Ok(choices)
}

/// Builds the extension for the server `pg` in the folder `work`, and collects the files for the
/// packages of this server.
fn build(pg: &PgConfig, release: &Release, work: &Path) -> Result<Built> {
    let feature = pg.feature()?;
    let target = work.join(&feature);
    let variables = build::variables(Some(pg), release, &target)?;
    let artifacts = extension::build_in(pg, &target, &variables)?;
    let library = target.join("neardup.so");
    build::strip(&artifacts.library, &library)?;
    build::ensure_no_paths(&library)?;
    Ok(Built {
        major: pg.major,
        library,
        share: artifacts.share,
        licences: Licences::from_extension(&feature)?,
    })
}
