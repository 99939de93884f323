//! A streaming standby replays what its primary does, and answers as it does.
use crate::support::crowd::{self, TABLE, Work};
use crate::support::data::{Probe, RADII};
use crate::support::oracle::Way;
use crate::support::table::value;
use crate::support::{Outcome, with};
use anyhow::{Context, Result, ensure};
use neardup_pgserver::Server;
use neardup_tests::{connect, own_server};
use postgres::Client;
use std::time::{Duration, Instant};

const CROWD: [Work; 6] = [
    Work::Insert,
    Work::Insert,
    Work::Change,
    Work::Vacuum,
    Work::Search,
    Work::Build,
];

#[test]
fn a_standby_replays_every_change_exactly_and_answers_alike() -> Outcome {
    // Each record carries the page as it is to be, and replay compares: a difference is a PANIC.
    let settings = [
        ("fsync", "off"),
        ("wal_consistency_checking", "all"),
        ("wal_keep_size", "4GB"),
    ];
    let primary = own_server("replicated", &settings)?;
    with(Some(primary), replicate)
}

/// Takes the primary away once the standby is to be promoted.
fn replicate(running: &mut Option<Server>) -> Outcome {
    let primary = running.as_ref().context("a primary")?;
    let conninfo = primary.conninfo("postgres");
    let mut writer = connect(&conninfo)?;
    writer.batch_execute("CREATE EXTENSION neardup")?;
    crowd::prepare(&mut writer, 2_000)?;
    writer.batch_execute(
        "CREATE UNLOGGED TABLE passing (fp fingerprint); \
         CREATE INDEX passing_fp ON passing USING neardup (fp)",
    )?;
    // Queries on the standby are not cancelled for a vacuum of the primary's.
    let settings = [("fsync", "off"), ("hot_standby_feedback", "on")];
    let standby = primary.standby("test-replica", &settings)?;
    with(standby, |standby| {
        let mut reader = connect(&standby.conninfo("postgres"))?;

        crowd::work(&conninfo, &CROWD, 1, false, || {
            let start = Instant::now();
            let mut searches = 0;
            while searches <= 10 || start.elapsed() < Duration::from_secs(4) {
                crowd::search(&mut reader, searches)?;
                searches += 1;
            }
            Ok(())
        })?;

        wait_for_replay(&mut writer, &mut reader)?;
        let expected = answers(&mut writer)?;
        assert!(expected.iter().filter(|ids| !ids.is_empty()).count() > 10);
        assert!(
            answers(&mut reader)? == expected,
            "the standby answers otherwise"
        );

        look_inside(&mut writer, &mut reader)?;

        drop(writer);
        running.take();
        let promoted: bool = value(&mut reader, "SELECT pg_promote()")?;
        assert!(promoted);
        assert!(
            answers(&mut reader)? == expected,
            "promoted, it answers otherwise"
        );
        crowd::holds(&mut reader, 2)?;
        crowd::work(&standby.conninfo("postgres"), &CROWD, 2, false, || {
            crowd::wait(1_000)
        })?;
        crowd::holds(&mut reader, 3)
    })
}

/// Asserts that the standby's index is what the primary's is, page by page, and that there is
/// nothing to look into in one that is not replicated.
fn look_inside(primary: &mut Client, standby: &mut Client) -> Outcome {
    let info = "SELECT neardup_index_info('docs_fp')::text";
    assert_eq!(
        value::<String>(standby, info)?,
        value::<String>(primary, info)?
    );
    let error = standby
        .batch_execute("SELECT neardup_index_info('passing_fp')")
        .unwrap_err();
    let error = error.as_db_error().context("an error of the server's")?;
    assert_eq!(error.code().code(), "0A000", "{error:?}");
    assert!(error.message().contains("unlogged"), "{error:?}");
    Ok(())
}

/// Waits until the standby has replayed what the primary has written.
fn wait_for_replay(primary: &mut Client, standby: &mut Client) -> Result<()> {
    let position: String = value(primary, "SELECT pg_current_wal_flush_lsn()::text")?;
    let replayed = format!("SELECT pg_last_wal_replay_lsn() >= '{position}'");
    let start = Instant::now();
    while !value::<bool>(standby, &replayed)? {
        ensure!(
            start.elapsed() < Duration::from_secs(60),
            "the standby does not follow"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// What the index answers, for each radius around a row.
fn answers(client: &mut Client) -> Result<Vec<Vec<i64>>> {
    let mut answers = Vec::new();
    for (row, radius) in (1..).zip(RADII) {
        let center: i64 = value(client, &format!("SELECT coalesce(fp_of({row})::bigint, 0)"))?;
        let ball = TABLE.fp.ball(Probe {
            center: center as u64,
            radius,
        });
        Way::Index.set(client)?;
        let query = format!(
            "SELECT coalesce(array_agg(id ORDER BY id), '{{}}') FROM docs WHERE fp <@ {ball}"
        );
        answers.push(value(client, &query)?);
    }
    Ok(answers)
}
