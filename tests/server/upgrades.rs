//! Upgrades of the extension: from every released version, and from a made-up version, which shows
//! that the comparison with a fresh installation works.
use crate::support::Outcome;
use crate::support::fixtures::{FIXTURES, hold, prepare};
use crate::support::table::value;
use anyhow::{Context, Result, ensure};
use neardup_tests::{Database, client_program};
use postgres::Client;
use std::fs;
use std::path::{Path, PathBuf};

/// The name of the version that is made up.
const BEFORE: &str = "before";

/// Folder of the server's scripts, and the version that it installs.
struct Scripts {
    folder: PathBuf,
    current: String,
}

impl Scripts {
    fn from_server(client: &mut Client) -> Result<Self> {
        let share: String = value(
            client,
            "SELECT setting FROM pg_config() WHERE name = 'SHAREDIR'",
        )?;
        let current = value(
            client,
            "SELECT default_version::text FROM pg_available_extensions WHERE name = 'neardup'",
        )?;
        Ok(Self {
            folder: Path::new(&share).join("extension"),
            current,
        })
    }

    /// The script that installs the current version.
    fn current(&self) -> Result<String> {
        let path = self.folder.join(format!("neardup--{}.sql", self.current));
        fs::read_to_string(&path).with_context(|| path.display().to_string())
    }
}

/// A script of the made-up version. Dropping the value removes the file.
struct Script(PathBuf);

impl Script {
    /// Writes the script `neardup--{versions}.sql`.
    fn write(scripts: &Scripts, versions: &str, text: &str) -> Result<Self> {
        let path = scripts.folder.join(format!("neardup--{versions}.sql"));
        fs::write(&path, text).with_context(|| path.display().to_string())?;
        Ok(Self(path))
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        fs::remove_file(&self.0).ok();
    }
}

/// Returns the statement of a script with this prefix at the beginning of a line.
fn statement<'a>(script: &'a str, words: &str) -> Result<&'a str> {
    let begin = script.find(&format!("\n{words}")).context("no statement")? + 1;
    let length = script[begin..].find(";\n").context("no end")? + 2;
    Ok(&script[begin..begin + length])
}

/// Returns the statements that would make each member of the extension by itself, as `pg_upgrade`
/// dumps them, without OIDs.
fn members(database: &Database) -> Result<String> {
    let output = client_program("pg_dump")?
        .args(["--schema-only", "--binary-upgrade"])
        .arg(format!("--dbname={}", database.conninfo()))
        .output()?;
    ensure!(
        output.status.success(),
        "pg_dump: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let dump = String::from_utf8(output.stdout)?;
    let of_members = |line: &&str| {
        // Skips random words of psql's restricted mode, and OIDs.
        !(line.starts_with("\\restrict")
            || line.starts_with("\\unrestrict")
            || line.contains("binary_upgrade_set_next_"))
    };
    let lines: Vec<&str> = dump.lines().filter(of_members).collect();
    ensure!(
        lines.iter().any(|line| line.contains("ACCESS METHOD")),
        "the dump has no members"
    );
    Ok(lines.join("\n"))
}

/// The members after CREATE EXTENSION of the current version.
fn fresh() -> Result<String> {
    members(&Database::create()?)
}

/// Returns the members after an upgrade from `version`. Its tables must keep working.
fn upgraded(version: &str) -> Result<String> {
    let database = Database::create()?;
    let mut client = database.connect()?;
    // CREATE EXTENSION looks up every C function of that version in the current library.
    client.batch_execute(&format!(
        "DROP EXTENSION neardup; CREATE EXTENSION neardup VERSION '{version}'"
    ))?;
    prepare(&mut client, &FIXTURES, 400)?;
    hold(&mut client, &FIXTURES, 1)?;
    client.batch_execute("ALTER EXTENSION neardup UPDATE")?;
    hold(&mut database.connect()?, &FIXTURES, 2)?;

    let empty = Database::create()?;
    empty.connect()?.batch_execute(&format!(
        "DROP EXTENSION neardup; CREATE EXTENSION neardup VERSION '{version}'; \
         ALTER EXTENSION neardup UPDATE"
    ))?;
    members(&empty)
}

#[test]
fn each_released_version_becomes_the_current_one() -> Outcome {
    let database = Database::create()?;
    let released: Vec<String> = value(
        &mut database.connect()?,
        "SELECT coalesce(array_agg(version), '{}') FROM pg_available_extension_versions \
         JOIN pg_available_extensions USING (name) \
         WHERE name = 'neardup' AND version <> default_version \
         AND version ~ '^[0-9]'",
    )?;
    let fresh = fresh()?;
    for version in released {
        assert!(
            upgraded(&version)? == fresh,
            "{version} becomes another schema than a fresh installation has"
        );
    }
    Ok(())
}

#[test]
fn an_upgrade_that_forgets_something_is_found() -> Outcome {
    const FUNCTION: &str = "CREATE FUNCTION neardup_text_length(";
    const COMMENT: &str = "COMMENT ON FUNCTION neardup_text_length(";
    const COST: &str = "ALTER FUNCTION _neardup_hamming(fingerprint, fingerprint) COST ";

    let scripts = Scripts::from_server(&mut Database::create()?.connect()?)?;
    let script = scripts.current()?;
    let (function, comment) = (statement(&script, FUNCTION)?, statement(&script, COMMENT)?);
    let before = script.replace(function, "").replace(comment, "") + COST + "7;\n";
    let _before = Script::write(&scripts, BEFORE, &before)?;
    let upgrade = format!("{BEFORE}--{}", scripts.current);
    let fresh = fresh()?;

    let whole = format!("{function}{comment}{COST}1;\n");
    let written = Script::write(&scripts, &upgrade, &whole)?;
    assert_eq!(upgraded(BEFORE)?, fresh);
    drop(written);

    for forgotten in [comment.to_owned(), format!("{COST}1;\n")] {
        let _written = Script::write(&scripts, &upgrade, &whole.replace(&forgotten, ""))?;
        assert!(upgraded(BEFORE)? != fresh, "not found: {forgotten}");
    }
    Ok(())
}

#[test]
fn a_version_whose_functions_the_library_lacks_is_refused() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let scripts = Scripts::from_server(&mut client)?;
    let script = scripts
        .current()?
        .replace("'neardup_text_length'", "'neardup_is_gone'");
    let _written = Script::write(&scripts, "gone", &script)?;
    client.batch_execute("DROP EXTENSION neardup")?;
    let refused = client.batch_execute("CREATE EXTENSION neardup VERSION 'gone'");
    let message = refused.map_err(|error| format!("{error:?}")).unwrap_err();
    assert!(message.contains("neardup_is_gone"), "{message}");
    Ok(())
}
