//! Contenders of the benchmark: the indexes of each, and its form of the query.
use super::corpus::{self, restored};
use super::session::{Session, Time};
use anyhow::Result;

/// A way to index 64-bit values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    /// No index: the minimum cost of an insert.
    Bare,
    /// One index of neardup, as CREATE INDEX makes it without options.
    Neardup,
    /// The usual advice: four btree indexes on the 16-bit blocks, joined by OR.
    Blocks,
    /// One btree on the column.
    Plain,
    /// Four btree indexes on the values with each block in front, searched by range.
    Permuted,
}

/// The bits of a block. The first block has the highest bits.
fn block(value: &str, block: u32) -> String {
    match 48 - 16 * block {
        0 => format!("({value} & 65535)"),
        shift => format!("(({value} >> {shift}) & 65535)"),
    }
}

/// The distance in PostgreSQL's own functions.
fn distance(a: &str, b: &str) -> String {
    format!("bit_count(({a} # {b})::bit(64))")
}

/// The sequential scans keep each probe from being answered from anything but the table.
const SEQUENTIAL: &str = "SET enable_indexscan = off; SET enable_indexonlyscan = off; \
    SET enable_bitmapscan = off; SET enable_material = off; SET enable_hashjoin = off; \
    SET enable_mergejoin = off";
/// Settings that lead to btree plans, so that the comparison does not depend on an estimate.
const BY_INDEX: &str = "SET enable_seqscan = off; SET enable_material = off; \
    SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_memoize = off";
/// Settings for neardup's queries: none, since the planner finds the index by itself.
const BY_NEARDUP: &str = "";

/// The condition of the search.
fn within(radius: u32) -> String {
    format!("d.fp <~> q.fp <= {radius}")
}

/// Values to search for: the first rows of a table.
#[derive(Clone, Copy, Debug)]
pub struct Probes {
    /// The table.
    pub table: &'static str,
    /// Number of values.
    pub count: u64,
}

impl Probes {
    /// Values with neighbours in the table.
    pub fn planted(count: u64) -> Self {
        let table = corpus::PLANTED_PROBES;
        Self { table, count }
    }

    /// Values without.
    pub fn absent(count: u64) -> Self {
        let table = corpus::ABSENT_PROBES;
        Self { table, count }
    }

    fn first(self) -> String {
        format!("(SELECT * FROM {} WHERE id < {}) q", self.table, self.count)
    }
}

/// A query of some probes.
#[derive(Clone, Debug)]
pub struct Query {
    /// Text after SELECT ... FROM.
    from: String,
    /// The columns that name what was found.
    found: &'static str,
    /// Text that the plan must contain.
    pub plan: &'static str,
    /// Settings to make before.
    settings: &'static str,
}

impl Query {
    /// The rows within a radius, by neardup's index.
    pub fn neardup(probes: Probes, radius: u32) -> Self {
        Self {
            from: format!("{} JOIN docs d ON {}", probes.first(), within(radius)),
            found: "q.id, d.id",
            plan: "Index Scan using docs_neardup",
            settings: BY_NEARDUP,
        }
    }

    /// The nearest rows, by neardup's index.
    pub fn nearest(probes: Probes, limit: u32) -> Self {
        let nearest = format!("SELECT d.id, d.fp FROM docs d ORDER BY d.fp <~> q.fp LIMIT {limit}");
        Self {
            from: format!("{} CROSS JOIN LATERAL ({nearest}) d", probes.first()),
            ..Self::neardup(probes, 0)
        }
    }

    /// The query by a sequential scan, with neardup's operator.
    pub fn sequentially(self) -> Self {
        Self {
            plan: "Seq Scan on docs",
            settings: SEQUENTIAL,
            ..self
        }
    }

    /// The rows within a radius, by a sequential scan with neardup's operator.
    pub fn sequential(probes: Probes, radius: u32) -> Self {
        Self::neardup(probes, radius).sequentially()
    }

    /// The rows within a radius, by a sequential scan with only PostgreSQL's own functions.
    pub fn bit_count(probes: Probes, radius: u32) -> Self {
        let distance = distance("d.fp", "q.fp");
        Self {
            from: format!("{} JOIN docs d ON {distance} <= {radius}", probes.first()),
            ..Self::sequential(probes, radius)
        }
    }

    /// Radius 3 by four btree indexes on blocks: within 3 bits at least one of 4 blocks is equal.
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

    /// Radius 3 by ranges of four btree indexes on permuted values, which are found in the indexes
    /// themselves. A value that several of them find is returned by each.
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

    /// Equal values by one btree: the executor's minimum for a probe.
    pub fn equality(probes: Probes) -> Self {
        Self {
            from: format!("{} JOIN docs d ON d.fp = q.fp", probes.first()),
            found: "q.id, d.fp",
            plan: "Index Only Scan using docs_plain",
            settings: BY_INDEX,
        }
    }

    /// The query that counts the results, whose cost is the cost of the search. If the results are
    /// rows, it counts one of their columns, so that every contender must fetch them.
    pub fn count(&self) -> String {
        let column = self.found.rsplit(", ").next().unwrap_or("*");
        format!("SELECT count({column}) FROM {}", self.from)
    }

    /// Result for each probe in one number: 1,000 for each row, plus the sum of their
    /// distances. The nearest rows may differ, but their distances may not.
    pub fn sums(&self, session: &mut Session) -> Result<Vec<(i64, i64)>> {
        self.set(session)?;
        let sum = "sum(1000 + (d.fp <~> q.fp))::bigint";
        session.pairs(&format!(
            "SELECT q.id, {sum} FROM {} GROUP BY q.id",
            self.from
        ))
    }

    /// Applies the settings for the measurement of the query.
    pub fn set(&self, session: &mut Session) -> Result<()> {
        session.run(&format!("RESET ALL; {}", self.settings))
    }

    /// Result as pairs of a probe and a row.
    pub fn rows(&self, session: &mut Session) -> Result<Vec<(i64, i64)>> {
        self.set(session)?;
        session.pairs(&format!("SELECT {} FROM {}", self.found, self.from))
    }

    /// Result as pairs of a probe and a value.
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
    /// All of them, in the order of measurement.
    pub const ALL: [Contender; 5] = [
        Contender::Bare,
        Contender::Neardup,
        Contender::Blocks,
        Contender::Plain,
        Contender::Permuted,
    ];

    /// The name in progress messages.
    pub fn label(self) -> &'static str {
        match self {
            Contender::Bare => "no index",
            Contender::Neardup => "neardup",
            Contender::Blocks => "4 btree indexes on blocks",
            Contender::Plain => "one btree",
            Contender::Permuted => "4 btree indexes on permuted values",
        }
    }

    /// The name in the names of measurements.
    pub fn key(self) -> &'static str {
        match self {
            Contender::Bare => "bare",
            Contender::Neardup => "neardup",
            Contender::Blocks => "blocks",
            Contender::Plain => "plain",
            Contender::Permuted => "permuted",
        }
    }

    /// The table that is indexed.
    pub fn table(self) -> &'static str {
        if self == Contender::Permuted {
            "permuted"
        } else {
            "docs"
        }
    }

    /// Names and definitions of the indexes.
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
                    "USING neardup (fp bigint_hamming_ops) WITH (radius = 3)",
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

    /// Builds the indexes. Returns the time that it took.
    pub fn build(self, session: &mut Session) -> Result<Time> {
        let mut time = Time::ZERO;
        for (_, statement) in self.indexes() {
            time = time.plus(session.timed(&statement)?);
        }
        Ok(time)
    }

    /// Bytes of the indexes.
    pub fn size(self, session: &mut Session) -> Result<f64> {
        let mut size = 0i64;
        for (name, _) in self.indexes() {
            size += session.value::<i64>(&format!("SELECT pg_relation_size('{name}')"))?;
        }
        Ok(size as f64)
    }

    /// Drops the indexes.
    pub fn drop(self, session: &mut Session) -> Result<()> {
        for (name, _) in self.indexes() {
            session.run(&format!("DROP INDEX {name}"))?;
        }
        Ok(())
    }
}
