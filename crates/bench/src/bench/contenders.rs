//! Contenders of the benchmark: ways to index 64-bit values, and the SQL query by which each
//! searches.
use super::generated_rows::{self, restored};
use super::session::{Session, Time};
use anyhow::Result;

/// Way to index the 64-bit values of the benchmark's tables. The benchmark compares these ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    /// No index: the minimum cost of an insert.
    Bare,
    /// One neardup index with radius 3.
    Neardup,
    /// Four btree indexes, one on each 16-bit block of the value, in a query with four conditions
    /// joined by OR. This is the usual advice for a database without an extension.
    Blocks,
    /// One btree on the column, which finds equal values only.
    Plain,
    /// Four btree indexes on permuted values, searched by range. A permuted value has one of its
    /// four 16-bit blocks moved to the front, a different block in each index.
    Permuted,
}

/// Returns an SQL expression for block `block` (0 to 3) of the SQL expression `value`. Block 0 is
/// the highest 16 bits.
fn block(value: &str, block: u32) -> String {
    match 48 - 16 * block {
        0 => format!("({value} & 65535)"),
        shift => format!("(({value} >> {shift}) & 65535)"),
    }
}

/// Returns an SQL expression for the Hamming distance of two SQL expressions, by PostgreSQL's own
/// functions.
fn distance(a: &str, b: &str) -> String {
    format!("bit_count(({a} # {b})::bit(64))")
}

/// Settings that force a sequential scan of the table `docs` for each probe (value to search for).
/// Without these settings, the planner could use a hash join, a merge join or a materialized copy
/// instead.
const SEQUENTIAL: &str = "SET enable_indexscan = off; SET enable_indexonlyscan = off; \
    SET enable_bitmapscan = off; SET enable_material = off; SET enable_hashjoin = off; \
    SET enable_mergejoin = off";
/// Settings that force plans with btree indexes, so that the comparison does not depend on the
/// planner's estimates.
const BY_INDEX: &str = "SET enable_seqscan = off; SET enable_material = off; \
    SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_memoize = off";
/// Settings for neardup's queries: none, because the planner chooses neardup's index by itself.
const BY_NEARDUP: &str = "";

/// Returns the SQL condition of a search within `radius` bits by neardup's operator. In the
/// condition, `q` is the probe and `d` is a row of `docs`.
fn within(radius: u32) -> String {
    format!("d.fp <~> q.fp <= {radius}")
}

/// Probes, the values that a query searches for: the first `count` rows of a table.
#[derive(Clone, Copy, Debug)]
pub struct Probes {
    /// Table with the values, in the column `fp`.
    pub table: &'static str,
    /// Number of probes.
    pub count: u64,
}

impl Probes {
    /// Returns the first `count` probes that have planted neighbours in the table `docs`.
    pub fn planted(count: u64) -> Self {
        let table = generated_rows::PLANTED_PROBES;
        Self { table, count }
    }

    /// Returns the first `count` probes that have no neighbours in the table `docs`.
    pub fn absent(count: u64) -> Self {
        let table = generated_rows::ABSENT_PROBES;
        Self { table, count }
    }

    /// Returns a subquery `q` for a FROM clause, with the first `count` probes of the table.
    fn first(self) -> String {
        format!("(SELECT * FROM {} WHERE id < {}) q", self.table, self.count)
    }
}

/// Query that searches for the neighbours of some probes (values to search for).
#[derive(Clone, Debug)]
pub struct Query {
    /// Text of the query after the keyword FROM.
    from: String,
    /// SQL columns that the query returns for each row or value that it finds. The first column is
    /// the `id` of the probe. The last column is the `id` of the row, or the value if the query
    /// finds values. A query on permuted values has a column between the two: the number of the
    /// block at the front of the value.
    found: &'static str,
    /// Text that the plan of the query must contain.
    pub plan: &'static str,
    /// SET statements to run before the query.
    settings: &'static str,
}

impl Query {
    /// Returns a query that searches for the rows within `radius` bits of each probe, by neardup's
    /// index.
    pub fn neardup(probes: Probes, radius: u32) -> Self {
        Self {
            from: format!("{} JOIN docs d ON {}", probes.first(), within(radius)),
            found: "q.id, d.id",
            plan: "Index Scan using docs_neardup",
            settings: BY_NEARDUP,
        }
    }

    /// Returns a query that searches for the `limit` nearest rows to each probe, by neardup's
    /// index.
    pub fn nearest(probes: Probes, limit: u32) -> Self {
        let nearest = format!("SELECT d.id, d.fp FROM docs d ORDER BY d.fp <~> q.fp LIMIT {limit}");
        Self {
            from: format!("{} CROSS JOIN LATERAL ({nearest}) d", probes.first()),
            ..Self::neardup(probes, 0)
        }
    }

    /// Returns this query with settings and an expected plan for a sequential scan. The query still
    /// uses neardup's operator.
    pub fn sequentially(self) -> Self {
        Self {
            plan: "Seq Scan on docs",
            settings: SEQUENTIAL,
            ..self
        }
    }

    /// Returns a query that searches for the rows within `radius` bits of each probe, by a
    /// sequential scan with neardup's operator.
    pub fn sequential(probes: Probes, radius: u32) -> Self {
        Self::neardup(probes, radius).sequentially()
    }

    /// Returns a query that searches for the rows within `radius` bits of each probe, by a
    /// sequential scan with PostgreSQL's own functions only.
    pub fn bit_count(probes: Probes, radius: u32) -> Self {
        let distance = distance("d.fp", "q.fp");
        Self {
            from: format!("{} JOIN docs d ON {distance} <= {radius}", probes.first()),
            ..Self::sequential(probes, radius)
        }
    }

    /// Returns a query that searches for the rows within 3 bits of each probe, by four btree
    /// indexes on blocks. Two values within 3 bits agree in at least one of four blocks.
    pub fn blocks(probes: Probes) -> Self {
        let equal = [0, 1, 2, 3].map(|i| format!("{} = {}", block("d.fp", i), block("q.fp", i)));
        Self {
            from: format!(
                "{} JOIN docs d ON ({}) AND {} <= 3",
                probes.first(),
                equal.join(" OR "),
                distance("d.fp", "q.fp")
            ),
            found: "q.id, d.id",
            plan: "BitmapOr",
            settings: BY_INDEX,
        }
    }

    /// Returns a query that searches for the values within 3 bits of each probe. It scans a range
    /// in each of four btree indexes on permuted values: in each index, another 16-bit block of the
    /// value is at the front. The scans are index-only, so they return values, not rows. A value
    /// that several indexes find is returned several times.
    pub fn permuted(probes: Probes) -> Self {
        let low_bits = (1u64 << 48) - 1;
        let ranges = [0, 1, 2, 3].map(|i| {
            format!(
                "SELECT {i}::bigint AS block, p{i} AS value FROM permuted p \
                 WHERE p{i} BETWEEN q.p{i} & ~{low_bits} AND q.p{i} | {low_bits} AND {} <= 3",
                distance(&format!("p.p{i}"), &format!("q.p{i}"))
            )
        });
        let (probes, ranges) = (probes.first(), ranges.join(" UNION ALL "));
        Self {
            from: format!("{probes} CROSS JOIN LATERAL ({ranges}) d"),
            found: "q.id, d.block, d.value",
            plan: "Index Only Scan using permuted_0",
            settings: BY_INDEX,
        }
    }

    /// Returns a query that searches for the values equal to each probe, by one btree. It is the
    /// simplest search by an index, so its time shows what the executor costs for each probe at
    /// least.
    pub fn equality(probes: Probes) -> Self {
        Self {
            from: format!("{} JOIN docs d ON d.fp = q.fp", probes.first()),
            found: "q.id, d.fp",
            plan: "Index Only Scan using docs_plain",
            settings: BY_INDEX,
        }
    }

    /// Returns a statement that runs the query and returns only the number of its results. If the
    /// results are rows, the statement counts one of their columns, so that every contender must
    /// fetch the rows from the table.
    pub fn count(&self) -> String {
        let column = self.found.rsplit(", ").next().unwrap_or("*");
        format!("SELECT count({column}) FROM {}", self.from)
    }

    /// Summarizes the results of each probe as one number, so that two ways to search can be
    /// compared. The number is 1,000 for each row found, plus the sum of the distances of these
    /// rows. So it is equal for two searches for the nearest rows even if they choose different
    /// rows at the same distance. Returns pairs of a probe's `id` and the number. Probes that found
    /// nothing are missing.
    pub fn sums(&self, session: &mut Session) -> Result<Vec<(i64, i64)>> {
        self.set(session)?;
        let sum = "sum(1000 + (d.fp <~> q.fp))::bigint";
        session.pairs(&format!(
            "SELECT q.id, {sum} FROM {} GROUP BY q.id",
            self.from
        ))
    }

    /// Resets all settings of the session and applies the settings of the query.
    pub fn set(&self, session: &mut Session) -> Result<()> {
        session.run(&format!("RESET ALL; {}", self.settings))
    }

    /// Runs the query. Returns pairs of a probe's `id` and the `id` of a row that was found. Fails
    /// for queries that find values instead of rows.
    pub fn rows(&self, session: &mut Session) -> Result<Vec<(i64, i64)>> {
        self.set(session)?;
        session.pairs(&format!("SELECT {} FROM {}", self.found, self.from))
    }

    /// Runs the query. Returns pairs of a probe's `id` and a value that was found, sorted and
    /// without duplicates. Restores permuted values.
    pub fn values(&self, session: &mut Session) -> Result<Vec<(i64, i64)>> {
        self.set(session)?;
        let from = &self.from;
        if !self.found.contains("block") {
            return session.pairs(&format!("SELECT q.id, d.fp FROM {from}"));
        }
        let rows = (session.client).query(&format!("SELECT {} FROM {from}", self.found), &[])?;
        let mut pairs: Vec<(i64, i64)> = (rows.iter())
            .map(|row| {
                (
                    row.get(0),
                    restored(row.get(2), row.get::<_, i64>(1) as u32),
                )
            })
            .collect();
        pairs.sort_unstable();
        pairs.dedup();
        Ok(pairs)
    }
}

impl Contender {
    /// All contenders, in the order of measurement.
    pub const ALL: [Contender; 5] = [
        Contender::Bare,
        Contender::Neardup,
        Contender::Blocks,
        Contender::Plain,
        Contender::Permuted,
    ];

    /// Returns the name of the contender in progress messages.
    pub fn label(self) -> &'static str {
        match self {
            Contender::Bare => "no index",
            Contender::Neardup => "neardup",
            Contender::Blocks => "4 btree indexes on blocks",
            Contender::Plain => "one btree",
            Contender::Permuted => "4 btree indexes on permuted values",
        }
    }

    /// Returns the contender's part of the names of its measurements, for example `neardup` in
    /// `build/neardup`.
    pub fn key(self) -> &'static str {
        match self {
            Contender::Bare => "bare",
            Contender::Neardup => "neardup",
            Contender::Blocks => "blocks",
            Contender::Plain => "plain",
            Contender::Permuted => "permuted",
        }
    }

    /// Returns the name of the table that the contender's indexes are on.
    pub fn table(self) -> &'static str {
        if self == Contender::Permuted {
            "permuted"
        } else {
            "docs"
        }
    }

    /// Returns the names of the contender's indexes and the CREATE INDEX statements that make them.
    fn indexes(self) -> Vec<(String, String)> {
        let on_docs = |name: &str, what: &str| {
            (
                name.to_owned(),
                format!("CREATE INDEX {name} ON docs {what}"),
            )
        };
        match self {
            Contender::Bare => Vec::new(),
            Contender::Neardup => {
                vec![on_docs(
                    "docs_neardup",
                    "USING neardup (fp bigint_hamming_ops) \
                     WITH (radius = 3, fillfactor = 90)",
                )]
            }
            Contender::Blocks => (0..4)
                .map(|i| on_docs(&format!("docs_block_{i}"), &format!("({})", block("fp", i))))
                .collect(),
            Contender::Plain => vec![on_docs("docs_plain", "(fp)")],
            Contender::Permuted => (0..4)
                .map(|i| {
                    let name = format!("permuted_{i}");
                    let statement = format!("CREATE INDEX {name} ON permuted (p{i})");
                    (name, statement)
                })
                .collect(),
        }
    }

    /// Builds the contender's indexes one after the other. Returns the total time.
    pub fn build(self, session: &mut Session) -> Result<Time> {
        let mut time = Time::ZERO;
        for (_, statement) in self.indexes() {
            time = time.plus(session.timed(&statement)?);
        }
        Ok(time)
    }

    /// Returns the total size of the contender's indexes in bytes.
    pub fn size(self, session: &mut Session) -> Result<f64> {
        let mut size = 0i64;
        for (name, _) in self.indexes() {
            size += session.value::<i64>(&format!("SELECT pg_relation_size('{name}')"))?;
        }
        Ok(size as f64)
    }

    /// Drops the contender's indexes.
    pub fn drop(self, session: &mut Session) -> Result<()> {
        for (name, _) in self.indexes() {
            session.run(&format!("DROP INDEX {name}"))?;
        }
        Ok(())
    }
}
