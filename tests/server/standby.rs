//! A streaming standby replays the primary's changes byte by byte, and returns the same results.
use crate::support::data::{RADII, Shape};
use crate::support::fixtures::{self, APART, DOCS, LOGGED, SCOPED, WIDE};
use crate::support::oracle::Way;
use crate::support::table::{FINGERPRINT, Table, value};
use crate::support::waiting::{poll, wait_until};
use crate::support::workload::{self, Job, Work};
use crate::support::{Outcome, with};
use anyhow::{Context, Result, ensure};
use neardup_pgserver::Server;
use neardup_tests::{connect, own_server};
use postgres::Client;
use postgres::error::SqlState;
use std::fs;
use std::path::PathBuf;

const WORKLOAD: [Job; 14] = [
    Job(Work::Insert, &DOCS),
    Job(Work::Fill, &DOCS),
    Job(Work::Change, &DOCS),
    Job(Work::Vacuum, &DOCS),
    Job(Work::Search, &DOCS),
    Job(Work::Rebuild, &DOCS),
    Job(Work::Insert, &WIDE),
    Job(Work::Change, &WIDE),
    Job(Work::Vacuum, &WIDE),
    Job(Work::Insert, &SCOPED),
    Job(Work::Change, &SCOPED),
    Job(Work::Vacuum, &SCOPED),
    Job(Work::Insert, &APART),
    Job(Work::Vacuum, &APART),
];

/// Each record has an image of its pages. Replay fails if its pages differ from the image.
const CHECKING: (&str, &str) = ("wal_consistency_checking", "all");

/// Statements of each client on the primary.
const STATEMENTS: u32 = 8;

#[test]
fn a_standby_replays_every_change_exactly_and_answers_alike() -> Outcome {
    let settings = [
        ("fsync", "off"),
        CHECKING,
        // No autovacuum may change the files while they are compared.
        ("autovacuum", "off"),
    ];
    let primary = own_server("replicated", &settings)?;
    with(Some(primary), replicate)
}

/// Removes the primary before the standby is promoted.
fn replicate(running: &mut Option<Server>) -> Outcome {
    let primary = running.as_ref().context("a primary")?;
    let conninfo = primary.conninfo("postgres");
    let mut writer = connect(&conninfo)?;
    writer.batch_execute("CREATE EXTENSION neardup")?;
    fixtures::prepare(&mut writer, &LOGGED, 2_000)?;
    writer.batch_execute(
        "CREATE UNLOGGED TABLE passing (fp fingerprint); \
         CREATE INDEX passing_fp ON passing USING neardup (fp)",
    )?;
    // Changes on the primary do not cancel slow queries on the standby.
    let settings = [
        ("fsync", "off"),
        ("hot_standby_feedback", "on"),
        ("max_standby_streaming_delay", "-1"),
    ];
    let standby = primary.standby("test-replica", &settings)?;
    with(standby, |standby| {
        let mut reader = connect(&standby.conninfo("postgres"))?;

        // Each record has images of its pages. Clients that do not wait for the standby would
        // write gigabytes ahead of replay.
        wait_at_commit(&mut writer, true)?;
        workload::run(&conninfo, &WORKLOAD, 1, false, |clients| {
            let searched = search_meanwhile(&mut reader, clients);
            // The clients must not wait for a standby that has failed.
            wait_at_commit(&mut writer, false)?;
            searched
        })?;

        wait_for_replay(&mut writer, &mut reader)?;
        let expected = answers(&mut writer)?;
        assert!(expected.iter().filter(|ids| !ids.is_empty()).count() > 10);
        assert!(
            answers(&mut reader)? == expected,
            "the standby answers otherwise"
        );
        let primary = running.as_ref().context("a primary")?;
        assert_same_pages(&mut writer, &mut reader, primary, standby)?;

        look_inside(&mut writer, &mut reader)?;

        drop(writer);
        running.take();
        let promoted: bool = value(&mut reader, "SELECT pg_promote(wait_seconds => 300)")?;
        assert!(promoted);
        assert!(
            answers(&mut reader)? == expected,
            "promoted, it answers otherwise"
        );
        fixtures::hold(&mut reader, &LOGGED, 2)?;
        let conninfo = standby.conninfo("postgres");
        workload::run(&conninfo, &WORKLOAD, 2, false, |clients| {
            workload::until_each_has_done(clients, STATEMENTS / 4)
        })?;
        fixtures::hold(&mut reader, &LOGGED, 3)?;
        Ok(())
    })
}

/// Sets whether the primary's clients wait at each commit until the standby has replayed it.
fn wait_at_commit(writer: &mut Client, wait: bool) -> Outcome {
    let (standbys, commit) = if wait {
        ("*", "remote_apply")
    } else {
        ("", "on")
    };
    writer.batch_execute(&format!(
        "ALTER SYSTEM SET synchronous_standby_names = '{standbys}'"
    ))?;
    writer.batch_execute(&format!("ALTER SYSTEM SET synchronous_commit = {commit}"))?;
    writer.batch_execute("SELECT pg_reload_conf()")?;
    Ok(())
}

/// Searches on the standby until the primary's clients have done enough work.
fn search_meanwhile(reader: &mut Client, clients: &[workload::Busy]) -> Outcome {
    let mut searches = 0;
    while searches <= 10 || !workload::each_has_done(clients, STATEMENTS) {
        for fixture in LOGGED {
            search_on_standby(reader, fixture, searches)?;
        }
        searches += 1;
    }
    Ok(())
}

/// Runs a search and a check of the index. Replay may cancel them in a deadlock.
fn search_on_standby(reader: &mut Client, fixture: &fixtures::Fixture, seed: u64) -> Outcome {
    // Only this table's index is rebuilt, so that snapshots may be too old for it.
    let strict = fixture.table != DOCS.table;
    let check = format!(
        "SELECT neardup_index_check('{}_fp', heap => true, concurrently => true)",
        fixture.table
    );
    let searched = fixtures::search(reader, fixture, seed, strict)
        .and_then(|()| Ok(reader.batch_execute(&check)?));
    let Err(error) = searched else {
        return Ok(());
    };
    let server = error.downcast_ref::<postgres::Error>();
    let code = server.and_then(|error| error.code());
    let deadlock = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
    ];
    ensure!(
        code.is_some_and(|code| deadlock.contains(code)),
        "on the standby: {error:?}"
    );
    Ok(())
}

#[test]
fn replay_that_makes_another_page_than_the_primary_is_noticed() -> Outcome {
    // With full page writes, the first change of a page after a checkpoint would replace the page.
    let settings = [("fsync", "off"), CHECKING, ("full_page_writes", "off")];
    let primary = own_server("checked", &settings)?;
    with(primary, |primary| {
        let mut writer = connect(&primary.conninfo("postgres"))?;
        writer.batch_execute("CREATE EXTENSION neardup")?;
        let table = Table::new(FINGERPRINT);
        table.create_indexed(&mut writer, &Shape::Uniform.values(2_000, 1), "")?;
        let settings = [("fsync", "off"), ("ignore_checksum_failure", "on")];
        let standby = primary.standby("test-checked-replica", &settings)?;
        with(standby, |standby| {
            let mut reader = connect(&standby.conninfo("postgres"))?;
            table.append(&mut writer, 2_000, &Shape::Uniform.values(100, 2))?;
            wait_for_replay(&mut writer, &mut reader)?;

            // Changes a bit of a key on a leaf, which an append does not overwrite.
            standby.stop()?;
            let file: String = value(&mut writer, "SELECT pg_relation_filepath('docs_fp')")?;
            let file = standby.data().join(file);
            let mut bytes = fs::read(&file)?;
            for leaf in bytes.chunks_mut(PAGE).skip(1) {
                leaf[KEYS] ^= 1;
            }
            fs::write(&file, bytes)?;
            standby.begin_start()?;
            table.append(&mut writer, 3_000, &Shape::Uniform.values(1_000, 3))?;
            poll("replay notices the difference", || {
                Ok(!standby.is_running()?)
            })?;
            let log = fs::read_to_string(standby.log())?;
            ensure!(log.contains("inconsistent page found"), "{log}");
            Ok(())
        })
    })
}

const PAGE: usize = 8192;
/// Offset of the keys on a leaf.
const KEYS: usize = 24;
/// Bytes of the page header with the LSN and the checksum.
const MASKED: usize = 10;

/// Asserts that the pages of all indexes are the same on both servers.
pub fn assert_same_pages(
    writer: &mut Client,
    reader: &mut Client,
    primary: &Server,
    standby: &Server,
) -> Outcome {
    let indexes = indexes(writer)?;
    assert!(!indexes.is_empty());
    wait_for_replay(writer, reader)?;
    // A restartpoint after the replayed checkpoint writes the standby's pages.
    writer.batch_execute("CHECKPOINT")?;
    wait_for_replay(writer, reader)?;
    reader.batch_execute("CHECKPOINT")?;
    for (index, file) in indexes {
        let pages = [primary, standby].map(|server| pages(server, &file));
        let [there, here] = pages.map(|pages| pages.with_context(|| index.clone()));
        ensure!(there? == here?, "the pages of {index} differ");
    }
    Ok(())
}

/// The neardup indexes, and the file of each.
fn indexes(client: &mut Client) -> Result<Vec<(String, PathBuf)>> {
    let rows = client.query(
        "SELECT pg_class.oid::regclass::text, pg_relation_filepath(pg_class.oid) \
         FROM pg_class JOIN pg_am ON pg_am.oid = relam \
         WHERE amname = 'neardup' AND relpersistence = 'p'",
        &[],
    )?;
    let entry = |row: &postgres::Row| (row.get(0), PathBuf::from(row.get::<_, String>(1)));
    Ok(rows.iter().map(entry).collect())
}

/// Returns the pages of an index in the server's file, with the bytes zeroed that may differ.
fn pages(server: &Server, file: &PathBuf) -> Result<Vec<u8>> {
    let mut bytes = fs::read(server.data().join(file))?;
    for page in bytes.chunks_mut(PAGE) {
        page[..MASKED].fill(0);
    }
    Ok(bytes)
}

/// Asserts that the standby's index equals the primary's, page by page, and that inspecting an
/// index without replication fails.
fn look_inside(primary: &mut Client, standby: &mut Client) -> Outcome {
    for function in ["neardup_index_info", "neardup_expert_index_statistics"] {
        let query = format!("SELECT {function}('docs_fp')::text");
        let shown: String = value(standby, query.as_str())?;
        assert_eq!(shown, value::<String>(primary, query.as_str())?);
    }
    let error = standby
        .batch_execute("SELECT neardup_index_info('passing_fp')")
        .unwrap_err();
    let error = error.as_db_error().context("an error of the server's")?;
    assert_eq!(error.code().code(), "0A000", "{error:?}");
    assert!(error.message().contains("unlogged"), "{error:?}");
    Ok(())
}

/// Waits until the standby has replayed the primary's log.
pub fn wait_for_replay(primary: &mut Client, standby: &mut Client) -> Result<()> {
    let position: String = value(primary, "SELECT pg_current_wal_flush_lsn()::text")?;
    let replayed = format!("SELECT pg_last_wal_replay_lsn() >= '{position}'");
    wait_until(standby, &replayed)
}

/// Returns the indexes' results, for each radius around a row.
fn answers(client: &mut Client) -> Result<Vec<Vec<i64>>> {
    Way::Index.set(client)?;
    let mut answers = Vec::new();
    for fixture in LOGGED {
        for (row, radius) in (1..).zip(RADII) {
            answers.push(value(
                client,
                &format!(
                    "SELECT coalesce(array_agg(id ORDER BY id), '{{}}') FROM {} WHERE {}",
                    fixture.table,
                    fixture.in_ball(&fixture.of(&row.to_string()), radius)
                ),
            )?);
        }
    }
    Ok(answers)
}
