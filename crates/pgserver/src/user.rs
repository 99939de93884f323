//! Operating system user that runs the servers.
use anyhow::{Context, Result, bail, ensure};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// User that runs the servers. PostgreSQL refuses to run as root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OsUser {
    /// `None`: the user who runs this program.
    other: Option<Account>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Account {
    name: String,
    uid: u32,
    gid: u32,
}

impl OsUser {
    /// Returns the user of this program. For root, returns `postgres` or else `nobody`.
    ///
    /// # Errors
    /// When root runs this on a machine that has neither account.
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

    /// Returns the account `name`, or the user who runs this program when `name` is empty.
    ///
    /// # Errors
    /// When there is no such account.
    pub fn named(name: &str) -> Result<Self> {
        if name.is_empty() {
            return Ok(Self { other: None });
        }
        let account = Account::find(name).with_context(|| format!("there is no user {name:?}"))?;
        Ok(Self {
            other: Some(account),
        })
    }

    /// Returns the account's name, which is empty for the user who runs this program.
    pub fn name(&self) -> &str {
        self.other.as_ref().map_or("", |account| &account.name)
    }

    /// Returns a command that runs as this user, without the caller's PostgreSQL environment.
    ///
    /// The child changes its user itself. `runuser` would stay as a process between the caller and
    /// the command, and would have to pass on signals and exit codes.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        without_pg_environment(&mut command);
        if let Some(account) = &self.other {
            command.uid(account.uid).gid(account.gid);
        }
        command
    }

    /// Checks that this user can execute `program`, by running it with `--version`.
    ///
    /// # Errors
    /// When the program cannot be run under this user.
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

    /// Checks that this user can enter a folder.
    ///
    /// # Errors
    /// When this user cannot enter the folder.
    pub fn can_enter(&self, dir: &Path) -> Result<()> {
        // The child changes its user before its folder, so this tests the user's permissions.
        let mut command = self.command(Path::new("true"));
        let status = command.current_dir(dir).status();
        let status = status.with_context(|| format!("cannot enter {}", dir.display()))?;
        ensure!(status.success(), "cannot enter {}", dir.display());
        Ok(())
    }

    /// Creates `dir` and its parents if needed, and makes `dir` accessible to this user only.
    ///
    /// # Errors
    /// When the folder cannot be made or given to the user.
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
    /// Looks up an account with `id`, which reads all account sources of the system.
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

/// Returns whether this program runs as root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Removes PGHOST, PGOPTIONS and the like, which would lead programs to another server. Also
/// removes RUST_BACKTRACE, which makes a panic that a test may expect slower and its output
/// longer.
pub(crate) fn without_pg_environment(command: &mut Command) {
    command.env_remove("RUST_BACKTRACE");
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(is_libpq_variable) {
            command.env_remove(&name);
        }
    }
}

/// PGRX_* belongs to the build. All other PG* variables belong to PostgreSQL's programs.
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
