//! docs/clients.md, run with its drivers. Its Rust code is in `rust.rs`.
use crate::support::Outcome;
use crate::support::skip::{skip_optional, skip_without};
use anyhow::{Context, Result, ensure};
use neardup_tests::{Database, project_path};
use std::collections::HashMap;
use std::net::{Shutdown, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The document.
pub fn document() -> Result<String> {
    std::fs::read_to_string(project_path("docs/clients.md")).context("docs/clients.md")
}

/// Returns the code blocks of a section in a language, in order.
pub fn code(document: &str, heading: &str, language: &str) -> Vec<String> {
    let heading = format!("## {heading}");
    let mut lines = document.lines().skip_while(|line| *line != heading).skip(1);
    let mut blocks = Vec::new();
    while let Some(line) = lines.next() {
        if line.starts_with("## ") {
            break;
        }
        if line.strip_prefix("```") == Some(language) {
            let block = lines.by_ref().take_while(|line| *line != "```");
            blocks.push(block.map(|line| format!("{line}\n")).collect());
        }
    }
    blocks
}

/// Writes the code of a section to the file `script` and runs `command`, with the connection
/// settings in the environment.
fn run(mut command: Command, script: &Path, heading: &str, language: &str) -> Outcome {
    let code = code(&document()?, heading, language).concat();
    ensure!(!code.is_empty(), "no {language} under {heading}");
    std::fs::write(script, code)?;
    let database = Database::create()?;
    for part in database.conninfo().split(' ') {
        let (name, value) = part.split_once('=').context("name=value")?;
        let variable = match name {
            "dbname" => "PGDATABASE".to_owned(),
            name => format!("PG{}", name.to_uppercase()),
        };
        command.env(variable, value);
    }
    command.env("JDBC_URL", jdbc_url(&database)?);
    let output = (command.output()).with_context(|| format!("cannot run {command:?}"))?;
    std::fs::remove_file(script)?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{heading}: {printed}{errors}");
    Ok(())
}

/// Returns the URL by which JDBC, which cannot use Unix sockets, reaches the database: a port of
/// this machine whose first connection is forwarded to the server's socket.
fn jdbc_url(database: &Database) -> Result<String> {
    let conninfo = database.conninfo();
    // A setting that is given twice has its last value.
    let settings: HashMap<&str, &str> = conninfo
        .split(' ')
        .filter_map(|part| part.split_once('='))
        .collect();
    let setting = |name: &str| settings.get(name).copied().context("incomplete settings");
    let socket = format!("{}/.s.PGSQL.{}", setting("host")?, setting("port")?);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    std::thread::spawn(move || -> std::io::Result<()> {
        let (mut client, _) = listener.accept()?;
        let mut server = UnixStream::connect(socket)?;
        let (mut sent, mut answered) = (client.try_clone()?, server.try_clone()?);
        let answers = std::thread::spawn(move || std::io::copy(&mut answered, &mut sent));
        std::io::copy(&mut client, &mut server)?;
        // The client has closed its side. The server then closes the other one.
        server.shutdown(Shutdown::Write)?;
        answers.join().expect("copying does not panic").map(drop)
    });
    let (user, name) = (setting("user")?, setting("dbname")?);
    Ok(format!(
        "jdbc:postgresql://127.0.0.1:{port}/{name}?user={user}&sslmode=disable"
    ))
}

/// Runs a section in Python. Skips the test without one.
fn python(heading: &str) -> Outcome {
    let Ok(program) = std::env::var("NEARDUP_TEST_PYTHON") else {
        return skip_without("Python with the packages");
    };
    let script = std::env::temp_dir().join(format!("neardup-{}-{heading}.py", std::process::id()));
    let mut command = Command::new(program);
    command.arg(&script);
    run(command, &script, heading, "python")
}

/// Runs a section in JavaScript. Skips the test without Node.js.
fn javascript(heading: &str) -> Outcome {
    let Ok(folder) = std::env::var("NEARDUP_TEST_NODE") else {
        return skip_without("Node.js with the packages");
    };
    // Node.js finds packages from the script's folder upwards.
    let script = PathBuf::from(folder).join(format!("{heading}.mjs"));
    let mut command = Command::new("node");
    command.arg(&script);
    run(command, &script, heading, "js")
}

/// Folder of Debian's Go packages, and pgx below it.
const GO_PACKAGES: [&str; 2] = ["/usr/share/gocode", "src/github.com/jackc/pgx/v4"];
/// JDBC driver of Debian.
const JDBC: &str = "/usr/share/java/postgresql.jar";

/// Returns whether a program can be started.
fn is_installed(program: &str, version: &str) -> bool {
    Command::new(program)
        .arg(version)
        .output()
        .is_ok_and(|it| it.status.success())
}

#[test]
fn package_for_python() -> Outcome {
    python("Python")
}

#[test]
fn psycopg() -> Outcome {
    python("psycopg")
}

#[test]
fn asyncpg() -> Outcome {
    python("asyncpg")
}

#[test]
fn sqlalchemy() -> Outcome {
    python("SQLAlchemy")
}

#[test]
fn pg8000() -> Outcome {
    python("pg8000")
}

#[test]
fn node_postgres() -> Outcome {
    javascript("node-postgres")
}

#[test]
fn drizzle() -> Outcome {
    javascript("Drizzle")
}

#[test]
fn pgx() -> Outcome {
    let [packages, pgx] = GO_PACKAGES;
    if !Path::new(packages).join(pgx).exists() || !is_installed("go", "version") {
        return skip_optional("Go with pgx (Debian's golang-github-jackc-pgx-v4-dev)");
    }
    let script = std::env::temp_dir().join(format!("neardup-{}.go", std::process::id()));
    let mut command = Command::new("go");
    (command.args(["run"]).arg(&script))
        .env("GOPATH", packages)
        .env("GO111MODULE", "off")
        .env("GOCACHE", std::env::temp_dir().join("neardup-go"));
    run(command, &script, "pgx", "go")
}

#[test]
fn jdbc() -> Outcome {
    if !Path::new(JDBC).exists() || !is_installed("javac", "-version") {
        return skip_optional("Java with JDBC (Debian's libpostgresql-jdbc-java)");
    }
    let script = std::env::temp_dir().join(format!("neardup-{}.java", std::process::id()));
    let mut command = Command::new("java");
    command.args(["-cp", JDBC]).arg(&script);
    run(command, &script, "JDBC", "java")
}
