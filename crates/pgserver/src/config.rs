//! Versions and folders of an installed PostgreSQL, as `pg_config` prints them.
use anyhow::{Context, Result, bail};
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Major versions of PostgreSQL that the extension can be built for.
pub const SUPPORTED: RangeInclusive<u32> = 15..=18;

/// An installed PostgreSQL, as its program `pg_config` describes it.
#[derive(Debug, Clone)]
pub struct PgConfig {
    /// Path of the `pg_config` program that printed the values of the other fields.
    pub program: PathBuf,
    /// Major version of PostgreSQL, for example 15.
    pub major: u32,
    /// Full version of PostgreSQL, for example `PostgreSQL 15.6`.
    pub version: String,
    /// Values that `pg_config` prints besides the version, by name. Most are paths of folders.
    values: HashMap<String, PathBuf>,
}

impl PgConfig {
    /// Runs the `pg_config` program at this path and parses its output.
    ///
    /// # Errors
    /// When the program cannot be run, fails, or does not print a version and the required folders.
    pub fn from_program(program: &Path) -> Result<Self> {
        let output = Command::new(program)
            .env("LC_ALL", "C")
            .output()
            .with_context(|| format!("cannot run {}", program.display()))?;
        if !output.status.success() {
            bail!(
                "{} failed ({}): {}",
                program.display(),
                output.status,
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        Self::parse(program, &String::from_utf8_lossy(&output.stdout))
            .with_context(|| format!("cannot use the answer of {}", program.display()))
    }

    /// Parses the text that `program`, a `pg_config`, prints when called without arguments.
    ///
    /// # Errors
    /// When the version or a required folder is missing, or a folder is not an absolute path.
    fn parse(program: &Path, text: &str) -> Result<Self> {
        let mut values = HashMap::new();
        let mut version = None;
        for line in text.lines() {
            // Split at the first " = ", because values such as CONFIGURE may also contain it.
            let Some((name, value)) = line.split_once(" = ") else {
                continue;
            };
            if name == "VERSION" {
                version = Some(value.trim().to_owned());
            } else {
                values.insert(name.trim().to_owned(), PathBuf::from(value.trim()));
            }
        }
        let version = version.context("it states no VERSION")?;
        let major = major_version(&version)
            .with_context(|| format!("\"{version}\" names no version number"))?;
        for name in ["BINDIR", "PKGLIBDIR", "SHAREDIR", "INCLUDEDIR-SERVER"] {
            match values.get(name) {
                Some(path) if path.is_absolute() => {}
                Some(path) => bail!("{name} is not an absolute path: {}", path.display()),
                None => bail!("it states no {name}"),
            }
        }
        Ok(Self {
            program: program.to_owned(),
            major,
            version,
            values,
        })
    }

    /// Returns the value that `pg_config` prints under `name`; an empty path if there is none.
    fn value(&self, name: &str) -> &Path {
        // `parse` has checked that the required folders exist.
        self.values
            .get(name)
            .map_or(Path::new(""), PathBuf::as_path)
    }

    /// Folder of the installed programs (`BINDIR`).
    pub fn bindir(&self) -> &Path {
        self.value("BINDIR")
    }

    /// Folder of loadable modules (`PKGLIBDIR`), which SQL calls `$libdir`.
    pub fn pkglibdir(&self) -> &Path {
        self.value("PKGLIBDIR")
    }

    /// File name extension of loadable modules: `so`, or `dylib` on macOS from PostgreSQL 16 on.
    pub fn library_suffix(&self) -> &'static str {
        library_suffix(std::env::consts::OS, self.major)
    }

    /// Folder of architecture-independent files (`SHAREDIR`). Its subfolder `extension` has the
    /// control files and scripts of extensions.
    pub fn sharedir(&self) -> &Path {
        self.value("SHAREDIR")
    }

    /// Folder of the server's header files (`INCLUDEDIR-SERVER`).
    pub fn server_headers(&self) -> &Path {
        self.value("INCLUDEDIR-SERVER")
    }

    /// Returns whether the server's programs are installed. A client-only installation has none.
    pub fn has_server(&self) -> bool {
        ["postgres", "initdb", "pg_ctl"]
            .iter()
            .all(|name| self.bindir().join(name).is_file())
    }

    /// Returns whether the server's header files are installed.
    pub fn has_headers(&self) -> bool {
        self.server_headers().join("postgres.h").is_file()
    }

    /// Returns the path of a program of PostgreSQL's test suite, for example `regress/pg_regress`;
    /// `None` if it is not installed.
    pub fn test_program(&self, name: &str) -> Option<PathBuf> {
        // The PGXS value is .../src/makefiles/pgxs.mk, and the test programs are in .../src/test.
        let source = self.value("PGXS").parent()?.parent()?;
        Some(source.join("test").join(name)).filter(|path| path.is_file())
    }

    /// Returns the Cargo feature of the extension that selects this major version, for example
    /// `pg15`.
    ///
    /// # Errors
    /// When the major version is not in [`SUPPORTED`].
    pub fn feature(&self) -> Result<String> {
        if !SUPPORTED.contains(&self.major) {
            bail!(
                "{} is not supported: neardup builds for PostgreSQL {} to {} (asked {})",
                self.version,
                SUPPORTED.start(),
                SUPPORTED.end(),
                self.program.display()
            );
        }
        Ok(format!("pg{}", self.major))
    }
}

/// Returns the file name extension of loadable modules (`DLSUFFIX`) for the major version `major`
/// of PostgreSQL. `system` is Rust's name of the operating system.
fn library_suffix(system: &str, major: u32) -> &'static str {
    match (system, major) {
        ("macos", 16..) => "dylib",
        _ => "so",
    }
}

/// Parses the major version from a text such as `PostgreSQL 15.6 (Debian ...)` or
/// `PostgreSQL 18beta1`.
fn major_version(version: &str) -> Option<u32> {
    let number = version.split_whitespace().nth(1)?;
    let digits: &str = &number[..number
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(number.len())];
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = "BINDIR = /usr/lib/postgresql/15/bin
INCLUDEDIR-SERVER = /usr/include/postgresql/15/server
PKGLIBDIR = /usr/lib/postgresql/15/lib
SHAREDIR = /usr/share/postgresql/15
PGXS = /usr/lib/postgresql/15/lib/pgxs/src/makefiles/pgxs.mk
CONFIGURE =  '--prefix=/usr' 'CFLAGS = -g'
LDFLAGS_EX = 
VERSION = PostgreSQL 15.20 (Debian 15.20-0+deb12u1)
";

    #[test]
    fn reads_folders_and_version() {
        let config = PgConfig::parse(Path::new("pg_config"), ANSWER).unwrap();
        assert_eq!(config.major, 15);
        assert_eq!(config.feature().unwrap(), "pg15");
        assert_eq!(config.bindir(), Path::new("/usr/lib/postgresql/15/bin"));
        assert_eq!(config.sharedir(), Path::new("/usr/share/postgresql/15"));
    }

    #[test]
    fn reads_versions_of_betas_and_development() {
        assert_eq!(major_version("PostgreSQL 18beta1"), Some(18));
        assert_eq!(major_version("PostgreSQL 19devel"), Some(19));
        assert_eq!(major_version("PostgreSQL 9.6.24"), Some(9));
        assert_eq!(major_version("PostgreSQL"), None);
        assert_eq!(major_version("PostgreSQL devel"), None);
    }

    #[test]
    fn libraries_are_named_as_the_server_looks_for_them() {
        assert_eq!(library_suffix("macos", 15), "so");
        assert_eq!(library_suffix("macos", 16), "dylib");
        assert_eq!(library_suffix("linux", 18), "so");
    }

    #[test]
    fn refuses_versions_outside_the_range() {
        let old = ANSWER.replace("15.20 ", "13.1 ");
        let config = PgConfig::parse(Path::new("pg_config"), &old).unwrap();
        let message = config.feature().unwrap_err().to_string();
        assert!(message.contains("13.1"), "{message}");
        assert!(message.contains("15 to 18"), "{message}");
    }

    #[test]
    fn names_what_is_missing() {
        for name in ["VERSION", "SHAREDIR", "BINDIR"] {
            let cut: String = ANSWER
                .lines()
                .filter(|line| !line.starts_with(name))
                .flat_map(|line| [line, "\n"])
                .collect();
            let message = PgConfig::parse(Path::new("pg_config"), &cut)
                .unwrap_err()
                .to_string();
            assert!(message.contains(name), "{message}");
        }
    }
}
