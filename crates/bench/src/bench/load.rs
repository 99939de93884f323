//! `cargo xtask bench --load`: compares a load with near-duplicates into a table that rejects them
//! (by a constraint or a trigger, within 3 bits and within the default of 6 bits) with the same
//! load into a table with one btree.
use super::generated_rows;
use super::session::{Session, Time, least};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use std::fmt::Write as _;
use xtask::ui;

/// Table with an index, a constraint or a trigger. The benchmark measures a load into it.
struct Contender {
    /// Name of the contender's table.
    table: &'static str,
    /// Name of the contender in the printed table.
    what: &'static str,
    /// Statements that create the index, constraint or trigger on the table, which has columns `id`
    /// and `fp`.
    setup_sql: &'static str,
    /// Clause at the end of the INSERT statement.
    clause: &'static str,
    /// Index by which near-duplicates are rejected; `None` if the table keeps them.
    index: Option<&'static str>,
}

const CONTENDERS: [Contender; 7] = [
    Contender {
        table: "plain",
        what: "one btree",
        setup_sql: "CREATE INDEX ON plain (fp)",
        clause: "",
        index: None,
    },
    Contender {
        table: "indexed3",
        what: "neardup, radius 3, nothing rejected",
        setup_sql: "CREATE INDEX ON indexed3 USING neardup (fp) WITH (radius = 3)",
        clause: "",
        index: None,
    },
    Contender {
        table: "constrained3",
        what: "constraint, radius 3",
        setup_sql: "ALTER TABLE constrained3 ADD CONSTRAINT constrained3_near \
            EXCLUDE USING neardup (ball(fp, 3) WITH ~=)",
        clause: " ON CONFLICT DO NOTHING",
        index: Some("constrained3_near"),
    },
    Contender {
        table: "triggered3",
        what: "trigger, radius 3",
        setup_sql: "CREATE INDEX triggered3_near ON triggered3 USING neardup (fp) \
            WITH (radius = 3); \
            CREATE TRIGGER dedup BEFORE INSERT ON triggered3 \
            FOR EACH ROW EXECUTE FUNCTION neardup_dedup('fp', 'radius=3')",
        clause: "",
        index: Some("triggered3_near"),
    },
    Contender {
        table: "indexed6",
        what: "neardup, radius 6, nothing rejected",
        setup_sql: "CREATE INDEX ON indexed6 USING neardup (fp)",
        clause: "",
        index: None,
    },
    Contender {
        table: "constrained6",
        what: "constraint, radius 6",
        setup_sql: "ALTER TABLE constrained6 ADD CONSTRAINT constrained6_near \
            EXCLUDE USING neardup (fp WITH ~=)",
        clause: " ON CONFLICT DO NOTHING",
        index: Some("constrained6_near"),
    },
    Contender {
        table: "triggered6",
        what: "trigger, radius 6",
        setup_sql: "CREATE INDEX triggered6_near ON triggered6 USING neardup (fp); \
            CREATE TRIGGER dedup BEFORE INSERT ON triggered6 \
            FOR EACH ROW EXECUTE FUNCTION neardup_dedup('fp')",
        clause: "",
        index: Some("triggered6_near"),
    },
];

/// Measurements of the loads into one contender's table.
#[derive(Default)]
struct Measured {
    /// Time of the INSERT statement, in each round.
    times: Vec<Time>,
    /// Bytes of WAL of the INSERT statement, in each round.
    wal: Vec<f64>,
    /// Number of rows in the table after the load. It is the same in each round.
    kept: u64,
}

impl Measured {
    /// Returns the smallest elapsed time of all rounds, in seconds.
    fn wall(&self) -> f64 {
        least(&self.times.iter().map(|time| time.wall).collect::<Vec<_>>())
    }

    /// Returns the smallest processor time of all rounds, in seconds, or `None` if it is unknown.
    fn cpu(&self) -> Option<f64> {
        let times: Option<Vec<f64>> = self.times.iter().map(|time| time.cpu).collect();
        times.map(|times| least(&times))
    }
}

/// Loads `rows` rows into each contender's table, `rounds` times, in an empty database with the
/// extension. Prints the table of results and returns all measurements as JSON.
pub fn bench(session: &mut Session, rows: u64, rounds: u32) -> Result<Value> {
    ui::step(format!("Loading {rows} rows to be inserted"), || {
        // An original must be inserted before its near-duplicates, so the scan of the staging table
        // must start at its first row.
        session.run("SET synchronize_seqscans = off")?;
        generated_rows::load_near(session, "staging", rows)?;
        for contender in &CONTENDERS {
            let table = contender.table;
            session.run(&format!("CREATE TABLE {table} (id bigint, fp fingerprint)"))?;
            session.run(contender.setup_sql)?;
        }
        Ok(())
    })?;
    let mut measured: [Measured; CONTENDERS.len()] = Default::default();
    for round in 1..=rounds {
        for (contender, measured) in CONTENDERS.iter().zip(&mut measured) {
            let step = format!("Round {round} of {rounds}, {}", contender.what);
            ui::step(step, || insert(session, contender, rows, measured))?;
        }
    }
    println!("\n{}", table(rows, &measured));
    let contenders: Vec<Value> = (CONTENDERS.iter().zip(&measured))
        .map(|(contender, measured)| {
            json!({
                "what": contender.what,
                "seconds": measured.times.iter().map(|time| time.wall).collect::<Vec<_>>(),
                "cpu_seconds": measured.times.iter().map(|time| time.cpu).collect::<Vec<_>>(),
                "wal_bytes": measured.wal,
                "rows_kept": measured.kept,
            })
        })
        .collect();
    Ok(json!({ "rows": rows, "rounds": rounds, "contenders": contenders }))
}

/// Inserts the `rows` rows of the staging table into the contender's empty table. Adds the time and
/// the WAL of the statement to `measured`. Then checks the table. If it rejects near-duplicates, it
/// must have as many rows as there are originals, and no pair of near-duplicates. Otherwise it must
/// have all rows. Empties the table at the end.
fn insert(
    session: &mut Session,
    contender: &Contender,
    rows: u64,
    measured: &mut Measured,
) -> Result<()> {
    let Contender {
        table,
        what,
        clause,
        ..
    } = contender;
    session.run("CHECKPOINT")?;
    let before = session.wal()?;
    let insert = format!("INSERT INTO {table} SELECT id, fp::fingerprint FROM staging{clause}");
    measured.times.push(session.timed(&insert)?);
    measured.wal.push((session.wal()? - before) as f64);
    let copies = (0..rows)
        .filter(|&row| generated_rows::is_copy(row))
        .count() as u64;
    let expected = match contender.index {
        None => rows,
        Some(_) => rows - copies,
    };
    let kept: i64 = session.value(&format!("SELECT count(*) FROM {table}"))?;
    measured.kept = kept.cast_unsigned();
    ensure!(
        measured.kept == expected,
        "{what}: {kept} rows were kept, not {expected}"
    );
    if let Some(index) = contender.index {
        let pairs: i64 =
            session.value(&format!("SELECT count(*) FROM neardup_pairs('{index}', 3)"))?;
        ensure!(
            pairs == 0,
            "{what}: {pairs} pairs of near-duplicates are left"
        );
    }
    // Empties the table, because the next contender needs the space in the server's cache.
    session.run(&format!("TRUNCATE {table}"))
}

/// Returns the measurements as a Markdown table. `rows` is the number of loaded rows.
fn table(rows: u64, measured: &[Measured; CONTENDERS.len()]) -> String {
    let mut table = String::from(
        "| load into a table with | time | rows a second | of those with one btree | by CPU time \
            | WAL | rows kept |\n\
         |---|---:|---:|---:|---:|---:|---:|\n",
    );
    let plain = &measured[0];
    for (contender, measured) in CONTENDERS.iter().zip(measured) {
        let share = plain.wall() / measured.wall();
        let by_cpu = plain.cpu().zip(measured.cpu());
        let by_cpu = by_cpu.map_or(String::new(), |(plain, ours)| percent(plain / ours));
        // Writing to a string does not fail.
        let _ = writeln!(
            table,
            "| {} | {:.2} s | {:.0} | {} | {by_cpu} | {:.0} MB | {} |",
            contender.what,
            measured.wall(),
            rows as f64 / measured.wall(),
            percent(share),
            least(&measured.wal) / 1e6,
            measured.kept,
        );
    }
    table
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}
