//! Requirements of the build: a PostgreSQL with its headers, and libclang for the bindings.
mod clang;
mod find;
mod packages;
mod wheels;

pub use find::{PgChoice, installed};
pub use packages::install_packages;

use crate::ui;
use anyhow::{Context, Result, bail};
use neardup_pgserver::PgConfig;
use std::fmt;
use std::process::ExitCode;

/// Tools that were found.
pub struct Setup {
    /// The PostgreSQL to build for.
    pub pg: PgConfig,
}

/// Something is missing that only the user can install; the text names the command.
#[derive(Debug)]
pub struct Missing(String);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Missing {}

/// A thing that the build needs and that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    /// PostgreSQL's server programs; the major version when one is settled already.
    Server(Option<u32>),
    /// The server's header files; the major version as above.
    Headers(Option<u32>),
    /// libclang with its own header files.
    Libclang,
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(None) => f.write_str("a PostgreSQL server"),
            Self::Server(Some(major)) => write!(f, "the PostgreSQL {major} server"),
            Self::Headers(None) => f.write_str("the server's header files"),
            Self::Headers(Some(major)) => write!(f, "the header files of PostgreSQL {major}"),
            Self::Libclang => f.write_str("libclang (reads the header files for the bindings)"),
        }
    }
}

/// `cargo xtask setup`: prints the settings that plain cargo needs, for `eval` in a shell.
pub fn command(choice: &PgChoice) -> Result<ExitCode> {
    let setup = run(choice)?;
    ui::heading(format!(
        "{} ({}), headers and libclang are there",
        setup.pg.version,
        setup.pg.program.display()
    ));
    let program = setup.pg.program.display().to_string();
    println!(
        "export PGRX_PG_CONFIG_PATH='{}'",
        program.replace('\'', r"'\''")
    );
    println!("export NEARDUP_PG_FEATURE={}", setup.pg.feature()?);
    Ok(ExitCode::SUCCESS)
}

/// Finds what the build needs, and installs what is missing where that is possible.
///
/// # Errors
/// [`Missing`] when the user has to install something.
pub fn run(choice: &PgChoice) -> Result<Setup> {
    let found = find::postgres(choice)?;
    let mut needs = Vec::new();
    match &found {
        None => {
            let major = choice.only_major()?;
            needs.extend([Need::Server(major), Need::Headers(major)]);
        }
        Some(pg) => {
            pg.feature()?;
            if !pg.has_server() {
                needs.push(Need::Server(Some(pg.major)));
            }
            if !pg.has_headers() {
                needs.push(Need::Headers(Some(pg.major)));
            }
        }
    }
    if !clang::is_installed() {
        needs.push(Need::Libclang);
    }
    match found {
        Some(pg) if needs.is_empty() => return Ok(Setup { pg }),
        Some(pg) => packages::provide(&needs, Some(&pg))?,
        None => packages::provide(&needs, None)?,
    }

    let pg = find::postgres(choice)?
        .context("the packages are installed, but no pg_config is to be found")?;
    pg.feature()?;
    for (there, what) in [
        (pg.has_server(), pg.bindir().join("postgres")),
        (pg.has_headers(), pg.server_headers().join("postgres.h")),
    ] {
        if !there {
            bail!(
                "the packages are installed, but there is no {}",
                what.display()
            );
        }
    }
    if !clang::is_installed() {
        bail!("the packages are installed, but no libclang is to be found; set LIBCLANG_PATH");
    }
    Ok(Setup { pg })
}
