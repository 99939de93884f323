//! Tables with the trigger, for each kind of column, and values for them.
use crate::support::data::Random;

/// A kind of column, and the declarations of an index and a trigger on it.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The type of the column `v`.
    column: &'static str,
    /// The columns of the index, and its options.
    index: &'static str,
    /// Arguments of the trigger other than the radius.
    arguments: &'static str,
    /// Radius of near-duplicates, in bits; for signatures 100 times the minimum similarity.
    pub distance: u32,
    /// The condition of near-duplicates `a` and `b`.
    pub near: &'static str,
    /// True if the table has two partitions.
    pub partitioned: bool,
    /// True if rows are compared only within their `site`.
    pub scoped: bool,
    /// Words of 64 bits in a value. With 0, the value is a text with a computed signature.
    words: usize,
    /// The radius of a second trigger, and its events.
    second: Option<(u32, &'static str)>,
}

pub const BITS: Case = Case {
    column: "fingerprint",
    index: "(v)",
    arguments: "'v'",
    distance: 3,
    near: "a.v <#> b.v <= 3",
    partitioned: false,
    scoped: false,
    words: 1,
    second: None,
};
const BITS_10: Case = Case {
    distance: 10,
    near: "a.v <#> b.v <= 10",
    ..BITS
};
pub const SIGNATURES: Case = Case {
    column: "minhash_signature",
    arguments: "'v', 'body', 'shingle=1'",
    distance: 80,
    near: "minhash_similarity(a.v, b.v) >= 0.8",
    words: 0,
    ..BITS
};
/// Two triggers for each row.
pub const TWICE: Case = Case {
    second: Some((10, "INSERT OR UPDATE")),
    near: "a.v <#> b.v <= 10",
    ..BITS
};
/// A trigger for inserts, and one for updates.
pub const BY_EVENT: Case = Case {
    second: Some((8, "UPDATE")),
    ..BITS
};

/// Common radii, and each kind of column.
pub const CASES: [Case; 13] = [
    BITS,
    Case {
        distance: 8,
        near: "a.v <#> b.v <= 8",
        ..BITS
    },
    BITS_10,
    Case {
        distance: 16,
        near: "a.v <#> b.v <= 16",
        ..BITS
    },
    Case {
        column: "fingerprint128",
        distance: 16,
        near: "a.v <#> b.v <= 16",
        words: 2,
        ..BITS
    },
    Case {
        column: "fingerprint256",
        distance: 31,
        near: "a.v <#> b.v <= 31",
        words: 4,
        ..BITS
    },
    Case {
        column: "bigint",
        index: "(v bigint_hamming_ops)",
        ..BITS_10
    },
    Case {
        index: "(site, v)",
        arguments: "'v', 'scope=site'",
        near: "a.v <#> b.v <= 10 AND a.site = b.site",
        scoped: true,
        ..BITS_10
    },
    Case {
        partitioned: true,
        ..BITS_10
    },
    SIGNATURES,
    Case {
        index: "(site, v) WITH (similarity = 0.6)",
        arguments: "'v', 'body', 'shingle=1', 'scope=site'",
        distance: 60,
        near: "minhash_similarity(a.v, b.v) >= 0.6 AND a.site = b.site",
        scoped: true,
        ..SIGNATURES
    },
    TWICE,
    BY_EVENT,
];

/// Words of a text.
const TEXT: u32 = 40;

impl Case {
    /// Returns the statements that make the table `t`, and replace an earlier one.
    pub fn schema(&self) -> String {
        let Case {
            column,
            index,
            arguments,
            ..
        } = self;
        let near = |distance: u32| match self.words {
            0 => format!("similarity={}", f64::from(distance) / 100.0),
            _ => format!("radius={distance}"),
        };
        let trigger = |name: &str, events: &str, distance: u32| {
            format!(
                "CREATE TRIGGER {name} BEFORE {events} ON t FOR EACH ROW \
                     EXECUTE FUNCTION neardup_dedup({arguments}, '{}');",
                near(distance)
            )
        };
        let (key, partitions) = match self.partitioned {
            true => (
                ") PARTITION BY HASH (id)",
                "CREATE TABLE t0 PARTITION OF t FOR VALUES WITH (MODULUS 2, REMAINDER 0); \
                 CREATE TABLE t1 PARTITION OF t FOR VALUES WITH (MODULUS 2, REMAINDER 1);",
            ),
            false => (")", ""),
        };
        let events = match self.second {
            Some((_, "UPDATE")) => "INSERT",
            _ => "INSERT OR UPDATE",
        };
        let first = trigger("dedup", events, self.distance);
        let second = (self.second)
            .map(|(distance, events)| trigger("dedup_too", events, distance))
            .unwrap_or_default();
        format!(
            "DROP TABLE IF EXISTS t; \
             CREATE TABLE t (id bigint PRIMARY KEY, \
                 site bigint NOT NULL DEFAULT 1 CHECK (site > 0), \
                 body text, v {column} {key}; {partitions} \
             CREATE INDEX t_v ON t USING neardup {index}; {first} {second}"
        )
    }

    /// The columns of the index, and its options.
    pub fn index(&self) -> &'static str {
        self.index
    }

    /// Returns the arguments of the trigger other than the radius.
    pub fn arguments(&self) -> &'static str {
        self.arguments
    }

    /// The column that stores a value.
    pub fn target(&self) -> &'static str {
        if self.words == 0 { "body" } else { "v" }
    }

    /// Returns a value of a family, `away` bits or words from its first value. The values of two
    /// families are far apart, even if their numbers are adjacent.
    pub fn value(&self, family: u64, away: u32) -> String {
        if self.words == 0 {
            // All families share half of the words, so that some hashes are equal.
            let own = (TEXT / 2..TEXT).map(|word| match word < TEXT / 2 + away {
                true => format!("f{family}a{word} "),
                false => format!("f{family}w{word} "),
            });
            let common = (0..TEXT / 2).map(|word| match away > TEXT / 2 + word {
                true => format!("f{family}a{word} "),
                false => format!("w{word} "),
            });
            return common.chain(own).collect();
        }
        let mut words: Vec<u64> = (0..self.words as u64)
            .map(|word| Random::new(family * 4 + word).bits())
            .collect();
        for bit in 0..away as usize {
            words[self.words - 1 - bit / 64] ^= 1 << (bit % 64);
        }
        match self.column {
            "bigint" => (words[0] as i64).to_string(),
            _ => words.iter().map(|word| format!("{word:016x}")).collect(),
        }
    }

    /// Distance of a near-duplicate.
    pub fn near_by(&self) -> u32 {
        if self.words == 0 { 1 } else { self.distance }
    }

    /// Smallest distance of a row that neither trigger takes for a near-duplicate.
    pub fn far_off(&self) -> u32 {
        match (self.words, self.second) {
            (0, _) => TEXT / 2,
            (_, Some((distance, _))) => distance.max(self.distance) + 1,
            (_, None) => self.distance + 1,
        }
    }

    /// Returns families far apart for each trigger. Random values of few bits may be near.
    pub fn families(&self, count: usize) -> Vec<u64> {
        let mut families: Vec<(u64, Vec<u64>)> = Vec::new();
        for family in 1.. {
            let words: Vec<u64> = (0..self.words as u64)
                .map(|word| Random::new(family * 4 + word).bits())
                .collect();
            let far = |other: &[u64]| {
                let bits = other.iter().zip(&words).map(|(a, b)| (a ^ b).count_ones());
                self.words == 0 || bits.sum::<u32>() > 16 * self.words as u32
            };
            if families.iter().all(|(_, other)| far(other)) {
                families.push((family, words));
            }
            if families.len() == count {
                break;
            }
        }
        families.into_iter().map(|(family, _)| family).collect()
    }

    pub fn insert(&self, id: usize, value: &str) -> String {
        format!(
            "INSERT INTO t (id, {}) VALUES ({id}, '{value}');",
            self.target()
        )
    }
}
