//! Private servers: make, start, stop, crash, restart.
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

/// The port in the socket's name; no server listens on TCP.
const PORT: u16 = 5432;
/// Prefix of the names of servers' folders, and name of the data folder in each.
pub(crate) const HOME_PREFIX: &str = "server-";
pub(crate) const DATA: &str = "data";
/// File of the settings, next to postgresql.conf.
const SETTINGS_FILE: &str = "settings.conf";
/// Recovery after a crash may have some WAL to read.
const START_LIMIT: Duration = Duration::from_secs(180);

/// Lines of the server's log that an error message and a failed test show.
const LOG_TAIL: usize = 20;

/// Settings of a server, as in `postgresql.conf`: name and value.
pub type Settings<'a> = &'a [(&'a str, &'a str)];

/// Means to run servers: the programs, a folder for the data, and the user.
#[derive(Debug, Clone)]
pub struct Instance {
    /// Folder of the private copy's programs.
    pub bindir: PathBuf,
    /// Folder in which each server's own folder is made.
    pub data_root: PathBuf,
    /// The user that the servers run under.
    pub user: OsUser,
}

impl Instance {
    /// Runs servers of this private copy. Their data is in the copy's folder.
    pub fn new(copy: &PrivateCopy, user: OsUser) -> Self {
        Self {
            bindir: copy.bindir().to_owned(),
            data_root: copy.root().to_owned(),
            user,
        }
    }

    /// The folder of the server called `name`: its data, its log and its socket.
    pub fn home(&self, name: &str) -> PathBuf {
        self.data_root.join(format!("{HOME_PREFIX}{name}"))
    }

    /// One of the private copy's programs, run as the current user.
    pub fn client(&self, program: &str) -> Command {
        let mut command = Command::new(self.bindir.join(program));
        without_pg_environment(&mut command);
        command
    }
}

/// A running server; it is stopped when the value is dropped, also by a panic.
#[derive(Debug)]
pub struct Server {
    instance: Instance,
    home: PathBuf,
    data: PathBuf,
    socket: SocketDir,
    process: Option<Arc<Process>>,
    temporary: bool,
    /// Environment variables of the server, in addition to those of this program.
    environment: Vec<(String, String)>,
}

impl Server {
    /// Makes a new cluster called `name` (replacing one of that name) and starts it. The settings
    /// hold for this cluster's life.
    ///
    /// # Errors
    /// When `initdb` fails or the server does not start; the message ends with the server's log.
    pub fn create(instance: &Instance, name: &str, settings: Settings) -> Result<Self> {
        let server = Self::empty(instance, name)?;
        let mut initdb = server.command("initdb");
        initdb.args(["--username=postgres", "--auth=trust", "--no-sync"]);
        // Results in the golden files must not depend on the machine's language.
        initdb.args(["--encoding=UTF8", "--locale=C", "--pgdata"]);
        initdb.arg(&server.data);
        run_quietly(initdb)?;
        server.configure(settings)?;
        server.started()
    }

    /// Starts the existing cluster called `name`, or makes it.
    ///
    /// # Errors
    /// See [`Server::create`].
    pub fn open(instance: &Instance, name: &str, settings: Settings) -> Result<Self> {
        let server = Self::stopped(instance, name)?;
        // The last file that `create` writes before the first start.
        if !server.data.join(SETTINGS_FILE).exists() {
            return Self::create(instance, name, settings);
        }
        server.configure(settings)?;
        server.started()
    }

    /// Does the same as [`Server::create`], but the data is deleted when the value is dropped,
    /// unless by a panic.
    ///
    /// # Errors
    /// See [`Server::create`].
    pub fn temporary(instance: &Instance, name: &str, settings: Settings) -> Result<Self> {
        let mut server = Self::create(instance, name, settings)?;
        server.temporary = true;
        Ok(server)
    }

    /// Makes a streaming standby of this server, called `name`, and starts it. It has its own
    /// settings; some, like `max_connections`, must not be lower than the primary's. A server has
    /// at most one standby.
    ///
    /// # Errors
    /// When `pg_basebackup` fails or the standby does not start.
    pub fn standby(&self, name: &str, settings: Settings) -> Result<Self> {
        let mut server = Self::empty(&self.instance, name)?;
        server.temporary = self.temporary;
        let mut backup = self.command("pg_basebackup");
        backup
            .args(["--checkpoint=fast", "--write-recovery-conf"])
            // The primary keeps what the standby has not received, and no more.
            .args(["--create-slot", "--slot", "standby", "--pgdata"])
            .arg(&server.data)
            .arg("--dbname")
            .arg(self.conninfo("postgres"));
        run_quietly(backup)?;
        server.configure(settings)?;
        server.started()
    }

    /// A server without data, in place of any that had this name.
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

    /// Writes the settings into a file of their own, which postgresql.conf includes last.
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

    /// Starts the server and waits until it accepts connections. Does nothing if it is running.
    ///
    /// # Errors
    /// When it ends or does not get ready; the message ends with the server's log.
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

    /// Starts the server without waiting for it: after a crash it recovers first. Does nothing if
    /// it is running. [`Server::start`] then waits until it accepts connections.
    ///
    /// # Errors
    /// When the program cannot be run.
    pub fn begin_start(&mut self) -> Result<()> {
        self.launch().map(drop)
    }

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
            // Ctrl-C at the terminal must reach only this program, which then stops the server.
            .process_group(0)
            .spawn()
            .context("cannot run postgres")?;
        let process = Process::register(child)?;
        self.process = Some(Arc::clone(&process));
        Ok(process)
    }

    /// The postmaster notes its state on the eighth line of its pid file; `pg_ctl` reads it too.
    fn is_ready(&self, process: &Process) -> bool {
        let Ok(text) = fs::read_to_string(self.data.join("postmaster.pid")) else {
            return false;
        };
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        // After a kill the file still contains the state of the killed server.
        lines.first() == Some(&process.pid().as_raw_pid().to_string().as_str())
            && matches!(lines.get(7), Some(&("ready" | "standby")))
    }

    /// Sets a variable of the server's environment, from its next start on.
    pub fn set_variable(&mut self, name: &str, value: &str) {
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    /// Returns whether the server's process is running.
    ///
    /// # Errors
    /// When the system call fails.
    pub fn is_running(&self) -> Result<bool> {
        match &self.process {
            Some(process) => Ok(process.ended()?.is_none()),
            None => Ok(false),
        }
    }

    /// Fast shutdown: transactions are rolled back, a checkpoint is written.
    ///
    /// # Errors
    /// When the server does not stop, even if killed.
    pub fn stop(&mut self) -> Result<()> {
        match self.process.take() {
            Some(process) => process.stop(),
            None => Ok(()),
        }
    }

    /// Stops and starts the server.
    ///
    /// # Errors
    /// See [`Server::stop`] and [`Server::start`].
    pub fn restart(&mut self) -> Result<()> {
        self.stop()?;
        self.start()
    }

    /// kill -9 of the postmaster and all backends. [`Server::start`] then recovers from the WAL.
    ///
    /// # Errors
    /// When the server does not run, or cannot be killed.
    pub fn kill_9(&mut self) -> Result<()> {
        let process = self.process.take().context("the server does not run")?;
        crash::kill_9(&process)
    }

    /// Immediate shutdown, as `pg_ctl stop -m immediate`: backends give up at once, no checkpoint
    /// is written. [`Server::start`] then recovers from the WAL.
    ///
    /// # Errors
    /// When the server does not run, or does not stop.
    pub fn stop_immediately(&mut self) -> Result<()> {
        let process = self.process.take().context("the server does not run")?;
        process.stop_immediately()
    }

    /// kill -9 of one of the server's processes, after which the server ends all others and
    /// recovers by itself. Returns when the server has noticed: connections from then on have
    /// to wait for the recovery. False: the server has no such process (any more).
    ///
    /// # Errors
    /// When the server does not run, or does not notice.
    pub fn kill_9_child(&self, pid: i32) -> Result<bool> {
        let process = self.process.as_ref().context("the server does not run")?;
        crash::kill_9_child(process, pid)
    }

    /// Process id of the postmaster while it runs.
    pub fn pid(&self) -> Option<i32> {
        self.process.as_ref().map(|p| p.pid().as_raw_pid())
    }

    /// Folder of the socket, for `host=` in connection strings.
    pub fn socket_dir(&self) -> &Path {
        self.socket.path()
    }

    /// The port, which names the socket.
    pub fn port(&self) -> u16 {
        PORT
    }

    /// The server's folder, with its data and its log.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Folder of the data.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Connection string of `database` for the superuser `postgres`.
    pub fn conninfo(&self, database: &str) -> String {
        format!(
            "host={} port={PORT} user=postgres dbname={}",
            conninfo_value(&self.socket.path().display().to_string()),
            conninfo_value(database)
        )
    }

    /// `psql` on `database`, without the user's own start file.
    pub fn psql(&self, database: &str) -> Command {
        let mut command = self.instance.client("psql");
        command.arg("-X").arg("-d").arg(self.conninfo(database));
        command
    }

    /// The server's log since its last start.
    pub fn log(&self) -> PathBuf {
        self.home.join("log")
    }

    fn log_tail(&self) -> String {
        let text = fs::read(self.log()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LOG_TAIL)..].join("\n")
    }

    /// One of the private copy's programs, run as the server's user.
    fn command(&self, program: &str) -> Command {
        let mut command = self
            .instance
            .user
            .command(&self.instance.bindir.join(program));
        // The current folder may be one that this user cannot enter.
        command.current_dir(&self.instance.data_root);
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // A test failed: the machine that ran it may not be available later.
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

/// Runs a command whose output is only of interest when it fails.
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

/// A line of postgresql.conf; quotes and backslashes are doubled there.
fn setting_line(name: &str, value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('\'', "''");
    format!("{name} = '{value}'\n")
}

/// An element of a list setting, in which commas and blanks separate.
fn quoted_item(path: &Path) -> Result<String> {
    let text = path.to_str().context("the path is not UTF-8")?;
    Ok(format!("\"{}\"", text.replace('"', "\"\"")))
}

/// A value in a connection string; quoted where it needs it.
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
