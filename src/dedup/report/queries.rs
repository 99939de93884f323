//! Queries of a report, which run with the rights of the caller.
use std::ffi::CString;

use neardup_blocktree::key::Tid;
use neardup_report::data::{Bar, Measure, Text};
use pgrx::pg_sys;

use super::countable::countable;
use super::largest_clusters::ClusterRow;
use super::levels::{shown_radius, widest};
use super::report_arguments::{Arguments, shown};
use super::subject::Subject;
use crate::dedup::bound::Bound;
use neardup_pg::caller_sql::Condition;
use neardup_pg::catalog;
use neardup_pg::cursor::Parameter;
use neardup_pg::spi::{self, Connection};
use neardup_pg::tid::item_pointer;
use neardup_pg::value::Value;

/// Maximum total size of the texts on a page, in bytes. The page omits the texts beyond it.
const MOST_TEXT: i64 = 16 << 20;
/// Tolerance for comparisons of similarities.
const EPSILON: f64 = 1e-9;
/// Maximum length of a row's key on the page, in characters. A longer key is truncated.
const LONGEST_KEY: usize = 200;

/// Queries of a report about one table and index.
pub struct Queries<'a> {
    connection: &'a Connection,
    /// Schema of the extension's functions.
    schema: CString,
    index: pg_sys::Oid,
    subject: &'a Subject,
    arguments: &'a Arguments<'a>,
}

impl<'a> Queries<'a> {
    pub fn new(
        connection: &'a Connection,
        function: pg_sys::Oid,
        index: pg_sys::Oid,
        subject: &'a Subject,
        arguments: &'a Arguments<'a>,
    ) -> Self {
        Queries {
            connection,
            schema: catalog::schema_name(catalog::schema_of_function(function)),
            index,
            subject,
            arguments,
        }
    }

    /// Returns the SQL expression for the text of a row, or for NULL if there is none.
    fn body(&self) -> &[u8] {
        let body = self.subject.body.as_ref();
        body.map_or(b"NULL::pg_catalog.text", |(sql, _)| sql)
    }

    /// Returns the WHERE clause for the caller's filter. Empty without a filter.
    fn filter(&self) -> Vec<u8> {
        let filter = self.arguments.filter.as_ref().map(Condition::expression);
        filter.map_or_else(Vec::new, |filter| [b" WHERE ", filter.as_slice()].concat())
    }

    /// Returns the number of rows in the report (all rows of the table, or the rows that meet the
    /// caller's filter), and the total size of their texts in bytes. The size is `None` if there is
    /// no expression for texts.
    pub fn rows(&self) -> (u64, Option<u64>) {
        let query = [
            b"SELECT pg_catalog.count(*), pg_catalog.sum(pg_catalog.octet_length(",
            self.body(),
            b")) FROM ONLY ",
            &self.subject.table,
            &self.filter(),
        ]
        .concat();
        let mut counted = (0, None);
        self.connection.open(&query, &[], &[]).for_each(|row| {
            let number = |n: usize| row[n].and_then(Value::integer).map(i64::unsigned_abs);
            counted = (number(0).unwrap_or(0), number(1));
        });
        let has_body = self.subject.body.is_some();
        (counted.0, has_body.then(|| counted.1.unwrap_or(0)))
    }

    /// Returns the SQL expression for the distance in a row `r` of a query result, which has the
    /// columns `distance` and `similarity`. For signatures the distance is 1 minus the similarity.
    fn distance(&self) -> &'static [u8] {
        match self.subject.measure {
            Measure::Bits(_) | Measure::Estimated(_) => b"r.distance::pg_catalog.float8",
            Measure::Signatures => b"1::pg_catalog.float8 OPERATOR(pg_catalog.-) r.similarity",
        }
    }

    /// Calls `neardup_clusters` with a bound and visits the rows of all clusters, sorted by
    /// cluster, the kept row of each cluster first.
    pub fn clusters(&self, bound: Bound, mut each: impl FnMut(&ClusterRow)) {
        let called = [
            catalog::qualified(&self.schema, c"neardup_clusters"),
            b"($1, $2, $3, 'star', $4, NULL, $5, false, $6)".to_vec(),
        ]
        .concat();
        let query = [
            b"SELECT r.member, r.representative, r.size, ",
            self.distance(),
            b", m.bytes FROM ",
            called.as_slice(),
            b" WITH ORDINALITY AS r (member, representative, size, distance, similarity, ordinal) \
              JOIN (SELECT ctid AS address, pg_catalog.octet_length(",
            self.body(),
            b") AS bytes FROM ONLY ",
            &self.subject.table,
            b") AS m ON m.address OPERATOR(pg_catalog.=) r.member ORDER BY r.ordinal",
        ]
        .concat();
        let exhaustive = Parameter {
            type_oid: pg_sys::BOOLOID,
            value: Some(Value::bool(self.arguments.exhaustive)),
        };
        let [relation, radius, similarity] = self.index_and_bound(bound);
        let parameters = [
            relation,
            radius,
            similarity,
            self.keep(),
            self.filter_text(),
            exhaustive,
        ];
        let rows = self.connection.open(&query, &parameters, &[]);
        rows.for_each(|row| {
            if let Some(row) = ClusterRow::read(row) {
                each(&row);
            }
        });
    }

    /// Returns query parameters for a call of `neardup_clusters` or `neardup_distance_histogram`:
    /// the arguments `relation` (the index), `radius` and `similarity`. One of the last two is the
    /// bound, and the other one is NULL.
    fn index_and_bound(&self, bound: Bound) -> [Parameter<'_>; 3] {
        let (radius, similarity) = match bound {
            Bound::Radius(radius) => (Some(Value::int4(radius as i32)), None),
            Bound::Similarity(similarity) => (None, Some(Value::float8(similarity))),
        };
        [
            (pg_sys::REGCLASSOID, Some(Value::oid(self.index))),
            (pg_sys::INT4OID, radius),
            (pg_sys::FLOAT8OID, similarity),
        ]
        .map(|(type_oid, value)| Parameter { type_oid, value })
    }

    fn keep(&self) -> Parameter<'_> {
        Parameter {
            ..self.arguments.keep
        }
    }

    fn filter_text(&self) -> Parameter<'_> {
        Parameter {
            ..self.arguments.filter_text
        }
    }

    /// Returns the bars of the histogram: the number of pairs at each distance, from 0. First
    /// estimates all numbers from a sample of the rows. Then replaces the estimates at the lowest
    /// distances by exact counts, as far as the counting takes about a second at most.
    pub fn histogram(&self) -> Vec<Bar> {
        let (subject, sample) = (self.subject, self.arguments.sample);
        let mut bars = self.bars(widest(subject.bound, subject.measure), Some(sample));
        if bars.iter().any(|bar| bar.margin > 0)
            && let Some(bound) = countable(self.index, subject, &bars)
        {
            let limit = shown_radius(bound) + EPSILON;
            let counted = self.bars(bound, None).into_iter();
            // The last bar of similarities may extend beyond the bound, so it is not replaced.
            for (bar, counted) in bars
                .iter_mut()
                .zip(counted.filter(|bar| bar.distance <= limit))
            {
                *bar = counted;
            }
        }
        bars
    }

    /// Returns the bars of the histogram within a bound. Estimates them by a sample of
    /// `sample_rows` rows. Counts all pairs if `sample_rows` is `None`.
    fn bars(&self, bound: Bound, sample_rows: Option<i32>) -> Vec<Bar> {
        let query = [
            b"SELECT ",
            self.distance(),
            b", r.pairs, r.margin FROM ",
            catalog::qualified(&self.schema, c"neardup_distance_histogram").as_slice(),
            b"($1, $2, $3, $4, NULL, 0, false, $5) AS r ORDER BY 1",
        ]
        .concat();
        let [relation, radius, similarity] = self.index_and_bound(bound);
        let sample = Parameter {
            type_oid: pg_sys::INT4OID,
            value: sample_rows.map(Value::int4),
        };
        let parameters = [relation, radius, similarity, sample, self.filter_text()];
        let mut bars = Vec::new();
        self.connection
            .open(&query, &parameters, &[])
            .for_each(|row| {
                if let [Some(distance), Some(pairs), Some(margin)] = row {
                    let number = |value: &Value| value.integer().unwrap_or_default().unsigned_abs();
                    bars.push(Bar {
                        distance: distance.float().unwrap_or_default(),
                        pairs: number(pairs),
                        margin: number(margin),
                    });
                }
            });
        bars
    }

    /// Returns the keys and texts of the rows with these addresses, in the order of `rows`.
    pub fn texts(&self, rows: &[Tid]) -> Vec<(Option<String>, Text)> {
        let columns = [(c"ordinal", pg_sys::INT8OID), (c"address", pg_sys::TIDOID)];
        let mut store = self.connection.store(c"neardup report rows", &columns);
        for (ordinal, &row) in (0..).zip(rows) {
            store.push(&[Value::int8(ordinal), Value::tid(&item_pointer(row))]);
        }
        let query = [
            TEXTS_FRONT,
            b" FROM \"neardup report rows\" AS s JOIN (SELECT ctid AS address, ",
            &self.subject.key.0,
            b" AS key, ",
            self.body(),
            b" AS body FROM ONLY ",
            &self.subject.table,
            b") AS r ON r.address OPERATOR(pg_catalog.=) s.address) AS u) AS w ORDER BY w.ordinal",
        ]
        .concat();
        let parameters = [
            Value::int4(self.arguments.limits.characters as i32),
            Value::int8(MOST_TEXT),
            // In SQL_ASCII the server counts bytes. A character has at most four.
            Value::int4(4 * (LONGEST_KEY as i32 + 1)),
        ]
        .map(|value| Parameter {
            type_oid: value.type_oid(),
            value: Some(value),
        });
        let mut found = Vec::with_capacity(rows.len());
        let result = self.connection.open(&query, &parameters, &[&store]);
        result.for_each(|row| {
            found.push((
                row[0].map(|key| shortened(key.utf8_beginning())),
                text_of(&row[1..]),
            ));
        });
        found
    }

    /// Returns the start time of the transaction in UTC, for the page. It is at or just before the
    /// time of the snapshot.
    pub fn time(&self) -> String {
        let time = spi::value(
            c"SELECT pg_catalog.to_char(pg_catalog.timezone('UTC', pg_catalog.now()), \
              'YYYY-MM-DD HH24:MI')",
            &[],
        );
        time.map_or_else(String::new, |time| format!("{} UTC", time.get().utf8()))
    }

    /// Returns SQL that the report shows to its reader: a transaction that deletes the rows of all
    /// clusters within `bound`, except the kept row of each cluster. The transaction locks the
    /// table, so other sessions cannot delete or change a kept row meanwhile.
    pub fn statement(&self, bound: Bound) -> String {
        let literal = |bytes: &[u8]| {
            let text = CString::new(bytes).unwrap_or_default();
            catalog::literal(&text)
        };
        let bound = match bound {
            Bound::Radius(radius) => format!("radius => {radius}"),
            Bound::Similarity(similarity) => format!("similarity => {similarity}"),
        };
        let mut statement = [
            b"BEGIN;\nLOCK TABLE ",
            self.subject.table.as_slice(),
            b" IN SHARE ROW EXCLUSIVE MODE;\nDELETE FROM ",
            &self.subject.table,
            b" AS t\nUSING ",
            &catalog::qualified(&self.schema, c"neardup_clusters"),
            b"(",
            &literal(&self.subject.index),
            b", ",
            bound.as_bytes(),
        ]
        .concat();
        for (name, text) in &self.arguments.clauses {
            if let Some(text) = text {
                statement.extend([b",\n    ", name.as_bytes(), b" => "].concat());
                statement.extend(literal(text));
            }
        }
        statement.extend_from_slice(
            b") AS c\nWHERE t.ctid = c.member AND c.member <> c.representative;\nCOMMIT;",
        );
        shown(&statement)
    }
}

/// Beginning of the query for keys and texts. `$1` is the maximum number of characters shown of a
/// text, `$2` the maximum total size of the texts in bytes, and `$3` the maximum length of a key.
/// The query stops reading texts when their total size reaches the maximum. A text counts with its
/// size in bytes, but at most four bytes for each shown character.
const TEXTS_FRONT: &[u8] = b"SELECT pg_catalog.\"left\"(w.key, $3),
    pg_catalog.\"left\"(w.body, $1), w.bytes, pg_catalog.encode(pg_catalog.sha256(
        pg_catalog.convert_to(w.body, pg_catalog.getdatabaseencoding())), 'hex'),
    pg_catalog.length(w.body) OPERATOR(pg_catalog.>) $1
    FROM (SELECT u.ordinal, u.key, u.bytes,
        CASE WHEN u.used OPERATOR(pg_catalog.<=) $2 THEN u.body END AS body
    FROM (SELECT s.ordinal, r.key, r.body, pg_catalog.octet_length(r.body) AS bytes,
        pg_catalog.sum(LEAST(pg_catalog.octet_length(r.body), 4 OPERATOR(pg_catalog.*) $1))
            OVER (ORDER BY s.ordinal) AS used";

/// Converts the text in a row of the query for texts. The columns are the beginning of the text,
/// its size in bytes, its digest, and whether the text has more characters.
fn text_of(row: &[Option<Value>]) -> Text {
    match row {
        [Some(beginning), Some(bytes), Some(digest), Some(is_cut)] => Text::Some {
            shown: beginning.utf8_beginning(),
            bytes: bytes.integer().unwrap_or_default().unsigned_abs(),
            is_cut: is_cut.as_bool(),
            digest: digest.utf8(),
        },
        [_, Some(_), ..] => Text::LeftOut,
        _ => Text::None,
    }
}

/// Truncates a row's key to [`LONGEST_KEY`] characters, followed by an ellipsis.
fn shortened(key: String) -> String {
    match key.char_indices().nth(LONGEST_KEY) {
        Some((end, _)) => format!("{}\u{2026}", &key[..end]),
        None => key,
    }
}
