//! Helpers of the integration tests: a database per test on the server that `cargo xtask test` has
//! started, and private servers for tests that crash or restart one.
use anyhow::{Context, Result, bail};
use neardup_pgserver::{Instance, OsUser, Server, Settings};
use postgres::{Client, NoTls};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Returns the path of a file or folder, given from the root of the project. Cargo names the folder
/// at run time, so a copied checkout uses its own files, even if its programs were compiled in the
/// folder that it was copied from.
pub fn project_path(path: &str) -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR");
    let package = package.map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    package.join("..").join(path)
}

/// A database with the extension, for one test. Dropping the value drops the database.
pub struct Database {
    name: String,
    conninfo: String,
    /// Connection string for the statements that create and drop the database.
    server: String,
}

impl Database {
    /// Makes a database on the shared server.
    ///
    /// # Errors
    /// When there is no server, or CREATE EXTENSION fails.
    pub fn create() -> Result<Self> {
        Self::create_on(&variable("CONNINFO")?, "neardup")
    }

    /// Makes a database of this encoding on the shared server.
    ///
    /// # Errors
    /// Same as [`Database::create`].
    pub fn create_encoded(encoding: &str) -> Result<Self> {
        let clause = format!(" ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0");
        Self::create_as(&variable("CONNINFO")?, &clause, "neardup")
    }

    /// Makes a database on the server at `conninfo`. An empty `extension` means no extension.
    ///
    /// # Errors
    /// Same as [`Database::create`].
    pub fn create_on(conninfo: &str, extension: &str) -> Result<Self> {
        Self::create_as(conninfo, "", extension)
    }

    fn create_as(conninfo: &str, clause: &str, extension: &str) -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{}_{number}", std::process::id());
        let database = Self {
            conninfo: in_database(conninfo, &name),
            server: conninfo.to_owned(),
            name,
        };
        connect(conninfo)?.batch_execute(&format!("CREATE DATABASE {}{clause}", database.name))?;
        if !extension.is_empty() {
            let statement = format!("CREATE EXTENSION {extension}");
            database.connect()?.batch_execute(&statement)?;
        }
        Ok(database)
    }

    /// Connection string of the database.
    pub fn conninfo(&self) -> &str {
        &self.conninfo
    }

    /// Opens a connection to it.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn connect(&self) -> Result<Client> {
        connect(&self.conninfo)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // Best effort: the server may be gone, and is thrown away in the end.
        if let Ok(mut client) = connect(&self.server) {
            let statement = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
            client.batch_execute(&statement).ok();
        }
    }
}

/// Starts a server for one test, which may kill and restart it. Each test needs its own `name`.
/// Dropping the value removes the server and its data; a failed test keeps the data.
///
/// # Errors
/// When the server does not start.
pub fn own_server(name: &str, settings: Settings) -> Result<Server> {
    let instance = instance()?;
    // `cargo xtask test` stops every server whose name has this prefix.
    let name = format!("{}-{name}", variable("SERVERS")?);
    Server::temporary(&instance, &name, settings)
}

/// One of PostgreSQL's client programs, such as `pg_dump`.
///
/// # Errors
/// Outside of `cargo xtask test`.
pub fn client_program(name: &str) -> Result<Command> {
    Ok(instance()?.client(name))
}

fn instance() -> Result<Instance> {
    Ok(Instance {
        bindir: PathBuf::from(variable("BINDIR")?),
        data_root: PathBuf::from(variable("DATA_ROOT")?),
        user: OsUser::named(&variable("OS_USER")?)?,
    })
}

/// Opens a connection with this connection string.
///
/// # Errors
/// When the server refuses.
pub fn connect(conninfo: &str) -> Result<Client> {
    Client::connect(conninfo, NoTls).with_context(|| format!("cannot connect to {conninfo}"))
}

/// Appends another `dbname` to the connection string; the last one counts.
fn in_database(conninfo: &str, name: &str) -> String {
    format!("{conninfo} dbname={name}")
}

/// Setting of `cargo xtask torture`, or the default.
///
/// # Errors
/// When the setting is not a number.
pub fn setting(name: &str, default: u64) -> Result<u64> {
    let name = format!("NEARDUP_TEST_{name}");
    match std::env::var(&name) {
        Ok(value) => value.parse().with_context(|| format!("{name} = {value}")),
        Err(_) => Ok(default),
    }
}

fn variable(name: &str) -> Result<String> {
    let name = format!("NEARDUP_TEST_{name}");
    match std::env::var(&name) {
        Ok(value) => Ok(value),
        Err(_) => bail!("{name} is not set: `cargo xtask test` starts a server and sets it"),
    }
}
