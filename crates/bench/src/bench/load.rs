//! `cargo xtask bench --load`: compares a load with near-duplicates into a table that rejects them
//! with the same load into a table with one btree.
use super::corpus;
use super::session::{Session, Time, least};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use std::fmt::Write as _;
use xtask::ui;

/// A means to keep near-duplicates out of a table, or none.
struct Contender {
    /// The name of the table.
    table: &'static str,
    what: &'static str,
    /// Statements that set it up on a table of `id` and `fp`.
    made_by: &'static str,
    /// Clause at the end of INSERT.
    clause: &'static str,
    /// The index that keeps near-duplicates out, if any does.
    index: Option<&'static str>,
    /// Minimum rate of inserted rows, as a share of the rate with one btree.
    goal: Option<f64>,
}

const CONTENDERS: [Contender; 4] = [
    Contender {
        table: "plain",
        what: "one btree",
        made_by: "CREATE INDEX ON plain (fp)",
        clause: "",
        index: None,
        goal: None,
    },
    Contender {
        table: "indexed",
        what: "neardup, nothing kept out",
        made_by: "CREATE INDEX ON indexed USING neardup (fp) WITH (radius = 3)",
        clause: "",
        index: None,
        goal: None,
    },
    Contender {
        table: "constrained",
        what: "constraint, ON CONFLICT DO NOTHING",
        made_by: "ALTER TABLE constrained \
            ADD CONSTRAINT constrained_near EXCLUDE USING neardup (fp WITH ~=)",
        clause: " ON CONFLICT DO NOTHING",
        index: Some("constrained_near"),
        goal: Some(0.4),
    },
    Contender {
        table: "triggered",
        what: "trigger neardup_dedup",
        made_by: "CREATE INDEX triggered_near ON triggered USING neardup (fp) WITH (radius = 3); \
            CREATE TRIGGER dedup BEFORE INSERT ON triggered \
            FOR EACH ROW EXECUTE FUNCTION neardup_dedup('fp', 'radius=6')",
        clause: "",
        index: Some("triggered_near"),
        goal: None,
    },
];

/// Measurements of a contender, a value for each round.
#[derive(Default)]
struct Measured {
    times: Vec<Time>,
    wal: Vec<f64>,
    kept: u64,
}

impl Measured {
    fn wall(&self) -> f64 {
        least(&self.times.iter().map(|time| time.wall).collect::<Vec<_>>())
    }

    fn cpu(&self) -> Option<f64> {
        let times: Option<Vec<f64>> = self.times.iter().map(|time| time.cpu).collect();
        times.map(|times| least(&times))
    }
}

/// Measures on an empty database with the extension, prints the table and returns the same and
/// more as JSON.
pub fn bench(session: &mut Session, rows: u64, rounds: u32) -> Result<Value> {
    ui::step(format!("Loading {rows} rows to be inserted"), || {
        // A copy must be inserted after its original.
        session.run("SET synchronize_seqscans = off")?;
        corpus::load_near(session, "staging", rows)?;
        for contender in &CONTENDERS {
            let table = contender.table;
            session.run(&format!("CREATE TABLE {table} (id bigint, fp fingerprint)"))?;
            session.run(contender.made_by)?;
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

/// Inserts all rows into an empty table and compares what was kept with the truth.
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
    let copies = (0..rows).filter(|&row| corpus::is_copy(row)).count() as u64;
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
    // Makes room in the cache for the next contender.
    session.run(&format!("TRUNCATE {table}"))
}

/// The table, in Markdown.
fn table(rows: u64, measured: &[Measured; CONTENDERS.len()]) -> String {
    let mut table = String::from(
        "| load into a table with | time | rows a second | of those with one btree | by CPU time \
            | goal | met | WAL | rows kept |\n\
         |---|---:|---:|---:|---:|---|---|---:|---:|\n",
    );
    let plain = &measured[0];
    for (contender, measured) in CONTENDERS.iter().zip(measured) {
        let share = plain.wall() / measured.wall();
        let by_cpu = plain.cpu().zip(measured.cpu());
        let by_cpu = by_cpu.map_or(String::new(), |(plain, ours)| percent(plain / ours));
        let goal = contender
            .goal
            .map_or(String::new(), |goal| format!(">= {}", percent(goal)));
        let met = match contender.goal {
            Some(goal) if share >= goal => "yes",
            Some(_) => "NO",
            None => "",
        };
        // Writing to a string does not fail.
        let _ = writeln!(
            table,
            "| {} | {:.2} s | {:.0} | {} | {by_cpu} | {goal} | {met} | {:.0} MB | {} |",
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
