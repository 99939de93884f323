//! The procedure `deduplicate` of docs/corpus.md. With any number of sessions and
//! any concurrent transaction, each delivered text must be in the table or in the archive, and the
//! archive must name its near-duplicate.
use crate::dedup::recipes::{begin, blocks, until_it_waits};
use crate::support::Outcome;
use crate::support::data::Random;
use crate::support::table::value;
use anyhow::{Context, Result, ensure};
use neardup_tests::Database;
use postgres::Client;

/// Tables for which the procedure is called, and its arguments.
struct Recipe {
    /// The table, its index, and functions over its values. `value_of(chain, step)` makes a value
    /// near its neighbours in the chain, and near no other value; values of chain 0 have no
    /// neighbours. `near(a, b)` compares two values.
    setup: &'static str,
    /// Document, heading, and the end of the part of the section that makes tables and procedures.
    made_by: &'static [(&'static str, &'static str, &'static str)],
    table: &'static str,
    staging: &'static str,
    /// Column of the values.
    value: &'static str,
    /// Columns of a delivered row other than `id`, and their values: $2 is a text, $3 and $4 are
    /// the arguments of `value_of`, and $5 is a length.
    columns: (&'static str, &'static str),
    /// Returns the text $2 of a version.
    text: fn(Version) -> String,
    /// Index, and further arguments of the procedure. The first by `keep` is the best document.
    arguments: (&'static str, &'static str),
    /// Triggers and constraints against near-duplicates while the procedure runs.
    rules: &'static [&'static str],
}

const PROCEDURE: &str = "Keep one copy, archive the others";

/// Texts: windows of 100 words that move by 10 words from step to step.
const TEXTS: Recipe = Recipe {
    setup: "CREATE TABLE corpus (id bigint PRIMARY KEY, body text, text_length bigint, \
            fp fingerprint GENERATED ALWAYS AS (minhash64(body)) STORED); \
        CREATE INDEX corpus_fp ON corpus USING neardup (minhash64(body)) WITH (radius = 10); \
        CREATE FUNCTION value_of(chain bigint, step bigint) RETURNS text LANGUAGE sql AS $$ \
            SELECT string_agg(format('w%sx%s', chain, p), ' ' ORDER BY p) \
            FROM generate_series(10 * step, 10 * step + 99) p WHERE chain > 0 $$; \
        CREATE FUNCTION near(a text, b text) RETURNS boolean LANGUAGE sql AS \
            'SELECT (minhash64(a) <~> minhash64(b)) + 0 <= 10 \
                AND jaccard_similarity(a, b) >= 0.8';",
    made_by: &[
        ("corpus.md", PROCEDURE, "WHERE superseded IS NULL;"),
        ("corpus.md", "The next delivery", "AS IDENTITY);"),
    ],
    table: "corpus",
    staging: "delivery",
    value: "body",
    columns: (
        "body, text_length",
        "$2 || coalesce(value_of($3, $4), '') || E'\n \n', $5::int",
    ),
    // Without words, so that all versions of a step are near each other.
    text: |version| {
        let repeated = |mark: &str, times: u64| mark.repeat(times as usize);
        let Version {
            step, text, rank, ..
        } = version;
        let marks = repeated(";", step) + &repeated("!", text) + &repeated(".", rank);
        format!("    \r\n\t{marks} ")
    },
    arguments: ("corpus_fp", "keep => 'text_length'"),
    rules: &[
        "",
        "CREATE INDEX ON corpus USING neardup (fp) WITH (radius = 10); \
        CREATE TRIGGER dedup BEFORE INSERT OR UPDATE OF body ON corpus FOR EACH ROW \
            EXECUTE FUNCTION neardup_dedup('fp', 'radius=10', 'confirm=body', 'action=skip');",
    ],
};

const FINGERPRINTS: Recipe = Recipe {
    setup: "CREATE TABLE docs (id int PRIMARY KEY, body text, fp fingerprint); \
        CREATE INDEX docs_fp ON docs USING neardup (fp); \
        CREATE FUNCTION value_of(chain bigint, step bigint) RETURNS fingerprint \
            LANGUAGE sql AS $$ SELECT CASE WHEN chain > 0 THEN \
            (('x' || left(md5(chain::text), 16))::bit(64)::bigint \
                # ((1::bigint << (5 * step::int)) - 1))::fingerprint END $$; \
        CREATE FUNCTION near(a fingerprint, b fingerprint) RETURNS boolean \
            LANGUAGE sql AS 'SELECT (a <~> b) + 0 <= 6';",
    made_by: &[
        ("corpus.md", PROCEDURE, "END $$;"),
        (
            "dedup.md",
            "Move them to an archive",
            "WHERE superseded IS NULL;",
        ),
        (
            "dedup.md",
            "New documents against old ones",
            "AS IDENTITY);",
        ),
    ],
    table: "docs",
    staging: "staging",
    value: "fp",
    columns: ("body, fp", "$2, value_of($3, $4)"),
    // With white space at both ends, which must not change.
    text: |version| {
        let Version {
            chain,
            step,
            rank,
            text,
            ..
        } = version;
        let end = ".".repeat(rank as usize);
        format!("    {chain}/{step}/{text}:\r\n\t{end}\n \n")
    },
    arguments: (
        "docs_fp",
        "radius => 6, confirm => NULL, keep => 'length(body) DESC'",
    ),
    rules: &[
        "",
        "ALTER TABLE docs ADD EXCLUDE USING neardup (ball(fp, 6) WITH ~=);",
        "CREATE TRIGGER dedup BEFORE INSERT OR UPDATE OF fp ON docs FOR EACH ROW \
            EXECUTE FUNCTION neardup_dedup('fp', 'radius=6', 'action=skip');",
    ],
};

const RECIPES: [&Recipe; 2] = [&TEXTS, &FINGERPRINTS];

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
        let Self {
            table,
            staging,
            value,
            ..
        } = self;
        database.connect()?.batch_execute(&format!(
            "{} {rule} \
             CREATE TABLE delivered (arrived bigint, id bigint, body text); \
             CREATE FUNCTION log_delivery() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                 INSERT INTO delivered VALUES (NEW.arrived, NEW.id, NEW.body); \
                 RETURN NULL; END $$; \
             CREATE TRIGGER log AFTER INSERT ON {staging} FOR EACH ROW \
                 EXECUTE FUNCTION log_delivery(); \
             CREATE VIEW now AS SELECT id::bigint, body, {value} AS value FROM {table}; \
             CREATE VIEW archived AS SELECT id::bigint, body, {value} AS value, kept, superseded, \
                 archive_id FROM archive; \
             CREATE VIEW everything AS SELECT id, body, 0 AS archive_id, NULL AS kept FROM now \
                 UNION ALL SELECT id, body, archive_id, kept FROM archived",
            self.statements()?
        ))?;
        Ok(database)
    }

    fn deliver(&self, client: &mut Client, versions: &[Version]) -> Outcome {
        let (names, values) = self.columns;
        let sql = format!(
            "INSERT INTO {} (id, {names}) SELECT $1::int, {values} WHERE $5::int >= 0",
            self.staging
        );
        for version in versions {
            let (id, rank) = (version.id as i32, version.rank as i32);
            let (chain, step) = (version.chain as i64, version.step as i64);
            client.execute(&sql, &[&id, &(self.text)(*version), &chain, &step, &rank])?;
        }
        Ok(())
    }

    /// Returns the call that takes a delivery. It keeps old documents, or the best ones.
    fn call(&self, best: bool) -> String {
        let ((index, arguments), staging) = (self.arguments, self.staging);
        format!(
            "CALL deduplicate('{index}', 'archive', '{staging}', existing_first => {}, \
                {arguments});\n",
            !best
        )
    }

    /// Returns the call that compares the documents of the table.
    fn call_without_delivery(&self) -> String {
        let (index, arguments) = self.arguments;
        format!("CALL deduplicate('{index}', 'archive', {arguments});\n")
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
            FROM now k WHERE k.id = a.kept AND near(k.value, a.value))",
    ),
    (
        "old versions name a document",
        "SELECT count(*) FROM archived WHERE superseded IS NOT NULL \
            AND kept IS NOT NULL",
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
        "SELECT string_agg(e::text, ' ' ORDER BY id, archive_id) FROM everything e",
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
                let what = format!("{}, {rule}, round {round}", recipe.table);
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
        holds(&mut database.connect()?, recipe, recipe.table)?;
    }
    Ok(())
}

/// Statements of another transaction while the procedure waits for it. They also remove the
/// deleted and changed texts from the log of deliveries.
fn meanwhile(recipe: &Recipe) -> [String; 5] {
    let Recipe {
        table,
        staging,
        value,
        columns: (names, values),
        ..
    } = recipe;
    let values = [("$2", "'late'"), ("$3", "1"), ("$4", "2"), ("$5", "3")]
        .iter()
        .fold(values.to_string(), |values, (parameter, value)| {
            values.replace(parameter, value)
        });
    let forget = |from: &str| {
        format!(
            "DELETE FROM delivered d USING {from} g WHERE g.id % 2 = 0 \
                AND (d.id, d.body) = (g.id, g.body)"
        )
    };
    let deleted = |from: &str| format!("{}; DELETE FROM {from} WHERE id % 2 = 0", forget(from));
    // The originals of archived documents become different documents.
    let changed = format!("UPDATE {table} SET {value} = value_of(1000 + id, 0) WHERE id % 2 = 0");
    let forgotten = match *value {
        "body" => forget(table) + ";",
        _ => String::new(),
    };
    [
        format!("LOCK TABLE {table} IN ROW EXCLUSIVE MODE"),
        deleted(table),
        deleted("archive"),
        forgotten + &changed,
        // The procedure processes a late row of the delivery with the others.
        format!("INSERT INTO {staging} (id, {names}) SELECT 77, {values}"),
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
                let what = format!("{}, round {round} beside {other}", recipe.table);
                let delivery: Vec<Version> =
                    (0..20).map(|_| Version::random(&mut random)).collect();
                recipe.deliver(&mut client, &delivery)?;
                client.batch_execute(&format!("BEGIN; {other}"))?;
                let call = begin(&database, &recipe.call(round % 2 == 0))?;
                until_it_waits(&mut watcher, &call)?;
                client.batch_execute("COMMIT")?;
                call.join().expect("no panic").context(what.clone())?;
                holds(&mut client, recipe, &what)?;
                // Changes after the call, which the next call processes.
                client.batch_execute(&format!("BEGIN; {other}; COMMIT"))?;
                if other.contains(recipe.staging) {
                    client.batch_execute(&recipe.call(true))?;
                }
                client.batch_execute(&recipe.call_without_delivery())?;
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
        ensure!(result.is_err(), "{}", recipe.table);
    }
    Ok(())
}

/// A kept document moves to another scope, and a delivery changes another column than the text.
#[test]
fn documents_change_their_scope_and_other_columns() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let procedure = &blocks("corpus.md", PROCEDURE)?[0];
    client.batch_execute(&format!(
        "{procedure}
         CREATE TABLE corpus (id int PRIMARY KEY, lang text, source text, body text,
             size int GENERATED ALWAYS AS (length(body)) STORED);
         CREATE INDEX corpus_fp ON corpus USING neardup (lang, minhash64(body)) WITH (radius = 10);
         CREATE TABLE archive (LIKE corpus, kept int, kept_md5 text, similarity float8,
             superseded timestamptz, archive_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
         CREATE TABLE delivery (LIKE corpus INCLUDING DEFAULTS INCLUDING GENERATED,
             arrived bigint GENERATED ALWAYS AS IDENTITY);
         INSERT INTO delivery (id, lang, source, body) VALUES
             (1, 'en', 'a', 'The library reopens.'), (2, 'en', 'b', 'The library  reopens!'),
             (3, 'de', 'c', 'The library reopens.'), (4, NULL, 'd', 'The library reopens.'),
             (5, 'en', 'e', '...'), (6, 'en', 'f', '...');"
    ))?;
    let mut call = |changes: &str, delivery: &str| -> Result<String> {
        client.batch_execute(&format!(
            "{changes}; CALL deduplicate('corpus_fp', 'archive', {delivery}, keep => 'size')"
        ))?;
        value(
            &mut client,
            "SELECT string_agg(concat_ws('', id, source, '>' || kept, '-' || superseded::bool),
                 ' ' ORDER BY id, source)
             FROM (SELECT id, source, NULL AS kept, NULL AS superseded FROM corpus UNION ALL
                 SELECT id, source, kept, (superseded IS NOT NULL)::int FROM archive) AS documents",
        )
    };
    let delivered = call("SELECT", "'delivery'")?;
    ensure!(delivered == "1a 2b>1-false 3c 4d 5e 6f", "{delivered}");
    let moved = call("UPDATE corpus SET lang = 'de' WHERE id = 1", "NULL")?;
    ensure!(moved == "1a 2b 3c>1-false 4d 5e 6f", "{moved}");
    let renamed = call(
        "INSERT INTO delivery (id, lang, source, body) VALUES
             (2, 'en', 'x', 'The library  reopens!'), (2, 'en', 'b', 'The library  reopens!'),
             (2, 'en', 'y', 'The library  reopens!')",
        "'delivery'",
    )?;
    ensure!(
        renamed == "1a 2b-true 2x-true 2y 3c>1-false 4d 5e 6f",
        "{renamed}"
    );
    Ok(())
}

/// The archive's fingerprints are missing, as after a change of the function or the column.
#[test]
fn archived_texts_are_compared_by_new_fingerprints() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let procedure = &blocks("corpus.md", PROCEDURE)?[0];
    client.batch_execute(&format!(
        "{procedure}
         CREATE TABLE corpus (id int PRIMARY KEY, body text,
             fp fingerprint GENERATED ALWAYS AS (minhash64(body)) STORED);
         CREATE INDEX corpus_fp ON corpus USING neardup (fp) WITH (radius = 10);
         CREATE TABLE archive (LIKE corpus, kept int, kept_md5 text, similarity float8,
             superseded timestamptz, archive_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
         INSERT INTO corpus SELECT id, string_agg('word' || n, ' ') || ' and the last ' || id
             FROM generate_series(1, 3) AS id, generate_series(1, 100) AS n GROUP BY id;
         CALL deduplicate('corpus_fp', 'archive');"
    ))?;
    let mut ids = |changes: &str| -> Result<String> {
        client.batch_execute(changes)?;
        value(
            &mut client,
            "SELECT concat((SELECT string_agg(id::text, ' ' ORDER BY id) FROM corpus), ' kept, ',
                 (SELECT string_agg(id || ' near ' || kept, ', ' ORDER BY id) FROM archive))",
        )
    };
    let first = ids("SELECT")?;
    ensure!(first == "1 kept, 2 near 1, 3 near 1", "{first}");
    let second = ids(
        "UPDATE archive SET fp = NULL; DELETE FROM corpus WHERE id = 1; \
         CALL deduplicate('corpus_fp', 'archive')",
    )?;
    ensure!(second == "2 kept, 3 near 2", "{second}");
    Ok(())
}
