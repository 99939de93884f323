//! The delivery procedures of docs/corpus.md and docs/dedup.md. With any number of sessions and
//! any concurrent transaction, each delivered text must be in the table or in the archive, and the
//! archive must name its near-duplicate.
use crate::dedup::recipes::{begin, blocks, until_it_waits};
use crate::support::Outcome;
use crate::support::data::Random;
use crate::support::table::value;
use anyhow::{Context, Result, ensure};
use neardup_tests::Database;
use postgres::Client;

/// Names in a document for the parts of a recipe.
struct Recipe {
    /// The table, its index, and functions over its values. `value_of(chain, step)` makes a value
    /// near its neighbours in the chain, and near no other value; values of chain 0 have no
    /// neighbours. `near(a, b)` and `measure(a, b)` compare two values.
    setup: &'static str,
    /// Document, heading, and the end of the part of the section that makes tables and procedures.
    made_by: &'static [(&'static str, &'static str, &'static str)],
    table: &'static str,
    staging: &'static str,
    /// Columns of the table other than `id` and `body`, and the same for a delivered row.
    columns: (&'static str, &'static str),
    /// The value, the key of the kept document, and the distance or similarity.
    archived: [&'static str; 3],
    take: &'static str,
    /// Order in which documents are kept, the best one first.
    best: &'static str,
    /// Triggers and constraints against near-duplicates while the procedure runs.
    rules: &'static [&'static str],
}

const SIGNATURES: Recipe = Recipe {
    setup: "CREATE TABLE corpus (id bigint PRIMARY KEY, body text, sig minhash_signature, \
            text_length bigint); \
        CREATE INDEX corpus_sig ON corpus USING neardup (sig) WITH (similarity = 0.8); \
        CREATE FUNCTION value_of(chain bigint, step bigint) RETURNS minhash_signature \
            LANGUAGE sql AS $$ \
            SELECT minhash_from_values(array_agg(4294967295 & hashint8extended( \
                chain * 1000000 + p * 1000 + (20 * step - p + 127) / 128, 5) ORDER BY p)) \
            FROM generate_series(0, 127) p WHERE chain > 0 HAVING count(*) > 0 $$; \
        CREATE FUNCTION near(a minhash_signature, b minhash_signature) RETURNS boolean \
            LANGUAGE sql AS 'SELECT minhash_similarity(a, b)::float8 + 0 >= 0.8'; \
        CREATE FUNCTION measure(a minhash_signature, b minhash_signature) RETURNS float8 \
            LANGUAGE sql AS 'SELECT minhash_similarity(a, b)::float8';",
    made_by: &[
        (
            "corpus.md",
            "Take them out, in batches",
            "WHERE superseded IS NULL;",
        ),
        (
            "corpus.md",
            "The next delivery",
            "CALL recheck_archive(keep);\nEND $$;",
        ),
    ],
    table: "corpus",
    staging: "delivery",
    columns: ("sig, text_length", "value_of($3, $4), $5::int"),
    archived: ["sig", "kept", "similarity"],
    take: "take_delivery",
    best: "text_length, id",
    rules: &[
        "",
        "ALTER TABLE corpus ADD EXCLUDE USING neardup (sig WITH ~=);",
    ],
};

const FINGERPRINTS: Recipe = Recipe {
    setup: "CREATE TABLE docs (id int PRIMARY KEY, body text, fp fingerprint, duplicate_of int); \
        CREATE INDEX docs_fp ON docs USING neardup (fp); \
        CREATE FUNCTION value_of(chain bigint, step bigint) RETURNS fingerprint \
            LANGUAGE sql AS $$ SELECT CASE WHEN chain > 0 THEN \
            (('x' || left(md5(chain::text), 16))::bit(64)::bigint \
                # ((1::bigint << (5 * step::int)) - 1))::fingerprint END $$; \
        CREATE FUNCTION near(a fingerprint, b fingerprint) RETURNS boolean \
            LANGUAGE sql AS 'SELECT (a <~> b) + 0 <= 6'; \
        CREATE FUNCTION measure(a fingerprint, b fingerprint) RETURNS int \
            LANGUAGE sql AS 'SELECT a <~> b';",
    made_by: &[
        (
            "dedup.md",
            "Move them to an archive",
            "DROP TABLE orphan;\nEND $$;",
        ),
        (
            "dedup.md",
            "New documents against old ones",
            "CALL recheck_archive(keep);\nEND $$;",
        ),
    ],
    table: "docs",
    staging: "staging",
    columns: ("fp", "value_of($3, $4)"),
    archived: ["fp", "duplicate_of", "distance"],
    take: "take_staging",
    best: "length(body) DESC, id",
    rules: &[
        "",
        "ALTER TABLE docs ADD EXCLUDE USING neardup (ball(fp, 6) WITH ~=);",
        "CREATE TRIGGER dedup BEFORE INSERT OR UPDATE OF fp ON docs FOR EACH ROW \
            EXECUTE FUNCTION neardup_dedup('fp', 'radius=6', 'action=skip');",
    ],
};

const RECIPES: [&Recipe; 2] = [&SIGNATURES, &FINGERPRINTS];

/// A version of a document: its key, its value, the length of its text, and a number that
/// distinguishes texts with the same value.
#[derive(Clone, Copy, Debug)]
struct Version {
    id: u64,
    chain: u64,
    step: u64,
    rank: u64,
    text: u64,
}

impl Version {
    /// Returns a version from chains of up to six documents, with few keys and some without a
    /// value.
    fn random(random: &mut Random) -> Self {
        Self {
            id: random.below(40),
            chain: random.below(6),
            step: random.below(6),
            rank: random.below(9),
            text: random.below(2),
        }
    }

    /// Returns a text with white space at both ends, which must not change.
    fn body(self) -> String {
        let Self {
            chain,
            step,
            rank,
            text,
            ..
        } = self;
        let end = ".".repeat(rank as usize);
        format!("    {chain}/{step}/{text}:\r\n\t{end}\n \n")
    }
}

impl Recipe {
    /// Returns the part of the documents that makes the archive and the procedures.
    fn statements(&self) -> Result<String> {
        let mut all = self.setup.to_owned();
        for (document, heading, end) in self.made_by {
            let section = blocks(document, heading)?.concat();
            let at = section.find("CREATE").context("a statement")?;
            // A staging table may precede queries that only read.
            let length = section[at..].find(end).context(*end)? + end.len();
            all += &section[at..at + length];
        }
        Ok(all)
    }

    /// Makes a database with the recipe, and a log of the deliveries.
    fn database(&self, rule: &str) -> Result<Database> {
        let database = Database::create()?;
        let [archived, kept, measure] = self.archived;
        let Self { table, staging, .. } = self;
        database.connect()?.batch_execute(&format!(
            "{} {rule} \
             CREATE TABLE delivered (arrived bigint, id bigint, body text); \
             CREATE FUNCTION log_delivery() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                 INSERT INTO delivered VALUES (NEW.arrived, NEW.id, NEW.body); \
                 RETURN NULL; END $$; \
             CREATE TRIGGER log AFTER INSERT ON {staging} FOR EACH ROW \
                 EXECUTE FUNCTION log_delivery(); \
             CREATE VIEW now AS SELECT id::bigint, body, {archived} AS value FROM {table}; \
             CREATE VIEW archived AS SELECT id::bigint, body, {archived} AS value, {kept} AS kept, \
                 {measure} AS measure, superseded, version FROM archive; \
             CREATE VIEW everything AS SELECT id, body, 0 AS version, NULL AS kept FROM now \
                 UNION ALL SELECT id, body, version, kept FROM archived",
            self.statements()?
        ))?;
        Ok(database)
    }

    fn deliver(&self, client: &mut Client, versions: &[Version]) -> Outcome {
        let (names, values) = self.columns;
        let sql = format!(
            "INSERT INTO {} (id, body, {names}) SELECT $1::int, $2, {values} WHERE $5::int >= 0",
            self.staging
        );
        for version in versions {
            let (id, rank) = (version.id as i32, version.rank as i32);
            let (chain, step) = (version.chain as i64, version.step as i64);
            client.execute(&sql, &[&id, &version.body(), &chain, &step, &rank])?;
        }
        Ok(())
    }

    /// Returns the call that keeps old documents, or the best ones.
    fn call(&self, best: bool) -> String {
        let order = if best {
            format!("'{}'", self.best)
        } else {
            String::new()
        };
        format!("CALL {}({order});\n", self.take)
    }
}

/// Numbers of violations, each 0 after every call.
const INVARIANTS: [(&str, &str); 5] = [
    (
        "texts are lost",
        "SELECT count(*) FROM (SELECT id, body FROM delivered EXCEPT \
            SELECT id, body FROM everything) lost",
    ),
    (
        "pairs are near each other",
        "SELECT count(*) FROM now a JOIN now b ON a.id < b.id AND near(a.value, b.value)",
    ),
    (
        "archived texts are not near the document that they name",
        "SELECT count(*) FROM archived a WHERE superseded IS NULL AND NOT EXISTS (SELECT \
            FROM now k WHERE k.id = a.kept AND near(k.value, a.value) \
            AND a.measure = measure(k.value, a.value))",
    ),
    (
        "old versions name a document",
        "SELECT count(*) FROM archived WHERE superseded IS NOT NULL \
            AND (kept IS NOT NULL OR measure IS NOT NULL)",
    ),
    (
        "documents have two current texts",
        "SELECT count(*) FROM (SELECT id FROM now UNION ALL \
            SELECT id FROM archived WHERE superseded IS NULL) c GROUP BY id HAVING count(*) > 1 \
         UNION ALL SELECT 0 LIMIT 1",
    ),
];

/// Counts documents whose current text is not the last one delivered.
const NOT_THE_LAST: &str = "SELECT count(*) FROM (SELECT DISTINCT ON (id) id, body FROM delivered \
        ORDER BY id, arrived DESC) last \
    WHERE NOT EXISTS (SELECT FROM now WHERE (now.id, now.body) = (last.id, last.body)) \
      AND NOT EXISTS (SELECT FROM archived a WHERE a.superseded IS NULL \
          AND (a.id, a.body) = (last.id, last.body))";

fn holds(client: &mut Client, recipe: &Recipe, what: &str) -> Outcome {
    for (wrong, query) in INVARIANTS {
        let found: i64 = value(client, query)?;
        ensure!(found == 0, "{what}: {found} {wrong}");
    }
    let left: i64 = value(client, &format!("SELECT count(*) FROM {}", recipe.staging))?;
    ensure!(left == 0, "{what}: {left} rows are left");
    Ok(())
}

/// The table and the archive.
fn contents(client: &mut Client) -> Result<String> {
    value(
        client,
        "SELECT string_agg(e::text, ' ' ORDER BY id, version) FROM everything e",
    )
}

/// Random deliveries, each repeated once.
#[test]
fn no_text_is_lost() -> Outcome {
    let mut came_back = 0;
    for recipe in RECIPES {
        for (seed, rule) in (1..).zip(recipe.rules) {
            let database = recipe.database(rule)?;
            let mut client = database.connect()?;
            let mut random = Random::new(seed);
            for round in 0..12 {
                let what = format!("{}, {rule}, round {round}", recipe.take);
                let delivery: Vec<Version> = (0..5 + random.below(15))
                    .map(|_| Version::random(&mut random))
                    .collect();
                client.batch_execute(
                    "CREATE TEMP TABLE before AS SELECT id, body FROM archived \
                     WHERE superseded IS NULL",
                )?;
                recipe.deliver(&mut client, &delivery)?;
                let call = recipe.call(random.below(2) == 0);
                client.batch_execute(&call).with_context(|| what.clone())?;
                holds(&mut client, recipe, &what)?;
                ensure!(value::<i64>(&mut client, NOT_THE_LAST)? == 0, "{what}");
                came_back += value::<i64>(
                    &mut client,
                    "SELECT count(*) FROM now JOIN before USING (id, body)",
                )?;
                client.batch_execute("DROP TABLE before")?;
                // Repeats the delivery, and then delivers nothing.
                let before = contents(&mut client)?;
                for again in [&delivery[..], &[]] {
                    let mut last = again.to_vec();
                    last.reverse();
                    last.sort_by_key(|version| version.id);
                    last.dedup_by_key(|version| version.id);
                    recipe.deliver(&mut client, &last)?;
                    client.batch_execute(&recipe.call(random.below(2) == 0))?;
                    ensure!(contents(&mut client)? == before, "{what}, twice");
                }
            }
        }
    }
    ensure!(came_back > 20, "only {came_back} texts came back");
    Ok(())
}

/// Concurrent sessions deliver rows of the same documents and call the procedure.
#[test]
fn sessions_deliver_at_once() -> Outcome {
    for recipe in RECIPES {
        let database = recipe.database("")?;
        std::thread::scope(|scope| -> Outcome {
            let sessions: Vec<_> = (1..=4)
                .map(|seed| {
                    let mut client = database.connect()?;
                    Ok(scope.spawn(move || -> Outcome {
                        let mut random = Random::new(seed);
                        for _ in 0..8 {
                            let delivery: Vec<Version> =
                                (0..10).map(|_| Version::random(&mut random)).collect();
                            recipe.deliver(&mut client, &delivery)?;
                            client.batch_execute(&recipe.call(random.below(2) == 0))?;
                        }
                        Ok(())
                    }))
                })
                .collect::<Result<_>>()?;
            (sessions.into_iter()).try_for_each(|session| session.join().expect("no panic"))
        })?;
        holds(&mut database.connect()?, recipe, recipe.take)?;
    }
    Ok(())
}

/// Statements of another transaction while the procedure waits for it. They also remove the
/// deleted texts from the log of deliveries.
fn meanwhile(recipe: &Recipe) -> [String; 5] {
    let Recipe {
        table,
        staging,
        columns: (names, values),
        ..
    } = recipe;
    let values = values
        .replace("$3", "1")
        .replace("$4", "2")
        .replace("$5", "3");
    let deleted = |from: &str| {
        format!(
            "WITH gone AS (DELETE FROM {from} WHERE id % 2 = 0 RETURNING id, body) \
             DELETE FROM delivered d USING gone g WHERE (d.id, d.body) = (g.id, g.body)"
        )
    };
    let value = recipe.archived[0];
    [
        format!("LOCK TABLE {table} IN ROW EXCLUSIVE MODE"),
        deleted(table),
        deleted("archive"),
        // The originals of archived documents become different documents.
        format!("UPDATE {table} SET {value} = value_of(1000 + id, 0) WHERE id % 2 = 0"),
        // The procedure processes a late row of the delivery with the others.
        format!("INSERT INTO {staging} (id, body, {names}) SELECT 77, 'late', {values}"),
    ]
}

#[test]
fn deliveries_beside_other_transactions() -> Outcome {
    for recipe in RECIPES {
        for other in meanwhile(recipe) {
            let database = recipe.database("")?;
            let (mut client, mut watcher) = (database.connect()?, database.connect()?);
            let mut random = Random::new(7);
            for round in 0..4 {
                let what = format!("{}, round {round} beside {other}", recipe.take);
                let delivery: Vec<Version> =
                    (0..20).map(|_| Version::random(&mut random)).collect();
                recipe.deliver(&mut client, &delivery)?;
                client.batch_execute(&format!("BEGIN; {other}"))?;
                let call = begin(&database, &recipe.call(round % 2 == 0))?;
                until_it_waits(&mut watcher, &call)?;
                client.batch_execute("COMMIT")?;
                call.join().expect("no panic").context(what.clone())?;
                holds(&mut client, recipe, &what)?;
                // Changes after the call, which only the second procedure processes.
                client.batch_execute(&format!("BEGIN; {other}; COMMIT"))?;
                if other.contains(recipe.staging) {
                    client.batch_execute(&recipe.call(true))?;
                }
                client.batch_execute(&format!("CALL recheck_archive('{}')", recipe.best))?;
                holds(&mut client, recipe, &format!("{what}, by hand"))?;
            }
        }
    }
    Ok(())
}

/// A snapshot older than the lock would not show the changes that the lock waited for.
#[test]
fn older_snapshots_are_refused() -> Outcome {
    for recipe in RECIPES {
        let database = recipe.database("")?;
        let mut client = database.connect()?;
        client.batch_execute("SET default_transaction_isolation = 'repeatable read'")?;
        let result = client.batch_execute(&recipe.call(true));
        ensure!(result.is_err(), "{}", recipe.take);
    }
    Ok(())
}

/// Two sessions move documents to the archive in batches, while another transaction deletes some
/// kept ones; later with other documents and another order.
#[test]
fn batches_go_to_the_archive() -> Outcome {
    let section = blocks("corpus.md", "Take them out, in batches")?.concat();
    let at = section.find("CREATE PROCEDURE").context("a procedure")?;
    let length = section[at..].find("END $$;").context("its end")? + "END $$;".len();
    let database = SIGNATURES.database(&section[at..at + length])?;
    let (mut client, mut watcher) = (database.connect()?, database.connect()?);
    for (round, order) in [(0, "text_length, id"), (2, "text_length DESC, id DESC")] {
        // Two neighbours of each chain, and then two documents near these.
        let versions: Vec<Version> = (0..72)
            .map(|i| Version {
                id: i,
                chain: i / 12 + 1,
                step: i % 12,
                rank: i * 5 % 7,
                text: 0,
            })
            .filter(|version| [round, round + 1].contains(&(version.step % 4)))
            .collect();
        SIGNATURES.deliver(&mut client, &versions)?;
        client.batch_execute(&format!(
            "INSERT INTO corpus SELECT id, body, sig, text_length FROM delivery; \
             DELETE FROM delivery; \
             CREATE TABLE dropped AS SELECT member AS id, representative AS kept \
                 FROM neardup_clusters_by_key(NULL::bigint, 'corpus', similarity => 0.8, \
                     keep => '{order}') WHERE member <> representative; \
             ALTER TABLE dropped ADD PRIMARY KEY (id)"
        ))?;
        client.batch_execute(
            "BEGIN; WITH gone AS (DELETE FROM corpus WHERE id IN \
                 (SELECT kept FROM dropped ORDER BY kept LIMIT 3) RETURNING id, body) \
             DELETE FROM delivered d USING gone g WHERE (d.id, d.body) = (g.id, g.body)",
        )?;
        let call = "CALL archive_dropped(4);\n";
        let sessions = [begin(&database, call)?, begin(&database, call)?];
        until_it_waits(&mut watcher, &sessions[0])?;
        client.batch_execute("COMMIT")?;
        for session in sessions {
            session.join().expect("no panic").context(order)?;
        }
        client.batch_execute(&format!(
            "CALL recheck_archive('{order}'); DROP TABLE dropped"
        ))?;
        let archived: i64 = value(&mut client, "SELECT count(*) FROM archive")?;
        ensure!(archived > 10, "{order}: {archived}");
        // Near documents stay in the corpus when their kept document was deleted.
        for (wrong, query) in INVARIANTS {
            let found: i64 = value(&mut client, query)?;
            ensure!(
                found == 0 || wrong.starts_with("pairs"),
                "{order}: {found} {wrong}"
            );
        }
    }
    Ok(())
}
