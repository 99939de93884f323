//! The oracle: the index returns the same rows as the sequential scan, each row once.
use super::data::{Probe, RADII, probes};
use super::table::{Table, Type, value};
use super::waiting::poll;
use anyhow::{Context, Result, bail, ensure};
use postgres::{GenericClient, SimpleQueryMessage};

/// Way to run a query. `jit` is off because the cost of disabled plan types would turn it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Sequential,
    Index,
    Bitmap,
}

impl Way {
    /// Ways that use the index.
    pub const INDEXED: [Way; 2] = [Way::Index, Way::Bitmap];

    /// Sets the planner options of the session so that queries run in this way.
    pub fn set(self, client: &mut impl GenericClient) -> Result<()> {
        let on = |way| if self == way { "on" } else { "off" };
        client.batch_execute(&format!(
            "SET jit = off; SET enable_indexonlyscan = off; SET enable_seqscan = {}; \
             SET enable_indexscan = {}; SET enable_bitmapscan = {}",
            on(Way::Sequential),
            on(Way::Index),
            on(Way::Bitmap)
        ))?;
        Ok(())
    }

    /// Returns the text that a plan must show.
    fn mark(self, index: &str) -> String {
        match self {
            Way::Sequential => "Seq Scan on".to_owned(),
            Way::Index => format!("Index Scan using {index}"),
            Way::Bitmap => format!("Bitmap Index Scan on {index}"),
        }
    }
}

/// Returns the plan of a query, as EXPLAIN prints it.
pub fn plan(client: &mut impl GenericClient, query: &str) -> Result<String> {
    explain(client, "COSTS OFF", query)
}

/// Returns the output of EXPLAIN with these options.
pub fn explain(client: &mut impl GenericClient, options: &str, query: &str) -> Result<String> {
    let mut text = String::new();
    for message in client.simple_query(&format!("EXPLAIN ({options}) {query}"))? {
        if let SimpleQueryMessage::Row(row) = message {
            text += row.get(0).unwrap_or_default();
            text.push('\n');
        }
    }
    Ok(text)
}

/// Returns whether the planner skips an index because an older transaction still runs: the table
/// had HOT-updated row versions that are not in the index.
fn is_too_new(client: &mut impl GenericClient, index: &str) -> Result<bool> {
    value(
        client,
        &format!(
            "SELECT count(*) > 0 FROM pg_index WHERE indexrelid::regclass::text LIKE '{index}%' \
             AND indcheckxmin AND xmin::text::bigint >= \
                 pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
        ),
    )
}

/// Waits until no transaction is older than the index, in any database of the server.
pub fn until_old_enough(client: &mut impl GenericClient, index: &str) -> Result<()> {
    poll("no older transaction runs", || {
        Ok(!is_too_new(client, index)?)
    })
}

/// Plans a query in this way. Returns the plan if it does not use this way and this index.
fn other_plan(
    client: &mut impl GenericClient,
    way: Way,
    index: &str,
    query: &str,
) -> Result<Option<String>> {
    way.set(client)?;
    let mut other = None;
    // Other tests have transactions in other databases of the same server.
    poll("the planner may use the index", || {
        // Checked before planning: the older transaction may end in between.
        let too_new = is_too_new(client, index)?;
        let plan = plan(client, query)?;
        // A condition that the planner itself finds false needs no index.
        let is_this = plan.contains("One-Time Filter: false") || plan.contains(&way.mark(index));
        other = (!is_this).then_some(plan);
        Ok(is_this || !too_new)
    })?;
    Ok(other)
}

/// Returns the number after the first occurrence of `label` in the output of EXPLAIN.
pub fn number(shown: &str, label: &str) -> Option<f64> {
    let rest = shown.split(label).nth(1)?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    rest[..end].parse().ok()
}

/// Asserts that a query runs in this way, with this index.
pub fn assert_way(
    client: &mut impl GenericClient,
    way: Way,
    index: &str,
    query: &str,
) -> Result<()> {
    match other_plan(client, way, index, query)? {
        None => Ok(()),
        Some(plan) => bail!("no \"{}\" in the plan of {query}:\n{plan}", way.mark(index)),
    }
}

/// Returns the sorted elements of the array that a query returns.
fn sorted(client: &mut impl GenericClient, query: &str) -> Result<Vec<i64>> {
    let mut ids: Vec<i64> = value(client, query).with_context(|| query.to_owned())?;
    ids.sort_unstable();
    Ok(ids)
}

/// Returns whether this version plans `fp <~> q <= r` as an index condition.
pub fn rewrites(client: &mut impl GenericClient) -> Result<bool> {
    value(
        client,
        "SELECT count(*) > 0 FROM pg_proc \
         WHERE proname = '_neardup_hamming_le' AND prosupport <> 0",
    )
}

/// Returns all conditions that an index can serve for a probe.
fn conditions(fp: Type, probe: Probe, rewrites: bool) -> Vec<String> {
    let Probe { center, radius } = probe;
    let center = fp.literal(center);
    let mut conditions = vec![format!("fp <@ {}", fp.ball(probe))];
    if radius == fp.near {
        conditions.push(format!("fp ~= {center}"));
    }
    if radius == 0 {
        conditions.push(format!("fp = {center}"));
    }
    if rewrites {
        conditions.push(format!("fp <~> {center} <= {radius}"));
    }
    conditions
}

/// Asserts that each of these conditions, in each way to use an index, finds the same rows of
/// `table` as `filter` without an index. Returns their number. `index` is a prefix of the index's
/// name. Unless `strict`, skips a way that the planner does not use.
pub fn compare(
    client: &mut impl GenericClient,
    table: &str,
    index: &str,
    filter: &str,
    conditions: &[String],
    strict: bool,
) -> Result<usize> {
    let select = |condition: &str| {
        format!("SELECT coalesce(array_agg(id), '{{}}') FROM {table} WHERE {condition}")
    };
    Way::Sequential.set(client)?;
    let expected = sorted(client, &select(filter))?;
    for condition in conditions {
        let query = select(condition);
        for way in Way::INDEXED {
            if strict {
                assert_way(client, way, index, &query)?;
            } else if other_plan(client, way, index, &query)?.is_some() {
                continue;
            }
            let found = sorted(client, &query)?;
            ensure!(
                found == expected,
                "{way:?} on {index}, {condition}: {}",
                difference(&found, &expected)
            );
        }
    }
    Ok(expected.len())
}

impl Table {
    /// Asserts that the index returns the same rows as the sequential scan for these probes, in
    /// every form and way. Returns the total number of rows, which a test can compare with 0.
    pub fn agree(&self, client: &mut impl GenericClient, probes: &[Probe]) -> Result<usize> {
        let rewrites = rewrites(client)?;
        let mut rows = 0;
        for &probe in probes {
            let filter = format!(
                "fp <~> {} <= {}",
                self.fp.literal(probe.center),
                probe.radius
            );
            let conditions = conditions(self.fp, probe, rewrites);
            rows += compare(client, self.name, self.index, &filter, &conditions, true)?;
        }
        Ok(rows)
    }

    /// Calls [`Table::agree`] with probes of these radii around the table's own values. Asserts
    /// that the probes found rows if the table has any fingerprint.
    pub fn answers(&self, client: &mut impl GenericClient, radii: &[i32], seed: u64) -> Result<()> {
        Way::Sequential.set(client)?;
        let select = format!(
            "SELECT coalesce(array_agg({}), '{{}}') FROM \
             (SELECT fp FROM {} WHERE fp IS NOT NULL ORDER BY hashint8extended(id, {seed}) \
              LIMIT 50) AS sample",
            self.fp.bits_of("fp"),
            self.name
        );
        let sample: Vec<i64> = value(client, &select)?;
        let sample: Vec<Option<u64>> = sample.into_iter().map(|bits| Some(bits as u64)).collect();
        let rows = self.agree(client, &probes(&sample, radii, seed))?;
        ensure!(
            rows > 0 || sample.is_empty(),
            "the probes found nothing: no test at all"
        );
        Ok(())
    }

    /// Asserts that the index returns the right rows for many radii, and that it is sound.
    pub fn holds(&self, client: &mut impl GenericClient, seed: u64) -> Result<()> {
        self.answers(client, &RADII, seed)?;
        self.is_sound(client)
    }

    /// Asserts every invariant of the index, and that it contains each row of the table.
    pub fn is_sound(&self, client: &mut impl GenericClient) -> Result<()> {
        for concurrently in [false, true] {
            let check = format!(
                "SELECT neardup_index_check('{}', heap => true, concurrently => {concurrently})",
                self.index
            );
            let checked = client.query(&check, &[]);
            checked.with_context(|| format!("the check of {}", self.index))?;
        }
        Ok(())
    }
}

/// Describes the difference between two sorted lists, in a few words.
fn difference(found: &[i64], expected: &[i64]) -> String {
    let twice = found.windows(2).filter(|pair| pair[0] == pair[1]).count();
    let missing: Vec<_> = expected
        .iter()
        .filter(|id| found.binary_search(id).is_err())
        .collect();
    let wrong: Vec<_> = found
        .iter()
        .filter(|id| expected.binary_search(id).is_err())
        .collect();
    format!(
        "{} rows instead of {}; {twice} twice; {} missing, as {:?}; {} wrong, as {:?}",
        found.len(),
        expected.len(),
        missing.len(),
        &missing[..missing.len().min(5)],
        wrong.len(),
        &wrong[..wrong.len().min(5)]
    )
}
