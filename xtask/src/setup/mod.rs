//! Finds or installs what the build of the extension needs: a PostgreSQL server with its header
//! files, and libclang for the bindings.
mod apt;
mod clang;
mod find;
mod folders;
pub mod os_release;
mod packages;
mod private;
mod wheels;

pub use apt::extract;
pub use find::{PgChoice, installed};
pub use packages::install_packages;

use crate::ui;
use anyhow::{Result, bail};
use neardup_pgserver::{PgConfig, SUPPORTED, is_root};
use std::fmt;
use std::process::ExitCode;

/// Requirements of the build, all of which were found.
pub struct Setup {
    /// PostgreSQL to build for, with its header files.
    pub pg: PgConfig,
}

/// Error: something that the build requires is missing, and only the user can install it. The text
/// names the command to type.
#[derive(Debug)]
pub struct Missing(String);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Missing {}

/// Prefix of commands in messages, for commands that must be run as root: `sudo `, or nothing if
/// this user is root.
fn sudo() -> &'static str {
    if is_root() { "" } else { "sudo " }
}

/// Missing requirement of the build that packages can provide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    /// PostgreSQL's server programs, of this major version if it is known.
    Server(Option<u32>),
    /// Header files of the server, of this major version if it is known.
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

/// Runs `cargo xtask setup`: prints the environment variables that plain cargo needs, as shell
/// commands for `eval`.
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

/// Finds what the build needs. If something is missing, installs packages, or unpacks a server
/// below `target/`, where that is possible.
///
/// # Errors
/// [`Missing`] if the user has to install something.
pub fn run(choice: &PgChoice) -> Result<Setup> {
    provide(choice, true)
}

/// Does the same as [`run`], but only for a server that is installed on this machine. Never unpacks
/// a server below `target/`.
///
/// # Errors
/// Like [`run`].
pub fn run_for_installed(choice: &PgChoice) -> Result<Setup> {
    provide(choice, false)
}

fn provide(choice: &PgChoice, may_unpack: bool) -> Result<Setup> {
    let (found, source) = choose(choice, may_unpack)?;
    let mut needs = Vec::new();
    if source == Source::Packages {
        let first = found.first();
        let major = choice.only_major()?.or(first.map(|pg| pg.major));
        needs.push(Need::Server(major));
        if !first.is_some_and(PgConfig::has_headers) {
            needs.push(Need::Headers(major));
        }
    }
    if !clang::is_installed() {
        needs.push(Need::Libclang);
    }
    if !needs.is_empty() {
        packages::provide(&needs, found.first())?;
    }
    if !clang::is_installed() {
        bail!("the packages are installed, but no libclang is to be found; set LIBCLANG_PATH");
    }
    let (mut found, source) = choose(choice, may_unpack)?;
    let pg = match source {
        Source::Installed(index) => found.swap_remove(index),
        Source::Private(major) => private::server(major, found.iter().any(packages::has_packages))?,
        Source::Packages => {
            bail!("the packages are installed, but no PostgreSQL with its headers is to be found")
        }
    };
    Ok(Setup { pg })
}

/// Finds the installations that `choice` allows, and chooses where the server comes from. Returns
/// both. A server may be unpacked below `target/` only if `may_unpack` is true and the user has not
/// named an installation.
fn choose(choice: &PgChoice, may_unpack: bool) -> Result<(Vec<PgConfig>, Source)> {
    let found = find::find(choice)?;
    if let Some(first) = found.all.first()
        && !found.all.iter().any(|pg| pg.feature().is_ok())
    {
        first.feature()?;
    }
    let parts: Vec<Parts> = found.all.iter().map(Parts::from_config).collect();
    let may_unpack = may_unpack && !found.is_named;
    match source(&parts, choice.only_major()?, may_unpack) {
        Ok(source) => Ok((found.all, source)),
        Err(Incomplete(index)) => Err(packages::no_headers(&found.all[index])),
    }
}

/// What one installed PostgreSQL has: its major version, and the parts that a build needs.
#[derive(Debug, Clone, Copy)]
struct Parts {
    major: u32,
    /// True if the installation has the server programs.
    server: bool,
    /// True if the installation has the server's header files.
    headers: bool,
}

impl Parts {
    fn from_config(pg: &PgConfig) -> Self {
        Self {
            major: pg.major,
            server: pg.has_server(),
            headers: pg.has_headers(),
        }
    }
}

/// Where the server and its header files come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The installation at this index of the list of found installations. It has the server and the
    /// header files.
    Installed(usize),
    /// A server of this major version, which is unpacked below `target/`.
    Private(u32),
    /// Packages of the system, which must be installed first. No supported server is installed.
    Packages,
}

/// Error: the installation at this index of the list of found installations has a server without
/// header files, and the caller does not allow unpacking another server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Incomplete(usize);

/// Chooses where the server comes from. `found` are the installations in order of preference.
/// `major` is the major version that the user chose, if any. A server may be unpacked below
/// `target/` only if `may_unpack` is true.
///
/// Never installs header files for an installed server. They require libraries of the same minor
/// version, so apt-get would upgrade the server.
fn source(found: &[Parts], major: Option<u32>, may_unpack: bool) -> Result<Source, Incomplete> {
    let is_server = |one: &Parts| one.server && SUPPORTED.contains(&one.major);
    let first = found.iter().position(is_server);
    let complete = found.iter().position(|one| is_server(one) && one.headers);
    match (first, complete) {
        (_, Some(index)) if may_unpack || first == complete => Ok(Source::Installed(index)),
        (Some(index), _) if may_unpack => Ok(Source::Private(found[index].major)),
        (Some(index), _) => Err(Incomplete(index)),
        (None, _) => Ok(match major {
            Some(major) if may_unpack && wheels::of_major(major).is_some() => {
                Source::Private(major)
            }
            _ => Source::Packages,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn parts(major: u32, server: bool, headers: bool) -> Parts {
        Parts {
            major,
            server,
            headers,
        }
    }

    #[test]
    fn an_installed_server_is_never_completed_by_packages() {
        for major in [15, 16, 17, 18] {
            let without_headers = [parts(major, true, false)];
            for chosen in [None, Some(major)] {
                let unpacked = source(&without_headers, chosen, true);
                assert_eq!(unpacked, Ok(Source::Private(major)));
                let refused = source(&without_headers, chosen, false);
                assert_eq!(refused, Err(Incomplete(0)));
            }
        }
    }

    #[test]
    fn a_complete_server_is_used_as_it_is() {
        let found = [parts(17, true, false), parts(15, true, true)];
        assert_eq!(source(&found, None, true), Ok(Source::Installed(1)));
        // `cargo xtask install` builds for the first server only.
        assert_eq!(source(&found, None, false), Err(Incomplete(0)));
        assert_eq!(source(&found[1..], None, false), Ok(Source::Installed(0)));
        let unsupported = [parts(14, true, true), parts(16, true, true)];
        assert_eq!(source(&unsupported, None, true), Ok(Source::Installed(1)));
    }

    #[test]
    fn packages_serve_only_where_no_server_is_installed() {
        let client = [parts(15, false, true)];
        for found in [&[][..], &client] {
            for may_unpack in [true, false] {
                assert_eq!(source(found, None, may_unpack), Ok(Source::Packages));
            }
        }
        assert_eq!(source(&[], Some(18), true), Ok(Source::Private(18)));
        assert_eq!(source(&[], Some(18), false), Ok(Source::Packages));
    }
}
