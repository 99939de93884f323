//! The demo's SQL: table, load, index, pairs, and the comparison with a sequential scan.
use super::document::{Complaints, Document};
use super::groups::Member;
use super::source::Source;
use crate::ui::Counter;
use anyhow::{Context, Result};
use postgres::fallible_iterator::FallibleIterator;
use postgres::{Client, NoTls};
use std::io::Write;
use std::time::{Duration, Instant};

/// The radius within which documents are near-duplicates here, in bits: a Jaccard similarity of
/// about 0.8.
pub const RADIUS: u32 = 6;

/// The statement that makes the table.
pub const CREATE_TABLE: &str = "CREATE TABLE docs (id bigint, name text, body text, \
                                fp fingerprint GENERATED ALWAYS AS (minhash64(body)) STORED)";
/// The statement that makes the index.
pub const CREATE_INDEX: &str = "CREATE INDEX docs_fp_idx ON docs USING neardup (fp)";

/// Beyond this, equal fingerprints would fill the list of pairs with what a GROUP BY tells better.
const MANY_EQUAL_PAIRS: f64 = 3e6;

/// Documents that were loaded.
#[derive(Debug, Default)]
pub struct Loaded {
    /// Documents in the table.
    pub documents: usize,
    /// Of those, without a fingerprint since they have no words.
    pub without_fingerprint: usize,
    /// Their size together, in bytes.
    pub bytes: u64,
    /// Time for loading, with the fingerprints.
    pub time: Duration,
}

/// Two near-duplicates.
pub struct Pair {
    /// Identifier of the first.
    pub a: i64,
    /// Identifier of the second.
    pub b: i64,
}

/// The connection, and what the queries run on.
pub struct Demo {
    client: Client,
    /// The table whose pairs are listed: `docs`, or one with a document per fingerprint.
    table: &'static str,
}

impl Demo {
    /// Connects; one process does the work of every query, so that times compare.
    pub fn connect(conninfo: &str) -> Result<Self> {
        let mut client = Client::connect(conninfo, NoTls).context("cannot connect")?;
        client.batch_execute("SET max_parallel_workers_per_gather = 0; SET jit = off")?;
        Ok(Self {
            client,
            table: "docs",
        })
    }

    /// Makes the table and loads all documents of `source`, numbered from 1.
    pub fn load(&mut self, source: &Source, complaints: &mut Complaints) -> Result<Loaded> {
        self.client.batch_execute(CREATE_TABLE)?;
        let counter = Counter::counting("Loading documents and making their fingerprints");
        let mut loaded = Loaded::default();
        let mut copy = self
            .client
            .copy_in("COPY docs (id, name, body) FROM STDIN")?;
        let mut row = String::new();
        source.read(complaints, &mut |Document { name, body }| {
            loaded.documents += 1;
            loaded.bytes += body.len() as u64;
            row.clear();
            row += &loaded.documents.to_string();
            for value in [&name, &body] {
                row.push('\t');
                escape_copy(value, &mut row);
            }
            row.push('\n');
            counter.add_one();
            Ok(copy.write_all(row.as_bytes())?)
        })?;
        copy.finish().context("cannot load the documents")?;
        loaded.time = counter.finish();
        let query = "SELECT count(*) FROM docs WHERE fp IS NULL";
        let without: i64 = self.client.query_one(query, &[])?.get(0);
        loaded.without_fingerprint = usize::try_from(without)?;
        Ok(loaded)
    }

    /// Makes the index; its time and its size in bytes.
    pub fn index(&mut self) -> Result<(Duration, u64)> {
        self.client.batch_execute("VACUUM ANALYZE docs")?;
        let start = Instant::now();
        self.client
            .batch_execute(CREATE_INDEX)
            .context("cannot make the index")?;
        let time = start.elapsed();
        let query = "SELECT pg_relation_size('docs_fp_idx')";
        let size: i64 = self.client.query_one(query, &[])?.get(0);
        Ok((time, u64::try_from(size)?))
    }

    /// Keeps one document per fingerprint in a table of its own when there are very many equal
    /// ones, and says whether it did.
    pub fn set_equal_ones_aside(&mut self) -> Result<bool> {
        let query = "SELECT coalesce(sum(n * (n - 1) / 2), 0)::float8 \
                     FROM (SELECT count(*) AS n FROM docs WHERE fp IS NOT NULL GROUP BY fp) AS g";
        let pairs: f64 = self.client.query_one(query, &[])?.get(0);
        if pairs <= MANY_EQUAL_PAIRS {
            return Ok(false);
        }
        self.client.batch_execute(
            "CREATE TABLE docs_distinct AS \
             SELECT min(id) AS id, fp FROM docs WHERE fp IS NOT NULL GROUP BY fp; \
             CREATE INDEX docs_distinct_fp_idx ON docs_distinct USING neardup (fp); \
             ANALYZE docs_distinct",
        )?;
        self.table = "docs_distinct";
        Ok(true)
    }

    /// The query for all pairs.
    pub fn pairs_query(&self) -> String {
        let table = self.table;
        format!(
            "SELECT a.id, b.id FROM {table} a JOIN {table} b \
             ON a.fp <~> b.fp <= {RADIUS} AND a.id < b.id"
        )
    }

    /// Hands all pairs to `take`, those of equal documents that were set aside included; the time
    /// of the query.
    pub fn pairs(&mut self, mut take: impl FnMut(Pair)) -> Result<Duration> {
        let start = Instant::now();
        let query = self.pairs_query();
        stream(&mut self.client, &query, &mut take)?;
        let time = start.elapsed();
        if self.table != "docs" {
            let equal = "SELECT d.id, r.id FROM docs d JOIN docs_distinct r USING (fp) \
                         WHERE d.id <> r.id";
            stream(&mut self.client, equal, &mut take)?;
        }
        Ok(time)
    }

    /// Makes the planner use the index where it would not (a sequential scan of a few documents is
    /// cheaper).
    pub fn choose_plan(&mut self) -> Result<Choice> {
        let query = self.pairs_query();
        if self.uses_index(&query)? {
            return Ok(Choice::Index);
        }
        self.client.batch_execute("SET enable_seqscan = off")?;
        if self.uses_index(&query)? {
            return Ok(Choice::IndexOnDemand);
        }
        self.client.batch_execute("RESET enable_seqscan")?;
        Ok(Choice::NoIndex)
    }

    fn uses_index(&mut self, query: &str) -> Result<bool> {
        let plan = self.explain("EXPLAIN (COSTS OFF)", query)?;
        Ok(plan.iter().any(|line| line.contains("_fp_idx")))
    }

    /// The plan of the query for all pairs, with what its nodes really did.
    pub fn plan(&mut self) -> Result<Vec<String>> {
        let explain = "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF)";
        self.explain(explain, &self.pairs_query())
    }

    fn explain(&mut self, explain: &str, query: &str) -> Result<Vec<String>> {
        let rows = self.client.query(&format!("{explain} {query}"), &[])?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    /// Looks for the near-duplicates of some documents among all, with and without the index.
    pub fn compare(&mut self) -> Result<Comparison> {
        let table = self.table;
        let query = format!("SELECT count(*) FROM {table} WHERE fp IS NOT NULL");
        let documents: i64 = self.client.query_one(&query, &[])?.get(0);
        let probes = probes_for(documents);
        // By a hash of the identifier: neighbours in the source are often alike.
        self.client.batch_execute(&format!(
            "CREATE TEMPORARY TABLE probes AS SELECT id, fp FROM {table} WHERE fp IS NOT NULL \
             ORDER BY hashint8(id), id LIMIT {probes}; ANALYZE probes"
        ))?;
        let query = format!(
            "SELECT count(*) FROM probes a JOIN {table} b \
             ON a.fp <~> b.fp <= {RADIUS} AND a.id <> b.id"
        );
        let with_index = self.uses_index(&query)?;
        let index = self.timed_twice(&query)?;
        self.client.batch_execute(
            "RESET enable_seqscan; SET enable_indexscan = off; \
             SET enable_indexonlyscan = off; SET enable_bitmapscan = off",
        )?;
        let scan = self.timed_twice(&query)?;
        Ok(Comparison {
            probes: usize::try_from(documents.min(probes))?,
            with_index,
            index,
            scan,
        })
    }

    /// Runs a query that counts twice, and times the second run, when everything is in memory.
    fn timed_twice(&mut self, query: &str) -> Result<Timed> {
        self.client.query_one(query, &[])?;
        let start = Instant::now();
        let found: i64 = self.client.query_one(query, &[])?.get(0);
        Ok(Timed {
            time: start.elapsed(),
            found,
        })
    }

    /// Makes documents quick to find by their identifiers, now that this cannot lead the planner
    /// away from the index that is shown.
    pub fn add_primary_key(&mut self) -> Result<()> {
        Ok(self
            .client
            .batch_execute("RESET ALL; ALTER TABLE docs ADD PRIMARY KEY (id)")?)
    }

    /// The documents with these identifiers, in the same order, without their texts.
    pub fn members(&mut self, ids: &[i64]) -> Result<Vec<Member>> {
        let query = "SELECT d.id, d.name, md5(d.body) \
                     FROM unnest($1::bigint[]) WITH ORDINALITY AS u (id, n) \
                     JOIN docs d ON d.id = u.id ORDER BY u.n";
        let rows = self.client.query(query, &[&ids])?;
        let members = rows.iter().map(|row| Member {
            id: row.get(0),
            name: row.get(1),
            digest: row.get(2),
        });
        Ok(members.collect())
    }

    /// The distances of documents from one of them, in the order of `ids`.
    pub fn distances(&mut self, from: i64, ids: &[i64]) -> Result<Vec<i32>> {
        let query = "SELECT d.fp <~> r.fp FROM unnest($2::bigint[]) WITH ORDINALITY AS u (id, n) \
                     JOIN docs d ON d.id = u.id JOIN docs r ON r.id = $1 ORDER BY u.n";
        let rows = self.client.query(query, &[&from, &ids])?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    /// The report on all documents, an HTML page.
    pub fn page(&mut self, title: &str) -> Result<String> {
        let query = format!(
            "SELECT neardup_report('docs_fp_idx', {RADIUS}, title => $1, key => 'name', \
             keep => 'id')"
        );
        Ok(self.client.query_one(&query, &[&title])?.get(0))
    }

    /// A document's text.
    pub fn body(&mut self, id: i64) -> Result<String> {
        let query = "SELECT body FROM docs WHERE id = $1";
        Ok(self.client.query_one(query, &[&id])?.get(0))
    }
}

/// Way in which the planner came to its plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// It chose the index by itself.
    Index,
    /// It chose the index when sequential scans were discouraged.
    IndexOnDemand,
    /// It cannot use the index for this query.
    NoIndex,
}

/// One query's time and count.
pub struct Timed {
    /// Time for the query.
    pub time: Duration,
    /// Result of the query.
    pub found: i64,
}

/// The same query with the index and by sequential scans.
pub struct Comparison {
    /// Number of documents were looked for.
    pub probes: usize,
    /// True if the planner used the index at all.
    pub with_index: bool,
    /// With the index.
    pub index: Timed,
    /// By sequential scans.
    pub scan: Timed,
}

/// So many probes that the sequential scans take some seconds at most: about 0.1 us a comparison.
fn probes_for(documents: i64) -> i64 {
    (30_000_000 / documents.max(1)).clamp(20, documents.max(20))
}

fn stream(client: &mut Client, query: &str, take: &mut impl FnMut(Pair)) -> Result<()> {
    let parameters: [i64; 0] = [];
    let mut rows = client.query_raw(query, parameters)?;
    while let Some(row) = rows.next()? {
        take(Pair {
            a: row.get(0),
            b: row.get(1),
        });
    }
    Ok(())
}

/// Writes a value as COPY's text format wants it.
fn escape_copy(value: &str, row: &mut String) {
    for c in value.chars() {
        match c {
            '\\' => row.push_str("\\\\"),
            '\n' => row.push_str("\\n"),
            '\r' => row.push_str("\\r"),
            '\t' => row.push_str("\\t"),
            c => row.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_values_are_escaped() {
        let mut row = String::new();
        escape_copy("a\tb\\N\r\n.", &mut row);
        assert_eq!(row, "a\\tb\\\\N\\r\\n.");
    }

    #[test]
    fn probes_are_fewer_where_scans_are_longer() {
        assert_eq!(probes_for(0), 20);
        assert_eq!(probes_for(100), 100);
        assert_eq!(probes_for(3_000), 3_000);
        assert_eq!(probes_for(100_000), 300);
        assert_eq!(probes_for(100_000_000), 20);
    }
}
