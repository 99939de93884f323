//! Maintenance of an index by the server: autovacuum, tablespaces, progress reports.
use crate::support::clients::{cancel_when, code};
use crate::support::data::Shape;
use crate::support::oracle::{Way, explain, number};
use crate::support::table::{FINGERPRINT, Table, value};
use crate::support::waiting::wait_until;
use crate::support::{Outcome, with};
use anyhow::{Context, Result, ensure};
use neardup_tests::{Database, connect, own_server};
use postgres::Client;
use postgres::error::SqlState;

#[test]
fn autovacuum_takes_dead_rows_from_the_index() -> Outcome {
    let settings = [("fsync", "off"), ("autovacuum_naptime", "1s")];
    with(own_server("autovacuum", &settings)?, |server| {
        let mut client = connect(&server.conninfo("postgres"))?;
        client.batch_execute("CREATE EXTENSION neardup")?;
        let table = Table::new(FINGERPRINT);
        table.create_indexed(&mut client, &Shape::Balls.values(20_000, 1), "")?;
        client.batch_execute(
            "ALTER TABLE docs SET (autovacuum_vacuum_threshold = 1, \
                 autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0); \
             DELETE FROM docs WHERE id % 2 = 0",
        )?;
        let clean = "SELECT rows + null_rows = 10000 FROM neardup_index_info('docs_fp')";
        wait_until(&mut client, clean)?;
        let counted = "SELECT autovacuum_count > 0 FROM pg_stat_user_tables";
        wait_until(&mut client, counted)?;
        // The worker stores the index's number of rows for the planner.
        let told = "SELECT reltuples = 10000 FROM pg_class WHERE relname = 'docs_fp'";
        wait_until(&mut client, told)?;
        table.holds(&mut client, 2)
    })
}

#[test]
fn an_index_moves_between_tablespaces() -> Outcome {
    with(own_server("tablespaces", &[("fsync", "off")])?, |server| {
        let conninfo = server.conninfo("postgres");
        let mut client = connect(&conninfo)?;
        client.batch_execute("CREATE EXTENSION neardup")?;
        client.batch_execute("SET allow_in_place_tablespaces = on")?;
        client.batch_execute("CREATE TABLESPACE aside LOCATION ''")?;
        let table = Table::new(FINGERPRINT);
        table.create(&mut client, &Shape::Balls.values(6_000, 1))?;
        let command = table.index_command("radius = 2");
        let command = format!("{command} TABLESPACE aside");
        for (step, tablespace) in [
            (command.as_str(), "aside"),
            ("ALTER INDEX docs_fp SET TABLESPACE pg_default", "default"),
            ("REINDEX (TABLESPACE aside) INDEX docs_fp", "aside"),
            (
                "REINDEX (TABLESPACE pg_default, CONCURRENTLY) INDEX docs_fp",
                "default",
            ),
            ("ALTER TABLE docs SET TABLESPACE aside", "default"),
            ("ALTER INDEX docs_fp SET TABLESPACE aside", "aside"),
        ] {
            client.batch_execute(step)?;
            assert_eq!(tablespace_of_index(&mut client)?, tablespace, "{step}");
            let more = "INSERT INTO docs SELECT id + 10000, fp FROM docs WHERE id % 7 = 0";
            client.batch_execute(more)?;
            table.holds(&mut client, 2)?;
        }
        // The planner uses the cost of reading in the tablespace.
        let query = "SELECT id FROM docs WHERE fp <@ ball('0000000000000000'::fingerprint, 3)";
        let before = cost(&mut client, query)?;
        client.batch_execute("ALTER TABLESPACE aside SET (random_page_cost = 400)")?;
        let after = cost(&mut client, query)?;
        assert!(after > 10.0 * before, "{before} and then {after}");

        server.kill_9()?;
        server.start()?;
        let mut client = connect(&conninfo)?;
        assert_eq!(tablespace_of_index(&mut client)?, "aside");
        table.holds(&mut client, 3)
    })
}

fn tablespace_of_index(client: &mut Client) -> Result<String> {
    let query = "SELECT coalesce((SELECT spcname::text FROM pg_tablespace t \
                 WHERE t.oid = reltablespace), 'default') FROM pg_class WHERE relname = 'docs_fp'";
    value(client, query)
}

/// Returns the planner's cost of a search through the index.
fn cost(client: &mut Client, query: &str) -> Result<f64> {
    Way::Index.set(client)?;
    let shown = explain(client, "COSTS", query)?;
    ensure!(shown.starts_with("Index Scan using docs_fp"), "{shown}");
    number(&shown, "..").context(shown)
}

#[test]
fn a_build_reports_its_phases_and_how_far_it_is() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let table = Table::new(FINGERPRINT);
    table.create(&mut client, &Shape::Uniform.values(120_000, 1))?;
    // 56 permutations.
    let build = table.index_command("radius = 3, blocks = 8");
    for seen in [
        "phase = 'building index: scanning table' \
         AND blocks_total = pg_relation_size('docs') / 8192 AND blocks_done BETWEEN 1 AND \
         blocks_total",
        "phase = 'building index: sorting and writing permutations' \
         AND tuples_total = 56 AND tuples_done BETWEEN 1 AND 55",
        "phase LIKE 'building index: sorting%' AND tuples_done > 28 \
         AND command = 'CREATE INDEX' AND relid = 'docs'::regclass",
    ] {
        let seen = format!(
            "SELECT count(*) > 0 FROM pg_stat_progress_create_index \
             WHERE datname = current_database() AND {seen}"
        );
        let result = cancel_when(&database, &mut client, &seen, &build, "DROP INDEX docs_fp")?;
        assert_eq!(code(&result), Some(SqlState::QUERY_CANCELED), "{result:?}");
    }
    client.batch_execute(&build)?;
    client.batch_execute("INSERT INTO docs SELECT * FROM docs WHERE id < 1000")?;
    let seen = "SELECT count(*) > 0 FROM pg_stat_progress_create_index \
                WHERE datname = current_database() AND command LIKE 'REINDEX%' \
                AND phase LIKE 'building index: sorting%' AND tuples_done > 0";
    let result = cancel_when(
        &database,
        &mut client,
        seen,
        "REINDEX INDEX CONCURRENTLY docs_fp",
        "",
    )?;
    assert_eq!(code(&result), Some(SqlState::QUERY_CANCELED), "{result:?}");
    // The old index still exists. The new one, whose contents are unknown, can be dropped.
    for function in [
        "neardup_index_info",
        "neardup_expert_index_statistics",
        "neardup_index_check",
    ] {
        let result = client.batch_execute(&format!("SELECT {function}('docs_fp_ccnew')"));
        let unfinished = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
        assert_eq!(code(&result), Some(unfinished), "{result:?}");
    }
    client.batch_execute("DROP INDEX docs_fp_ccnew")?;
    table.answers(&mut client, &[0, 3], 2)
}
