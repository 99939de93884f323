//! The harness itself: databases and servers for single tests.
use crate::server::standby::wait_for_replay;
use neardup_tests::{Database, connect, own_server};

type Outcome = anyhow::Result<()>;

#[test]
fn a_database_has_the_extension_and_goes_with_the_value() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let name: String = client
        .query_one("SELECT current_database()::text", &[])?
        .get(0);
    let extensions: i64 = client
        .query_one(
            "SELECT count(*) FROM pg_extension WHERE extname = 'neardup'",
            &[],
        )?
        .get(0);
    assert_eq!(extensions, 1);
    drop(client);
    drop(database);
    let others = Database::create()?;
    let left: i64 = others
        .connect()?
        .query_one(
            "SELECT count(*) FROM pg_database WHERE datname = $1",
            &[&name],
        )?
        .get(0);
    assert_eq!(left, 0);
    Ok(())
}

#[test]
fn a_killed_server_recovers_what_was_committed() -> Outcome {
    let mut server = own_server("recovery", &[("checkpoint_timeout", "1h")])?;
    let mut client = connect(&server.conninfo("postgres"))?;
    client.batch_execute("CREATE TABLE t AS SELECT generate_series(1, 1000) AS n")?;
    client.batch_execute("BEGIN; INSERT INTO t VALUES (-1)")?;
    server.kill_9()?;
    assert!(!server.is_running()?);
    assert!(client.simple_query("SELECT 1").is_err());

    server.start()?;
    let mut client = connect(&server.conninfo("postgres"))?;
    let row = client.query_one("SELECT count(*), min(n) FROM t", &[])?;
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i32>(1)), (1000, 1));
    Ok(())
}

#[test]
fn settings_hold_over_a_restart() -> Outcome {
    let mut server = own_server("settings", &[("cluster_name", "it's \"this\" one")])?;
    for _ in 0..2 {
        let mut client = connect(&server.conninfo("postgres"))?;
        let name: String = client.query_one("SHOW cluster_name", &[])?.get(0);
        assert_eq!(name, "it's \"this\" one");
        server.restart()?;
    }
    Ok(())
}

#[test]
fn a_standby_follows_its_primary() -> Outcome {
    let primary = own_server("primary", &[("wal_level", "replica")])?;
    let standby = primary.standby("test-standby", &[])?;
    let mut writer = connect(&primary.conninfo("postgres"))?;
    writer.batch_execute("CREATE TABLE t AS SELECT 42 AS n")?;
    let mut reader = connect(&standby.conninfo("postgres"))?;
    wait_for_replay(&mut writer, &mut reader)?;
    let n: i32 = reader.query_one("SELECT n FROM t", &[])?.get(0);
    assert_eq!(n, 42);
    Ok(())
}
