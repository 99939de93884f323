//! `RUST_BACKTRACE=1` in the server's environment does not change errors.
use crate::support::clients::time_out;
use crate::support::data::Shape;
use crate::support::table::{FINGERPRINT, Table};
use crate::support::{Outcome, with};
use anyhow::{Context, Result, ensure};
use neardup_tests::{connect, own_server};
use postgres::Error;

/// Asserts that an error has this SQLSTATE and a one-line detail with this prefix.
fn plain<T>(result: Result<T, Error>, state: &str, detail: Option<&str>) -> Outcome {
    let error = result.err().context("no error")?;
    let error = error.as_db_error().context("an error of the server's")?;
    ensure!(error.code().code() == state, "{error:?}");
    let as_expected = match (error.detail(), detail) {
        (Some(shown), Some(start)) => shown.starts_with(start) && !shown.contains('\n'),
        (shown, start) => shown == start,
    };
    ensure!(as_expected, "{error:?}");
    ensure!(error.file() != Some("<unknown>"), "{error:?}");
    Ok(())
}

#[test]
fn errors_carry_no_backtrace() -> Outcome {
    with(own_server("backtraces", &[("fsync", "off")])?, |server| {
        for value in ["1", "full"] {
            server.set_variable("RUST_BACKTRACE", value);
            server.restart()?;
            let mut client = connect(&server.conninfo("postgres"))?;
            client.batch_execute("DROP EXTENSION IF EXISTS neardup CASCADE")?;
            client.batch_execute("CREATE EXTENSION neardup")?;
            let table = Table::new(FINGERPRINT);
            table.create(&mut client, &Shape::Uniform.values(60_000, 1))?;

            // An error of the extension in a type's input function.
            let result = client.batch_execute("SELECT 'x'::fingerprint");
            plain(result, "22P02", Some("A fingerprint is written"))?;
            // An error of a user's function, raised during a build.
            client.batch_execute(
                "CREATE OR REPLACE FUNCTION refuse(fingerprint) RETURNS fingerprint IMMUTABLE \
                 LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$",
            )?;
            let build = "CREATE INDEX ON docs USING neardup (refuse(fp))";
            plain(client.batch_execute(build), "P0001", None)?;
            // An error of the server: a violated constraint below a function of the extension.
            client.batch_execute(
                "CREATE TABLE once (fp fingerprint, EXCLUDE USING neardup (fp WITH ~=)); \
                 INSERT INTO once VALUES ('00000000000000ff')",
            )?;
            let again = client.batch_execute("INSERT INTO once VALUES ('00000000000000ff')");
            plain(again, "23P01", Some("Key (fp)="))?;
            client.batch_execute("DROP TABLE once")?;
            // A cancelled statement.
            let build = table.index_command("radius = 3, blocks = 8");
            let result = time_out(&mut client, &build, "DROP INDEX docs_fp")?;
            plain(result, "57014", None)?;
        }
        Ok(())
    })
}
