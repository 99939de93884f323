//! Properties of an installed server, as `pg_config` prints them.
use anyhow::{Context, Result, bail};
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The major versions of PostgreSQL that the extension can be built for.
pub const SUPPORTED: RangeInclusive<u32> = 15..=18;

/// One installed PostgreSQL, as its `pg_config` describes it.
#[derive(Debug, Clone)]
pub struct PgConfig {
    /// The `pg_config` program that was asked.
    pub program: PathBuf,
    /// Major version, for example 15.
    pub major: u32,
    /// The version as the server writes it, for example `PostgreSQL 15.6`.
    pub version: String,
    values: HashMap<String, PathBuf>,
}

impl PgConfig {
    /// Runs `program` and reads its answer.
    ///
    /// # Errors
    /// When the program cannot be run, fails, or does not state a version and the folders needed.
    pub fn ask(program: &Path) -> Result<Self> {
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

    /// Reads the text that `pg_config` prints when called without arguments.
    ///
    /// # Errors
    /// When the version or one of the folders is missing or not absolute.
    fn parse(program: &Path, text: &str) -> Result<Self> {
        let mut values = HashMap::new();
        let mut version = None;
        for line in text.lines() {
            // Values may contain " = " themselves (CONFIGURE does); the first one separates.
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

    fn value(&self, name: &str) -> &Path {
        // `parse` has checked that the four names used below exist.
        self.values
            .get(name)
            .map_or(Path::new(""), PathBuf::as_path)
    }

    /// Folder of the programs.
    pub fn bindir(&self) -> &Path {
        self.value("BINDIR")
    }

    /// Folder of loadable modules, `$libdir`.
    pub fn pkglibdir(&self) -> &Path {
        self.value("PKGLIBDIR")
    }

    /// The ending of loadable modules' names: `so`, on macOS from PostgreSQL 16 on `dylib`.
    pub fn library_suffix(&self) -> &'static str {
        library_suffix(std::env::consts::OS, self.major)
    }

    /// Folder of architecture-independent files. Its `extension/` has the extensions.
    pub fn sharedir(&self) -> &Path {
        self.value("SHAREDIR")
    }

    /// Folder of the server's header files.
    pub fn server_headers(&self) -> &Path {
        self.value("INCLUDEDIR-SERVER")
    }

    /// Returns whether the server's programs are installed (a client-only installation has none).
    pub fn has_server(&self) -> bool {
        ["postgres", "initdb", "pg_ctl"]
            .iter()
            .all(|name| self.bindir().join(name).is_file())
    }

    /// Returns whether the server's header files are installed.
    pub fn has_headers(&self) -> bool {
        self.server_headers().join("postgres.h").is_file()
    }

    /// A program of PostgreSQL's test suite, for example `regress/pg_regress`, when it is
    /// installed.
    pub fn test_program(&self, name: &str) -> Option<PathBuf> {
        // PGXS is .../src/makefiles/pgxs.mk; the test programs are its cousins.
        let source = self.value("PGXS").parent()?.parent()?;
        Some(source.join("test").join(name)).filter(|path| path.is_file())
    }

    /// The feature of the extension crate that selects this version, for example `pg15`.
    ///
    /// # Errors
    /// When the version is not one of [`SUPPORTED`].
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

/// PostgreSQL's `DLSUFFIX` on an operating system, by Rust's name of it.
fn library_suffix(system: &str, major: u32) -> &'static str {
    match (system, major) {
        ("macos", 16..) => "dylib",
        _ => "so",
    }
}

/// The major version in a text such as `PostgreSQL 15.6 (Debian ...)` or `PostgreSQL 18beta1`.
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
