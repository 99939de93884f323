//! `cargo xtask psql`: opens psql on a private server with the extension. The demo uses the same
//! server.
use crate::private::{self, Private};
use crate::setup::PgChoice;
use crate::{extension, signals, ui};
use anyhow::{Context, Result, bail};
use neardup_pgserver::{Lock, Server, stop_leftovers};
use std::fs;
use std::path::Path;
use std::process::ExitCode;

/// Name of the server that psql and the demo share, so that the user can look at the demo's tables.
pub const PURPOSE: &str = "demo";
/// Name of the database that psql and the demo use.
pub const DATABASE: &str = "neardup";

/// Opens psql with the arguments `arguments`, and returns its exit code. If `fresh` is true,
/// deletes the data of the server first.
pub fn command(choice: &PgChoice, fresh: bool, arguments: &[String]) -> Result<ExitCode> {
    let private = private::prepare(choice)?;
    let lock = take_lock(&private)?;
    let server = start(&private, fresh)?;
    if !has_database(&server)? {
        create_database(&server)?;
        remember_scripts(&private, &server)?;
    } else if scripts(&private)? != remembered(&server) {
        ui::note(
            "The extension's SQL has changed since this database was made; \
             `cargo xtask psql --fresh` makes a new one.",
        );
    }
    if arguments.is_empty() {
        ui::note("For other programs, as long as this shell is open:");
        let url = url(server.socket_dir(), server.port());
        ui::note(format!("  DATABASE_URL='{url}'"));
    }
    let status = signals::while_interactive(|| server.psql(DATABASE).args(arguments).status())
        .context("cannot run psql")?;
    drop(server);
    drop(lock);
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(1)))
}

/// Takes the lock of the server that psql and the demo share. Fails if another command uses the
/// server. Stops the server if the command that started it was killed.
pub fn take_lock(private: &Private) -> Result<Lock> {
    let dir = &private.instance.data_root;
    let Some(lock) = Lock::try_take(dir, PURPOSE)? else {
        let home = private.instance.home(PURPOSE);
        let running = fs::read_to_string(home.join("data/postmaster.pid")).unwrap_or_default();
        bail!("{}", in_use(Lock::holder(dir, PURPOSE), &running));
    };
    // A server can still be running only if the command that started it was killed.
    stop_leftovers(dir, PURPOSE)?;
    Ok(lock)
}

/// Returns the text of the error that another command uses the server. It names that command and
/// says what to do. `holder` is the process id of that command, if it is known. `postmaster_pid` is
/// the text of the server's file postmaster.pid.
fn in_use(holder: Option<u32>, postmaster_pid: &str) -> String {
    let process = holder.map_or(String::new(), |id| format!(", process {id}"));
    let mut text = format!(
        "the private server is in use by another cargo xtask psql or cargo xtask demo{process}; \
         wait for it, or leave its shell (\\q)"
    );
    // Once the server has started, lines 4 and 5 of the file are its port and its socket folder.
    let lines: Vec<&str> = postmaster_pid.lines().collect();
    if let Some(&[port, folder]) = lines.get(3..5)
        && let Ok(port) = port.trim().parse()
        && !folder.is_empty()
    {
        let url = url(Path::new(folder), port);
        text += &format!("\nOther programs can use the server meanwhile: psql '{url}'");
    }
    text
}

/// Returns a URL by which other programs connect to the database of psql and the demo as the
/// superuser `postgres`. `socket_dir` and `port` are those of the server's unix socket.
fn url(socket_dir: &Path, port: u16) -> String {
    // The host is a path here. A URL must have special characters as %XX.
    let host: String = (socket_dir.to_string_lossy().bytes())
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect();
    format!("postgresql://postgres@/{DATABASE}?host={host}&port={port}")
}

/// Starts the server that psql and the demo share, with its existing data, or with new data if
/// `fresh` is true.
pub fn start(private: &Private, fresh: bool) -> Result<Server> {
    ui::step("Starting the private server", || {
        let settings = [("log_min_messages", "warning")];
        if fresh {
            Server::create(&private.instance, PURPOSE, &settings)
        } else {
            Server::open(&private.instance, PURPOSE, &settings)
        }
    })
}

/// Creates the database of psql and the demo with the extension. Drops it first if it exists.
pub fn create_database(server: &Server) -> Result<()> {
    sql(
        server,
        "postgres",
        &format!("DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)"),
    )?;
    sql(server, "postgres", &format!("CREATE DATABASE {DATABASE}"))?;
    sql(
        server,
        DATABASE,
        &format!("CREATE EXTENSION {}", extension::NAME),
    )?;
    Ok(())
}

fn has_database(server: &Server) -> Result<bool> {
    let query = format!("SELECT count(*) FROM pg_database WHERE datname = '{DATABASE}'");
    Ok(sql(server, "postgres", &query)? == "1")
}

/// Runs one statement in `database` by psql. Returns the rows of the result as unaligned text.
fn sql(server: &Server, database: &str, statement: &str) -> Result<String> {
    let output = server
        .psql(database)
        .args(["-qAt", "-v", "ON_ERROR_STOP=1", "-c", statement])
        .output()
        .context("cannot run psql")?;
    if !output.status.success() {
        bail!(
            "{statement}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Returns the current texts of the extension's control file and SQL scripts, as one text. A
/// database whose extension was created from another text is outdated.
fn scripts(private: &Private) -> Result<String> {
    let mut all = String::new();
    for path in &private.artifacts.share {
        all +=
            &fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    }
    Ok(all)
}

/// Stores the current control file and SQL scripts in the folder of the server's data. A later run
/// compares them with its own to find out whether the database is outdated.
pub fn remember_scripts(private: &Private, server: &Server) -> Result<()> {
    Ok(fs::write(
        server.data().join(SCRIPTS_FILE),
        scripts(private)?,
    )?)
}

/// Returns the text that [`remember_scripts`] stored; empty if there is none.
fn remembered(server: &Server) -> String {
    fs::read_to_string(server.data().join(SCRIPTS_FILE)).unwrap_or_default()
}

const SCRIPTS_FILE: &str = "neardup-scripts.sql";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_its_folder_escaped() {
        let url = url(Path::new("/tmp/a b/demo-\u{e9}"), 5432);
        let expected = "postgresql://postgres@/neardup?host=/tmp/a%20b/demo-%C3%A9&port=5432";
        assert_eq!(url, expected);
    }

    #[test]
    fn a_server_in_use_is_named_with_its_address() {
        let text = in_use(Some(17), "42\n/data\n1700000000\n5432\n/run/demo\n\n");
        assert!(text.contains("demo, process 17;"), "{text}");
        assert!(text.ends_with("psql 'postgresql://postgres@/neardup?host=/run/demo&port=5432'"));
        // The address is missing while the server starts, or if the file cannot be read.
        for file in ["", "42\n/data\n1700000000\n5432\n\n"] {
            assert!(!in_use(None, file).contains("postgresql:"));
        }
    }
}
