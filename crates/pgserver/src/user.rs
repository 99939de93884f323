//! Operating system user that private servers run as.
use anyhow::{Context, Result, bail, ensure};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Operating system user that servers run as. It cannot be root, because PostgreSQL refuses to run
/// as root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OsUser {
    /// Account of the user; `None` if it is the user who runs this program.
    other: Option<Account>,
}

/// Account of the operating system.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Account {
    name: String,
    uid: u32,
    gid: u32,
}

impl OsUser {
    /// Returns the user that servers should run as: the user who runs this program, or, if that is
    /// root, `postgres` or `nobody`.
    ///
    /// # Errors
    /// When root runs this program on a machine without these two accounts.
    pub fn for_server() -> Result<Self> {
        if !is_root() {
            return Ok(Self { other: None });
        }
        for name in ["postgres", "nobody"] {
            if let Some(account) = Account::find(name) {
                return Ok(Self {
                    other: Some(account),
                });
            }
        }
        bail!(
            "PostgreSQL refuses to run as root, and there is no user \"postgres\" or \"nobody\" to \
             run it under; create one (useradd --system postgres) or run this as another user"
        )
    }

    /// Returns the user called `name`, or the user who runs this program if `name` is empty.
    ///
    /// # Errors
    /// When there is no account called `name`.
    pub fn named(name: &str) -> Result<Self> {
        if name.is_empty() {
            return Ok(Self { other: None });
        }
        let account = Account::find(name).with_context(|| format!("there is no user {name:?}"))?;
        Ok(Self {
            other: Some(account),
        })
    }

    /// Name of the account; empty for the user who runs this program.
    pub fn name(&self) -> &str {
        self.other.as_ref().map_or("", |account| &account.name)
    }

    /// Returns a command that runs `program` as this user, without PostgreSQL's environment
    /// variables of the caller.
    ///
    /// The child process changes its user itself. `runuser` would stay as a process between the
    /// caller and the program, and would have to pass on signals and exit codes.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        without_pg_environment(&mut command);
        if let Some(account) = &self.other {
            command.uid(account.uid).gid(account.gid);
        }
        command
    }

    /// Checks that this user can execute a program of PostgreSQL, by running it with `--version`.
    ///
    /// # Errors
    /// When this user cannot run the program.
    pub fn can_run(&self, program: &Path) -> Result<()> {
        let status = self
            .command(program)
            .arg("--version")
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .with_context(|| format!("cannot run {}", program.display()))?;
        if !status.success() {
            bail!("{} --version failed ({status})", program.display());
        }
        Ok(())
    }

    /// Checks that this user can enter the folder `dir`.
    ///
    /// # Errors
    /// When this user cannot enter the folder.
    pub fn can_enter(&self, dir: &Path) -> Result<()> {
        // The child process changes its user before its folder, so this tests the permissions of
        // that user.
        let mut command = self.command(Path::new("true"));
        let status = command.current_dir(dir).status();
        let status = status.with_context(|| format!("cannot enter {}", dir.display()))?;
        ensure!(status.success(), "cannot enter {}", dir.display());
        Ok(())
    }

    /// Creates the folder `dir` and its parents if needed, and makes `dir` accessible only to this
    /// user.
    ///
    /// # Errors
    /// When the folder cannot be created, or its owner or permissions cannot be changed.
    pub fn private_dir(&self, dir: &Path) -> Result<()> {
        std::fs::create_dir_all(dir)
            .and_then(|()| std::fs::set_permissions(dir, PermissionsExt::from_mode(0o700)))
            .and_then(|()| match &self.other {
                Some(account) => chown(dir, Some(account.uid), Some(account.gid)),
                None => Ok(()),
            })
            .with_context(|| format!("cannot make the folder {}", dir.display()))
    }
}

impl Account {
    /// Looks up an account by name with the program `id`, which reads all account sources of the
    /// system. `None` if there is no such account.
    fn find(name: &str) -> Option<Self> {
        let number = |flag: &str| -> Option<u32> {
            let output = Command::new("id").args([flag, name]).output().ok()?;
            String::from_utf8(output.stdout).ok()?.trim().parse().ok()
        };
        Some(Self {
            name: name.to_owned(),
            uid: number("-u")?,
            gid: number("-g")?,
        })
    }
}

/// Returns whether this program runs as root (effective user id 0).
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Removes PGHOST, PGOPTIONS and similar variables from the environment of a command, because they
/// would direct PostgreSQL's programs to another server. Also removes RUST_BACKTRACE, because
/// backtraces of panics that tests expect are slow and long.
pub(crate) fn without_pg_environment(command: &mut Command) {
    command.env_remove("RUST_BACKTRACE");
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(is_libpq_variable) {
            command.env_remove(&name);
        }
    }
}

/// Returns whether an environment variable belongs to PostgreSQL's programs. PGRX_* and PG_* belong
/// to the build instead.
fn is_libpq_variable(name: &str) -> bool {
    name.starts_with("PG") && !name.starts_with("PGRX") && !name.starts_with("PG_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_variables_of_libpq() {
        for name in ["PGHOST", "PGDATA", "PGOPTIONS", "PGSERVICEFILE"] {
            assert!(is_libpq_variable(name), "{name}");
        }
        for name in ["PGRX_PG_CONFIG_PATH", "PG_CONFIG", "PATH"] {
            assert!(!is_libpq_variable(name), "{name}");
        }
    }

    #[test]
    fn finds_accounts_by_name() {
        let root = Account::find("root").unwrap();
        assert_eq!((root.uid, root.gid), (0, 0));
        assert_eq!(Account::find("no such user"), None);
        assert!(OsUser::named("no such user").is_err());
        assert_eq!(OsUser::named("").unwrap().name(), "");
    }
}
