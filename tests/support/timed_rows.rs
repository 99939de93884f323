//! Rows that are near-duplicates only if their times are near, with each type of times and values.
use super::Outcome;
use super::data::Random;
use postgres::Client;

/// Column of times or ranges, with the options of the trigger and the arguments of functions that
/// use it.
#[derive(Clone, Copy)]
pub struct Times {
    /// Type and default of the column `at`.
    pub column: &'static str,
    pub options: &'static str,
    /// Arguments of the functions for whole tables.
    pub arguments: &'static str,
    /// SQL expression for a random value. `{n}` is a number from 0 to 999.
    pub value: &'static str,
    /// Condition that the times of the rows `k` and `t` are near.
    pub near: &'static str,
}

const NEAR_TIMES: &str = "CASE WHEN isfinite(k.at) AND isfinite(t.at) \
    THEN k.at - t.at BETWEEN interval '-36 hours' AND interval '36 hours' ELSE k.at = t.at END";

pub const TIMES: [Times; 6] = [
    Times {
        column: "timestamptz",
        options: "'time=at', 'within=1 day 12 hours'",
        arguments: "row_time => 'at', within => '1 day 12 hours'",
        value: "CASE {n} % 25 WHEN 0 THEN 'infinity' WHEN 1 THEN '-infinity' WHEN 2 THEN NULL \
                ELSE timestamptz '2024-03-20' + {n} * interval '30 minutes' END",
        near: NEAR_TIMES,
    },
    Times {
        column: "timestamp",
        options: "'time=at', 'within=36:00'",
        arguments: "row_time => 'at::timestamptz', within => '36:00'",
        value: "CASE {n} % 25 WHEN 0 THEN 'infinity' WHEN 1 THEN '-infinity' WHEN 2 THEN NULL \
                ELSE timestamp '1999-12-25' + {n} * interval '30 minutes' END",
        near: NEAR_TIMES,
    },
    Times {
        column: "date",
        options: "'time=at', 'within=3 days'",
        arguments: "row_time => 'at', within => '72:00'",
        value: "CASE {n} % 25 WHEN 0 THEN 'infinity' WHEN 1 THEN '-infinity' WHEN 2 THEN NULL \
                ELSE date '2023-12-25' + {n} / 20 END",
        near: "CASE WHEN isfinite(k.at) AND isfinite(t.at) THEN abs(k.at - t.at) <= 3 \
               ELSE k.at = t.at END",
    },
    Times {
        column: "tstzrange",
        options: "'time=at'",
        arguments: "row_time => 'at'",
        value: "CASE {n} % 25 WHEN 0 THEN tstzrange('2024-03-21', NULL) WHEN 1 THEN 'empty' \
                WHEN 2 THEN NULL WHEN 3 THEN tstzrange('2024-03-22', 'infinity', '[]') \
                ELSE tstzrange(timestamptz '2024-03-20' + {n} * interval '30 minutes', \
                    timestamptz '2024-03-20' + ({n} + {n} % 50) * interval '30 minutes', \
                    substr('[)[](](]()', 1 + 2 * ({n} % 4), 2)) END",
        near: "k.at && t.at",
    },
    Times {
        column: "int8range",
        options: "'time=at'",
        arguments: "row_time => 'at'",
        value: "int8range({n} / 4, {n} / 4 + {n} % 9, '[]')",
        near: "k.at && t.at",
    },
    Times {
        column: "daterange",
        options: "'time=at'",
        arguments: "row_time => 'at'",
        value: "daterange(date '2024-01-01' + {n} / 10, date '2024-01-01' + {n} / 10 + {n} % 6)",
        near: "k.at && t.at",
    },
];

/// Columns of values that are compared, and the options of the index and of the trigger.
#[derive(Clone, Copy)]
pub struct Values {
    pub column: &'static str,
    pub index: &'static str,
    pub options: &'static str,
    /// Arguments of the functions for whole tables.
    pub arguments: &'static str,
    /// Condition that the rows `k` and `t` are near, at whatever time.
    pub near: &'static str,
    pub distance: &'static str,
}

pub const VALUES: [Values; 5] = [
    Values {
        column: "fp fingerprint",
        index: "fp)",
        options: "'fp', 'radius=3'",
        arguments: "radius => 3",
        near: "k.fp <#> t.fp <= 3",
        distance: "k.fp <#> t.fp",
    },
    Values {
        column: "fp bigint",
        index: "fp bigint_hamming_ops) WHERE dup IS NULL",
        options: "'fp', 'radius=3'",
        arguments: "radius => 3",
        near: "k.fp <#> t.fp <= 3",
        distance: "k.fp <#> t.fp",
    },
    Values {
        column: "fp fingerprint256",
        index: "fp)",
        options: "'fp', 'radius=3'",
        arguments: "radius => 3",
        near: "k.fp <#> t.fp <= 3",
        distance: "k.fp <#> t.fp",
    },
    Values {
        column: "fp minhash_signature GENERATED ALWAYS AS (minhash(body)) STORED",
        index: "fp)",
        options: "'fp', 'similarity=0.8'",
        arguments: "similarity => 0.8",
        near: "k.fp ~= t.fp",
        distance: "k.fp <%> t.fp",
    },
    Values {
        column: "fp fingerprint GENERATED ALWAYS AS (minhash64(body)) STORED",
        index: "fp) WHERE dup IS NULL",
        options: "'fp', 'confirm=body', 'similarity=0.8'",
        arguments: "confirm => 'body', similarity => 0.8",
        near: "k.fp <#> t.fp <= 10 AND jaccard_similarity(k.body, t.body) >= 0.8",
        distance: "k.fp <#> t.fp",
    },
];

impl Values {
    /// Returns SQL of a random value of the column `fp`, or of `body`, from which it is generated.
    pub fn value(self, random: &mut Random) -> String {
        let center = random.below(4);
        if self.column.contains("GENERATED") {
            return format!("family_text({center}, {})", random.below(4));
        }
        let bits = random.near(Random::new(center).bits(), 2);
        match self.column {
            "fp fingerprint256" => format!("'{bits:064x}'::fingerprint256"),
            "fp bigint" => format!("'{bits:016x}'::fingerprint::bigint"),
            _ => format!("'{bits:016x}'::fingerprint"),
        }
    }

    /// Column that statements write.
    pub fn written(self) -> &'static str {
        match self.column.contains("GENERATED") {
            true => "body",
            false => "fp",
        }
    }

    /// Creates the table `docs` and its index. If `partial` is false, the index has all rows, and
    /// not only originals.
    pub fn create(self, client: &mut Client, times: Times, partial: bool) -> Outcome {
        let Values { column, index, .. } = self;
        let index = match partial {
            true => index.to_owned(),
            false => index.replace(" WHERE dup IS NULL", ""),
        };
        client.batch_execute(&format!(
            "DROP TABLE IF EXISTS docs, kept; \
             CREATE TABLE docs (id int PRIMARY KEY, site int, at {}, body text, dup int, \
                {column}); \
             CREATE INDEX ON docs USING neardup (site, {index}",
            times.column
        ))?;
        Ok(())
    }

    /// Condition that the rows `k` and `t` are near-duplicates.
    pub fn near(self, times: Times) -> String {
        format!("k.site = t.site AND {} AND {}", self.near, times.near)
    }
}

/// Makes the table `kept`: goes through the rows of `rows` in key order, and keeps each row that is
/// not near a row kept before.
pub fn keep(client: &mut Client, rows: &str, near: &str) -> Outcome {
    client.batch_execute(&format!(
        "DROP TABLE IF EXISTS kept; CREATE TABLE kept AS SELECT * FROM {rows} WHERE false; \
         DO $$ DECLARE t {rows}; BEGIN FOR t IN SELECT * FROM {rows} ORDER BY id LOOP \
            INSERT INTO kept SELECT t.* WHERE NOT EXISTS (SELECT FROM kept k WHERE {near}); \
         END LOOP; END $$"
    ))?;
    Ok(())
}

/// Returns statements that insert `count` rows.
pub fn random_rows(values: Values, times: Times, count: u32, random: &mut Random) -> Vec<String> {
    (0..count)
        .map(|id| {
            let at = times.value.replace("{n}", &random.below(1000).to_string());
            let (site, value) = (random.below(2), values.value(random));
            format!(
                "INSERT INTO docs (id, site, at, {}) VALUES ({id}, {site}, {at}, {value});",
                values.written()
            )
        })
        .collect()
}

/// The values that are compared, each with every type of times.
pub fn combinations() -> impl Iterator<Item = (Values, Times)> {
    VALUES
        .into_iter()
        .flat_map(|values| TIMES.map(|times| (values, times)))
}
