//! Private servers: creation, start, stop, crash and restart.
use crate::process::Process;
use crate::socket::SocketDir;
use crate::user::without_pg_environment;
use crate::{OsUser, PrivateCopy, crash, process};
use anyhow::{Context, Result, bail, ensure};
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Port number in the name of each server's unix socket. No server listens on TCP.
const PORT: u16 = 5432;
/// Prefix of the names of the servers' folders.
pub(crate) const HOME_PREFIX: &str = "server-";
/// Name of the data folder in a server's folder.
pub(crate) const DATA: &str = "data";
/// Name of the file with the settings of this crate, in the same folder as postgresql.conf.
const SETTINGS_FILE: &str = "settings.conf";
/// Maximum time until a server accepts connections; after that, the start fails. The time is long,
/// because a server may have much WAL to replay after a crash.
const START_LIMIT: Duration = Duration::from_secs(180);

/// Number of lines of the server's log that an error message or a failed test shows.
const LOG_TAIL: usize = 20;

/// Settings of a server as pairs of name and value, as in `postgresql.conf`.
pub type Settings<'a> = &'a [(&'a str, &'a str)];

/// Installation that servers run from: programs, folder for the data, and operating system user.
#[derive(Debug, Clone)]
pub struct Instance {
    /// Folder of the programs of the private copy.
    pub bindir: PathBuf,
    /// Folder that contains the folder of each server.
    pub data_root: PathBuf,
    /// Operating system user that the servers run as.
    pub user: OsUser,
}

impl Instance {
    /// Makes an instance of a private copy. The folders of its servers are in the copy's root
    /// folder.
    pub fn new(copy: &PrivateCopy, user: OsUser) -> Self {
        Self {
            bindir: copy.bindir().to_owned(),
            data_root: copy.root().to_owned(),
            user,
        }
    }

    /// Folder of the server called `name`, with its data, its log and, if the path is short enough,
    /// its socket.
    pub fn home(&self, name: &str) -> PathBuf {
        self.data_root.join(format!("{HOME_PREFIX}{name}"))
    }

    /// Returns a command that runs a program of the private copy, such as `psql`, as the current
    /// user.
    pub fn client(&self, program: &str) -> Command {
        let mut command = Command::new(self.bindir.join(program));
        without_pg_environment(&mut command);
        command
    }
}

/// A private server. Dropping the value stops the server, also during a panic.
#[derive(Debug)]
pub struct Server {
    instance: Instance,
    home: PathBuf,
    /// Folder of the server's data (`PGDATA`), below the folder `home`.
    data: PathBuf,
    /// Folder of the server's unix socket.
    socket: SocketDir,
    /// The postmaster; `None` if the server has not been started or was stopped.
    process: Option<Arc<Process>>,
    /// True if dropping the value deletes the data.
    temporary: bool,
    /// Environment variables (name, value) of the server, in addition to those of this program.
    environment: Vec<(String, String)>,
}

impl Server {
    /// Creates the data of a new server called `name` and starts it. Deletes an existing server of
    /// this name. `settings` remain until [`Server::open`] changes them.
    ///
    /// # Errors
    /// When `initdb` fails or the server does not start. The message then ends with the server's
    /// log.
    pub fn create(instance: &Instance, name: &str, settings: Settings) -> Result<Self> {
        let server = Self::empty(instance, name)?;
        let mut initdb = server.command("initdb");
        initdb.args(["--username=postgres", "--auth=trust", "--no-sync"]);
        // Results in the golden files must not depend on the machine's locale.
        initdb.args(["--encoding=UTF8", "--locale=C", "--pgdata"]);
        initdb.arg(&server.data);
        run_quietly(initdb)?;
        server.configure(settings)?;
        server.started()
    }

    /// Starts the existing server called `name` with new settings, or creates it if it does not
    /// exist.
    ///
    /// # Errors
    /// See [`Server::create`].
    pub fn open(instance: &Instance, name: &str, settings: Settings) -> Result<Self> {
        let server = Self::stopped(instance, name)?;
        // This file exists if `create` got as far as the first start.
        if !server.data.join(SETTINGS_FILE).exists() {
            return Self::create(instance, name, settings);
        }
        server.configure(settings)?;
        server.started()
    }

    /// Does the same as [`Server::create`], but dropping the value also deletes the server's data,
    /// except during a panic.
    ///
    /// # Errors
    /// See [`Server::create`].
    pub fn temporary(instance: &Instance, name: &str, settings: Settings) -> Result<Self> {
        let mut server = Self::create(instance, name, settings)?;
        server.temporary = true;
        Ok(server)
    }

    /// Creates a streaming standby of this server, called `name`, and starts it. The standby has
    /// its own `settings`. Some of them, such as `max_connections`, must not be lower than the
    /// primary's. A server has at most one standby.
    ///
    /// # Errors
    /// When `pg_basebackup` fails or the standby does not start.
    pub fn standby(&self, name: &str, settings: Settings) -> Result<Self> {
        let mut server = Self::empty(&self.instance, name)?;
        server.temporary = self.temporary;
        let mut backup = self.command("pg_basebackup");
        backup
            .args(["--checkpoint=fast", "--write-recovery-conf"])
            // By the replication slot, the primary keeps the WAL that the standby has not received.
            .args(["--create-slot", "--slot", "standby", "--pgdata"])
            .arg(&server.data)
            .arg("--dbname")
            .arg(self.conninfo("postgres"));
        run_quietly(backup)?;
        server.configure(settings)?;
        server.started()
    }

    /// Returns a server with empty folders that is not running. Deletes an existing server of this
    /// name.
    fn empty(instance: &Instance, name: &str) -> Result<Self> {
        let server = Self::stopped(instance, name)?;
        if server.home.exists() {
            fs::remove_dir_all(&server.home)
                .with_context(|| format!("cannot remove {}", server.home.display()))?;
        }
        instance.user.private_dir(&server.home)?;
        instance.user.private_dir(&server.data)?;
        Ok(server)
    }

    /// Returns the server called `name`, not running. Does not create its folder.
    fn stopped(instance: &Instance, name: &str) -> Result<Self> {
        let home = instance.home(name);
        Ok(Self {
            instance: instance.clone(),
            socket: SocketDir::make(&home, &instance.user)?,
            data: home.join(DATA),
            home,
            process: None,
            temporary: false,
            environment: Vec::new(),
        })
    }

    fn started(mut self) -> Result<Self> {
        self.start()?;
        Ok(self)
    }

    /// Writes the settings to a separate file, and includes this file at the end of
    /// postgresql.conf.
    fn configure(&self, settings: Settings) -> Result<()> {
        let mut text = String::from("listen_addresses = ''\nunix_socket_permissions = 0700\n");
        text += &setting_line("unix_socket_directories", &quoted_item(self.socket.path())?);
        text += &format!("port = {PORT}\n");
        for (name, value) in settings {
            text += &setting_line(name, value);
        }
        let main = self.data.join("postgresql.conf");
        let include = format!("include '{SETTINGS_FILE}'\n");
        let current = fs::read_to_string(&main).context("cannot read postgresql.conf")?;
        if !current.ends_with(&include) {
            fs::write(&main, current + &include)?;
        }
        fs::write(self.data.join(SETTINGS_FILE), text)?;
        Ok(())
    }

    /// Starts the server and waits until it accepts connections. Does not start a second process if
    /// the server is running.
    ///
    /// # Errors
    /// When the server ends, or does not accept connections in time. The message ends with the
    /// server's log.
    pub fn start(&mut self) -> Result<()> {
        let process = self.launch()?;
        let start = Instant::now();
        while !self.is_ready(&process) {
            if let Some(status) = process.ended()? {
                self.process = None;
                bail!("the server did not start ({status}):\n{}", self.log_tail());
            }
            if start.elapsed() > START_LIMIT {
                self.stop()?;
                bail!(
                    "the server was not ready after {} s:\n{}",
                    START_LIMIT.as_secs(),
                    self.log_tail()
                );
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Starts the server without waiting until it accepts connections, so that a test can observe
    /// its recovery after a crash. Does nothing if it is running. [`Server::start`] waits.
    ///
    /// # Errors
    /// When the program `postgres` cannot be run.
    pub fn begin_start(&mut self) -> Result<()> {
        self.launch().map(drop)
    }

    /// Returns the running postmaster, or starts one.
    fn launch(&mut self) -> Result<Arc<Process>> {
        if let Some(process) = self.process.as_ref()
            && process.ended()?.is_none()
        {
            return Ok(Arc::clone(process));
        }
        ensure!(!process::interrupted(), "interrupted");
        let log_path = self.log();
        let log = File::create(&log_path)
            .with_context(|| format!("cannot write {}", log_path.display()))?;
        let child = self
            .command("postgres")
            .arg("-D")
            .arg(&self.data)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            // Keep Ctrl-C at the terminal from the server: it should reach only this program, which
            // then stops the server.
            .process_group(0)
            .spawn()
            .context("cannot run postgres")?;
        let process = Process::register(child)?;
        self.process = Some(Arc::clone(&process));
        Ok(process)
    }

    /// Returns whether the server, whose postmaster is `process`, accepts connections. Like
    /// `pg_ctl`, reads the postmaster's state from the eighth line of its pid file.
    fn is_ready(&self, process: &Process) -> bool {
        let Ok(text) = fs::read_to_string(self.data.join("postmaster.pid")) else {
            return false;
        };
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        // After a kill, the pid file still contains the state of the killed server.
        lines.first() == Some(&process.pid().as_raw_pid().to_string().as_str())
            && matches!(lines.get(7), Some(&("ready" | "standby")))
    }

    /// Sets the environment variable `name` of the server to `value`. The change takes effect at
    /// the next start.
    pub fn set_variable(&mut self, name: &str, value: &str) {
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    /// Returns whether the server's postmaster is running.
    ///
    /// # Errors
    /// When the state of the process cannot be read.
    pub fn is_running(&self) -> Result<bool> {
        match &self.process {
            Some(process) => Ok(process.ended()?.is_none()),
            None => Ok(false),
        }
    }

    /// Stops the server by a fast shutdown, which rolls transactions back and writes a checkpoint.
    /// Follows with stronger signals if that takes too long. Does nothing if it is not running.
    ///
    /// # Errors
    /// When the server still runs after SIGKILL.
    pub fn stop(&mut self) -> Result<()> {
        match self.process.take() {
            Some(process) => process.stop(),
            None => Ok(()),
        }
    }

    /// Stops the server and starts it again.
    ///
    /// # Errors
    /// See [`Server::stop`] and [`Server::start`].
    pub fn restart(&mut self) -> Result<()> {
        self.stop()?;
        self.start()
    }

    /// Kills the postmaster and all backends by SIGKILL, like a power failure. The next
    /// [`Server::start`] recovers from the WAL.
    ///
    /// # Errors
    /// When the server is not running, or does not end.
    pub fn kill_9(&mut self) -> Result<()> {
        let process = self.process.take().context("the server does not run")?;
        crash::kill_9(&process)
    }

    /// Stops the server by an immediate shutdown, like `pg_ctl stop -m immediate`: backends end at
    /// once, without a checkpoint. The next [`Server::start`] recovers from the WAL.
    ///
    /// # Errors
    /// When the server is not running, or does not stop.
    pub fn stop_immediately(&mut self) -> Result<()> {
        let process = self.process.take().context("the server does not run")?;
        process.stop_immediately()
    }

    /// Kills one child process of the server by SIGKILL. The server then ends all other processes
    /// and recovers by itself. Returns when the server has noticed the kill, so new connections
    /// wait for the recovery. Returns false if the server has no process `pid`.
    ///
    /// # Errors
    /// When the server is not running, or does not notice the kill in time.
    pub fn kill_9_child(&self, pid: i32) -> Result<bool> {
        let process = self.process.as_ref().context("the server does not run")?;
        crash::kill_9_child(process, pid)
    }

    /// Process id of the postmaster; `None` if the server was stopped or killed.
    pub fn pid(&self) -> Option<i32> {
        self.process.as_ref().map(|p| p.pid().as_raw_pid())
    }

    /// Folder of the server's unix socket, for `host=` in connection strings.
    pub fn socket_dir(&self) -> &Path {
        self.socket.path()
    }

    /// Port number, which is part of the name of the server's unix socket.
    pub fn port(&self) -> u16 {
        PORT
    }

    /// Folder of the server, with its data and its log.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Folder of the server's data (`PGDATA`).
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Returns a connection string for `database` as the superuser `postgres`.
    pub fn conninfo(&self, database: &str) -> String {
        format!(
            "host={} port={PORT} user=postgres dbname={}",
            conninfo_value(&self.socket.path().display().to_string()),
            conninfo_value(database)
        )
    }

    /// Returns a `psql` command that connects to `database`. It does not read the user's `.psqlrc`.
    pub fn psql(&self, database: &str) -> Command {
        let mut command = self.instance.client("psql");
        command.arg("-X").arg("-d").arg(self.conninfo(database));
        command
    }

    /// Path of the server's log, which begins at the last start.
    pub fn log(&self) -> PathBuf {
        self.home.join("log")
    }

    /// Returns the last [`LOG_TAIL`] lines of the server's log.
    fn log_tail(&self) -> String {
        let text = fs::read(self.log()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LOG_TAIL)..].join("\n")
    }

    /// Returns a command that runs a program of the private copy as the server's user.
    fn command(&self, program: &str) -> Command {
        let mut command = self
            .instance
            .user
            .command(&self.instance.bindir.join(program));
        // The server's user may not be able to enter the current folder.
        command.current_dir(&self.instance.data_root);
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Print the log, because the machine that ran a failed test may not be available later.
            eprintln!("{} ends with:\n{}", self.log().display(), self.log_tail());
        }
        if let Err(error) = self.stop() {
            eprintln!("{error:#}");
        }
        if self.temporary && !std::thread::panicking() {
            fs::remove_dir_all(&self.home).ok();
        }
    }
}

/// Runs a command and waits until it ends. If it fails, returns an error that contains its output.
/// Otherwise drops the output.
fn run_quietly(mut command: Command) -> Result<()> {
    let name = command.get_program().display().to_string();
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {name}"))?;
    ensure!(
        output.status.success(),
        "{name} failed ({}):\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

/// Returns the line of postgresql.conf that sets `name` to `value`. Quotes and backslashes in the
/// value are doubled.
fn setting_line(name: &str, value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('\'', "''");
    format!("{name} = '{value}'\n")
}

/// Returns a path as a quoted element of a list setting, whose elements are separated by commas.
fn quoted_item(path: &Path) -> Result<String> {
    let text = path.to_str().context("the path is not UTF-8")?;
    Ok(format!("\"{}\"", text.replace('"', "\"\"")))
}

/// Returns a value for a connection string, quoted if it has special characters.
fn conninfo_value(value: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if !value.is_empty() && value.chars().all(plain) {
        return value.to_owned();
    }
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_for_their_context() {
        assert_eq!(setting_line("a", "it's \\"), "a = 'it''s \\\\'\n");
        assert_eq!(conninfo_value("/tmp/a-b"), "/tmp/a-b");
        assert_eq!(conninfo_value("/tmp/a b'c"), "'/tmp/a b\\'c'");
        assert_eq!(conninfo_value(""), "''");
        assert_eq!(quoted_item(Path::new("/a, b")).unwrap(), "\"/a, b\"");
    }
}
