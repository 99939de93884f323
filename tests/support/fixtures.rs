//! Tables of the workload, and conditions that always hold for them.
use super::data::{RADII, Random};
use super::oracle::compare;
use super::table::value;
use anyhow::{Context, Result, ensure};
use postgres::{Client, GenericClient, IsolationLevel, Transaction};
use std::slice;

/// SQL functions that make the values of a row from its number. Some rows form clusters, some have
/// no near-duplicates, and some values are NULL.
const FUNCTIONS: &str = "CREATE SEQUENCE ids; \
    CREATE FUNCTION cluster(n bigint) RETURNS bigint IMMUTABLE \
        RETURN CASE n % 3 WHEN 0 THEN n ELSE n % 25 END; \
    CREATE FUNCTION fp_of(n bigint) RETURNS fingerprint IMMUTABLE RETURN CASE WHEN n % 20 > 0 \
        THEN (hashint8extended(cluster(n), 5) # (1::bigint << (n % 64)::int))::fingerprint END; \
    CREATE FUNCTION word(n bigint, seed bigint) RETURNS text IMMUTABLE \
        RETURN lpad(to_hex(hashint8extended(n, seed)), 16, '0'); \
    CREATE FUNCTION wide_of(n bigint) RETURNS fingerprint256 IMMUTABLE RETURN CASE WHEN n % 20 > 0 \
        THEN (word(cluster(n), 1) || word(cluster(n), 2) || word(n % 70, 3) || word(cluster(n), \
        4)) \
            ::fingerprint256 END; \
    CREATE FUNCTION signature_of(n bigint) RETURNS minhash_signature IMMUTABLE RETURN CASE WHEN n \
    % 20 > 0 \
        THEN minhash(ARRAY(SELECT cluster(n) || ':' || word FROM generate_series(n % 30, n % 30 + \
        40) AS word), 32) END; \
    CREATE FUNCTION apart_of(n bigint) RETURNS fingerprint IMMUTABLE \
        RETURN (hashint8extended(n % 1500, 9) # (1::bigint << (n % 64)::int))::fingerprint; \
    CREATE FUNCTION copy_of(n bigint) RETURNS fingerprint IMMUTABLE \
        RETURN CASE WHEN n % 20 > 0 THEN apart_of(n) END; \
    CREATE FUNCTION crowd_of(n bigint) RETURNS fingerprint IMMUTABLE \
        RETURN (hashint8extended(n % 4, 9) # (1::bigint << (n % 64)::int))::fingerprint; \
    CREATE FUNCTION count_copy() RETURNS trigger LANGUAGE plpgsql AS $$ \
        DECLARE counted bigint; BEGIN \
            EXECUTE format('UPDATE %I SET copies = copies + 1 WHERE id = $1', TG_TABLE_NAME) \
                USING NEW.original; \
            GET DIAGNOSTICS counted = ROW_COUNT; \
            IF counted <> 1 THEN \
                RAISE 'mark % of row % names no row', NEW.original, NEW.id; END IF; \
            EXECUTE format('INSERT INTO %I VALUES ($1)', TG_TABLE_NAME || '_log') \
                USING NEW.original; \
            RETURN NULL; END $$;";

/// A table with an index, and the expressions for its rows. The index is named after the table.
#[derive(Debug, PartialEq, Eq)]
pub struct Fixture {
    pub table: &'static str,
    create: &'static str,
    /// SQL expressions for the columns of a new row, from its `id`.
    row: &'static str,
    /// Name of the SQL function that makes a fingerprint or signature from a number.
    of: &'static str,
    /// Columns of the index.
    pub columns: &'static str,
    /// True if a constraint refuses near-duplicates.
    pub keeps_apart: bool,
    /// Radius within which no two rows are allowed, if any.
    apart: Option<u32>,
    /// Radius within which copies are marked with the key of an original, if any.
    marks: Option<u32>,
    /// True if a trigger counts the copies of an original.
    counts: bool,
    /// True if a crash removes the rows.
    unlogged: bool,
    /// True if rows have signatures instead of fingerprints.
    signatures: bool,
    /// Options of a second index.
    pub other_options: &'static str,
}

/// Fingerprints of 64 bits.
pub const DOCS: Fixture = Fixture {
    table: "docs",
    create: "CREATE TABLE docs (id bigint, fp fingerprint); \
             CREATE INDEX docs_fp ON docs USING neardup (fp)",
    row: "id, fp_of(id)",
    of: "fp_of",
    columns: "(fp)",
    keeps_apart: false,
    apart: None,
    marks: None,
    counts: false,
    unlogged: false,
    signatures: false,
    other_options: "radius = 2, blocks = 5",
};
/// Fingerprints of 256 bits.
pub const WIDE: Fixture = Fixture {
    table: "wide",
    create: "CREATE TABLE wide (id bigint, fp fingerprint256); \
             CREATE INDEX wide_fp ON wide USING neardup (fp)",
    row: "id, wide_of(id)",
    of: "wide_of",
    ..DOCS
};
/// Table with MinHash signatures.
pub const SIGNED: Fixture = Fixture {
    table: "signed",
    create: "CREATE TABLE signed (id bigint, fp minhash_signature); \
             CREATE INDEX signed_fp ON signed USING neardup (fp) WITH (hashes = 32)",
    row: "id, signature_of(id)",
    of: "signature_of",
    signatures: true,
    other_options: "hashes = 32, similarity = 0.9",
    ..DOCS
};
/// Index with a scope column.
pub const SCOPED: Fixture = Fixture {
    table: "scoped",
    create: "CREATE TABLE scoped (id bigint, fp fingerprint, site text); \
             CREATE INDEX scoped_fp ON scoped USING neardup (site, fp)",
    row: "id, fp_of(id), 'site ' || nullif(id % 8, 7)",
    columns: "(site, fp)",
    ..DOCS
};
/// Table with an exclusion constraint against near-duplicates.
pub const APART: Fixture = Fixture {
    table: "apart",
    create: "CREATE TABLE apart (id bigint, fp fingerprint, \
             CONSTRAINT apart_fp EXCLUDE USING neardup (fp WITH ~=))",
    row: "id, apart_of(id)",
    of: "apart_of",
    keeps_apart: true,
    apart: Some(6),
    ..DOCS
};
/// Table with a trigger that rejects near-duplicates, and two causes for writers to wait for each
/// other: a foreign key, and a trigger that counts rows.
pub const GUARDED: Fixture = Fixture {
    table: "guarded",
    create: "CREATE TABLE guarded_sites (id bigint PRIMARY KEY, rows bigint DEFAULT 0); \
             INSERT INTO guarded_sites SELECT n FROM generate_series(0, 7) AS n; \
             CREATE TABLE guarded (id bigint, fp fingerprint, \
                 site bigint REFERENCES guarded_sites); \
             CREATE INDEX guarded_fp ON guarded USING neardup (fp); \
             CREATE TRIGGER dedup BEFORE INSERT OR UPDATE ON guarded \
                 FOR EACH ROW EXECUTE FUNCTION neardup_dedup('fp', 'radius=10'); \
             CREATE FUNCTION count_guarded() RETURNS trigger LANGUAGE plpgsql AS \
                 $$ BEGIN UPDATE guarded_sites SET rows = rows + 1 WHERE id = NEW.site; \
                 RETURN NULL; END $$; \
             CREATE TRIGGER count AFTER INSERT ON guarded \
                 FOR EACH ROW WHEN (NEW.id % 100 = 0) EXECUTE FUNCTION count_guarded();",
    row: "id, apart_of(id), id % 8",
    of: "apart_of",
    apart: Some(10),
    ..DOCS
};
/// Table with triggers that mark near-duplicates with the key of an original, and that renew the
/// marks when the original is deleted.
pub const MARKED: Fixture = Fixture {
    table: "marked",
    create: "CREATE TABLE marked (id bigint PRIMARY KEY, fp fingerprint, original bigint); \
             CREATE INDEX marked_fp ON marked USING neardup (fp); \
             CREATE INDEX marked_original ON marked (original); \
             CREATE TRIGGER mark BEFORE INSERT OR UPDATE ON marked FOR EACH ROW \
                 EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=original', 'radius=3'); \
             CREATE TRIGGER renew AFTER UPDATE OR DELETE ON marked FOR EACH ROW \
                 EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=original', 'radius=3');",
    row: "id, copy_of(id)",
    of: "copy_of",
    marks: Some(3),
    ..DOCS
};
/// Table with marks as in [`MARKED`], and with a trigger that counts copies in the row of their
/// original. The table `counted_log` has a row for each count.
pub const COUNTED: Fixture = Fixture {
    table: "counted",
    create: "CREATE TABLE counted (id bigint PRIMARY KEY, fp fingerprint, original bigint, \
                 copies bigint NOT NULL DEFAULT 0); \
             CREATE TABLE counted_log (original bigint); \
             CREATE INDEX counted_fp ON counted USING neardup (fp); \
             CREATE INDEX counted_original ON counted (original); \
             CREATE TRIGGER mark BEFORE INSERT OR UPDATE ON counted FOR EACH ROW \
                 EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=original', 'radius=3'); \
             CREATE TRIGGER renew AFTER UPDATE OR DELETE ON counted FOR EACH ROW \
                 EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=original', 'radius=3'); \
             CREATE TRIGGER count AFTER INSERT ON counted FOR EACH ROW \
                 WHEN (NEW.original IS NOT NULL) EXECUTE FUNCTION count_copy();",
    row: "id, copy_of(id)",
    of: "copy_of",
    marks: Some(3),
    counts: true,
    ..DOCS
};
/// Table like [`COUNTED`] with many copies of few originals. Its writers insert single rows.
pub const CROWDED: Fixture = Fixture {
    table: "crowded",
    create: "CREATE TABLE crowded (id bigint PRIMARY KEY, fp fingerprint, original bigint, \
                 copies bigint NOT NULL DEFAULT 0); \
             CREATE TABLE crowded_log (original bigint); \
             CREATE INDEX crowded_fp ON crowded USING neardup (fp); \
             CREATE INDEX crowded_original ON crowded (original); \
             CREATE TRIGGER mark BEFORE INSERT OR UPDATE ON crowded FOR EACH ROW \
                 EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=original', 'radius=3'); \
             CREATE TRIGGER renew AFTER UPDATE OR DELETE ON crowded FOR EACH ROW \
                 EXECUTE FUNCTION neardup_dedup('fp', 'action=mark', 'mark=original', 'radius=3'); \
             CREATE TRIGGER count AFTER INSERT ON crowded FOR EACH ROW \
                 WHEN (NEW.original IS NOT NULL) EXECUTE FUNCTION count_copy();",
    row: "id, crowd_of(id)",
    of: "crowd_of",
    ..COUNTED
};
/// Unlogged table, which is empty after a crash.
pub const FLEETING: Fixture = Fixture {
    table: "fleeting",
    create: "CREATE UNLOGGED TABLE fleeting (id bigint, fp fingerprint); \
             CREATE INDEX fleeting_fp ON fleeting USING neardup (fp)",
    unlogged: true,
    ..DOCS
};

/// All fixtures but [`CROWDED`].
pub const FIXTURES: [&Fixture; 9] = [
    &DOCS, &WIDE, &SIGNED, &SCOPED, &APART, &GUARDED, &MARKED, &COUNTED, &FLEETING,
];
/// Fixtures for the test of a standby, which has only logged tables.
pub const LOGGED: [&Fixture; 5] = [&DOCS, &WIDE, &SIGNED, &SCOPED, &APART];

/// Makes the tables, each with `rows` rows.
pub fn prepare(client: &mut Client, fixtures: &[&Fixture], rows: u64) -> Result<()> {
    client.batch_execute(FUNCTIONS)?;
    for fixture in fixtures {
        client.batch_execute(fixture.create)?;
        client.batch_execute(&fixture.insert(rows))?;
    }
    Ok(())
}

impl Fixture {
    /// Returns a statement that inserts `rows` new rows, or fewer if near-duplicates are refused.
    pub fn insert(&self, rows: u64) -> String {
        let Fixture { table, row, .. } = self;
        let conflict = if self.keeps_apart {
            "ON CONFLICT DO NOTHING"
        } else {
            ""
        };
        format!(
            "INSERT INTO {table} SELECT {row} FROM \
             (SELECT nextval('ids') AS id FROM generate_series(1, {rows})) AS new {conflict}"
        )
    }

    /// Returns an SQL expression for the fingerprint or signature that belongs to a row number.
    pub fn of(&self, number: &str) -> String {
        format!("{}({number})", self.of)
    }

    /// Returns the index condition that a row is within a radius of a value.
    pub fn in_ball(&self, value: &str, radius: i32) -> String {
        match self.signatures {
            true => format!("fp <@ minhash_ball({value}, {})", share(radius)),
            false => format!("fp <@ ball({value}, {radius})"),
        }
    }

    /// Deletes all rows except `rows` rows, which are chosen at random.
    pub fn trim(&self, client: &mut Client, rows: u64) -> Result<()> {
        let table = self.table;
        client.batch_execute(&format!(
            "DELETE FROM {table} WHERE id NOT IN \
             (SELECT id FROM {table} ORDER BY hashint8(id) LIMIT {rows})"
        ))?;
        if self.counts {
            client.batch_execute(&format!(
                "DELETE FROM {table}_log WHERE original NOT IN (SELECT id FROM {table})"
            ))?;
        }
        Ok(())
    }

    /// Returns a query that counts the pairs within a radius that satisfy a condition.
    fn pairs(&self, radius: u32, condition: &str) -> String {
        let table = self.table;
        format!(
            "SELECT count(*) FROM {table} AS a JOIN {table} AS b \
             ON a.fp <#> b.fp <= {radius} AND a.id < b.id {condition}"
        )
    }

    /// Asserts that the query `count` returns 0. `of` says what it counts.
    fn has_none(&self, of: &str, client: &mut Client, count: &str) -> Result<()> {
        let count: i64 = value(client, count)?;
        ensure!(count == 0, "{count} {of} in {self:?}");
        Ok(())
    }

    /// Asserts that the index with this name, or any index with this prefix, returns the same rows
    /// as the table within a radius of some value. Returns the number of rows.
    fn answers(
        &self,
        client: &mut impl GenericClient,
        index: &str,
        radius: i32,
        random: &mut Random,
        strict: bool,
    ) -> Result<usize> {
        // The values of these numbers are not NULL.
        let number = random.below(250) * 20 + 1 + random.below(19);
        let value = self.of(&number.to_string());
        let within = match self.signatures {
            true => format!("fp <%> {value} <= {}", share(radius)),
            false => format!("fp <~> {value} <= {radius}"),
        };
        let ball = self.in_ball(&value, radius);
        let mut found = compare(
            client,
            self.table,
            index,
            &within,
            slice::from_ref(&ball),
            strict,
        )?;
        if self.columns.starts_with("(site") {
            let site = format!("site = 'site {}'", random.below(7));
            let filter = format!("{site} AND {within}");
            let condition = format!("{site} AND {ball}");
            found += compare(client, self.table, index, &filter, &[condition], strict)?;
        }
        Ok(found)
    }
}

/// Converts a radius of fingerprints, in bits, to a distance of signatures within which there are
/// many rows, too.
fn share(radius: i32) -> f64 {
    f64::from(radius) / 64.0
}

/// Asserts that the indexes of a fixture return the same rows as the sequential scan, in one
/// snapshot. Unless `strict`, the plan may use no index, because a rebuilt index may be too young
/// for the snapshot.
pub fn search(client: &mut Client, fixture: &Fixture, seed: u64, strict: bool) -> Result<()> {
    let mut transaction = client
        .build_transaction()
        .isolation_level(IsolationLevel::RepeatableRead)
        .read_only(true)
        .start()?;
    let mut random = Random::new(seed);
    for radius in [random.pick(&RADII), 3] {
        let any = format!("{}_", fixture.table);
        fixture.answers(&mut transaction, &any, radius, &mut random, strict)?;
    }
    transaction.commit()?;
    Ok(())
}

/// Asserts that every index of these fixtures is sound and answers correctly despite dead entries,
/// and that near-duplicates are kept apart where they should be. Returns the number of indexes.
pub fn hold(client: &mut Client, fixtures: &[&Fixture], seed: u64) -> Result<usize> {
    let mut indexes = 0;
    for fixture in fixtures {
        let names = format!(
            "SELECT coalesce(array_agg(indexrelid::regclass::text), '{{}}') FROM ({}) AS valid",
            valid_indexes(fixture.table)
        );
        let names: Vec<String> = value(client, &names)?;
        let main = format!("{}_fp", fixture.table);
        ensure!(names.contains(&main), "{main} is not there or not valid");
        for index in &names {
            let mut transaction = client.transaction()?;
            holds(&mut transaction, fixture, index, seed).with_context(|| index.clone())?;
            transaction.rollback()?;
        }
        indexes += names.len();
        if let Some(radius) = fixture.apart {
            fixture.has_none(
                "pairs of near-duplicates",
                client,
                &fixture.pairs(radius, ""),
            )?;
        }
        if let Some(radius) = fixture.marks {
            marks_hold(client, fixture, radius)?;
        }
        if fixture.counts {
            counts_hold(client, fixture)?;
        }
    }
    Ok(indexes)
}

/// Asserts that each mark names a near original, and that no two originals are near each other.
fn marks_hold(client: &mut Client, fixture: &Fixture, radius: u32) -> Result<()> {
    let table = fixture.table;
    let untrue = format!(
        "SELECT count(*) FROM {table} AS a LEFT JOIN {table} AS b ON b.id = a.original \
         WHERE a.original IS NOT NULL AND (b.id <> a.id AND b.original IS NULL \
             AND a.fp <#> b.fp <= {radius}) IS NOT TRUE"
    );
    fixture.has_none("marks that are not true", client, &untrue)?;
    let originals = "AND a.original IS NULL AND b.original IS NULL";
    let pairs = fixture.pairs(radius, originals);
    fixture.has_none(
        "pairs of originals that are near each other",
        client,
        &pairs,
    )
}

/// Asserts that the column `copies` of each row is the number of inserted rows that were marked
/// with its key.
fn counts_hold(client: &mut Client, fixture: &Fixture) -> Result<()> {
    let table = fixture.table;
    let untrue = format!(
        "SELECT count(*) FROM {table} LEFT JOIN \
             (SELECT original AS id, count(*) AS logged FROM {table}_log GROUP BY original) AS log \
             USING (id) WHERE copies <> coalesce(logged, 0)"
    );
    fixture.has_none("counts that are not true", client, &untrue)
}

/// Returns a query for the valid neardup indexes of a table.
fn valid_indexes(table: &str) -> String {
    format!(
        "SELECT indexrelid FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid \
             JOIN pg_am ON pg_am.oid = relam \
         WHERE indrelid = '{table}'::regclass AND indisvalid AND amname = 'neardup'"
    )
}

/// Asserts that every index of these fixtures is sound.
pub fn check(client: &mut Client, fixtures: &[&Fixture]) -> Result<()> {
    for fixture in fixtures {
        let check = format!(
            "SELECT neardup_index_check(indexrelid, true) FROM ({}) AS valid",
            valid_indexes(fixture.table)
        );
        client.query(&check, &[]).with_context(|| fixture.table)?;
    }
    Ok(())
}

fn holds(client: &mut Transaction, fixture: &Fixture, index: &str, seed: u64) -> Result<()> {
    // Hides the other indexes from the planner until the transaction is rolled back. Does not hide
    // primary keys, because the server would continue to assume that the table has none.
    client.batch_execute(&format!(
        "UPDATE pg_index SET indisvalid = false WHERE indrelid = '{}'::regclass \
         AND indexrelid <> '{index}'::regclass AND NOT indisprimary",
        fixture.table
    ))?;
    let mut random = Random::new(seed);
    let mut found = 0;
    for radius in RADII {
        found += fixture.answers(client, index, radius, &mut random, true)?;
    }
    let rows: i64 = value(client, &format!("SELECT count(fp) FROM {}", fixture.table))?;
    ensure!(
        found > 0 || rows == 0,
        "the probes found nothing: no test at all"
    );
    client.query(&format!("SELECT neardup_index_check('{index}', true)"), &[])?;
    Ok(())
}

/// Returns the indexes that a crash left half built, each with the name of its table.
pub fn unfinished(client: &mut Client) -> Result<Vec<(String, String)>> {
    let rows = client.query(
        "SELECT indexrelid::regclass::text, indrelid::regclass::text \
         FROM pg_index WHERE NOT indisvalid",
        &[],
    )?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// Returns the valid indexes that still have the temporary name of a copy for REINDEX CONCURRENTLY.
pub fn spare(client: &mut Client) -> Result<Vec<String>> {
    value(
        client,
        "SELECT coalesce(array_agg(indexrelid::regclass::text), '{}') FROM pg_index \
         WHERE indisvalid AND indexrelid::regclass::text LIKE '%\\_cc%'",
    )
}

/// Asserts that a crash has emptied the unlogged tables, and fills them again.
pub fn refill(client: &mut Client, fixtures: &[&Fixture], rows: u64) -> Result<()> {
    for fixture in fixtures.iter().filter(|fixture| fixture.unlogged) {
        let left: i64 = value(client, &format!("SELECT count(*) FROM {}", fixture.table))?;
        ensure!(
            left == 0,
            "{left} rows of {} outlived a crash",
            fixture.table
        );
        client.batch_execute(&fixture.insert(rows))?;
    }
    Ok(())
}
