//! Tables of fingerprints with an index.
use super::data::Probe;
use anyhow::Result;
use postgres::{Client, GenericClient};
use std::io::Write;

/// A type that can be indexed. The tests' values have 64 bits. A wide type spreads these bits over
/// all its words, so that the distance of two values equals the distance of their bits.
#[derive(Clone, Copy, Debug)]
pub struct Type {
    pub name: &'static str,
    /// Operator class for indexes on the type.
    pub opclass: &'static str,
    /// Number of 64-bit words of a value.
    words: usize,
    /// Radius of the operator `~=`, in bits.
    pub near: i32,
}

pub const FINGERPRINT: Type = Type {
    name: "fingerprint",
    opclass: "fingerprint_ops",
    words: 1,
    near: 6,
};
pub const BIGINT: Type = Type {
    name: "bigint",
    opclass: "bigint_hamming_ops",
    words: 1,
    near: 6,
};
pub const FINGERPRINT128: Type = Type {
    name: "fingerprint128",
    opclass: "fingerprint128_ops",
    words: 2,
    near: 12,
};
pub const FINGERPRINT256: Type = Type {
    name: "fingerprint256",
    opclass: "fingerprint256_ops",
    words: 4,
    near: 31,
};
pub const TYPES: [Type; 4] = [FINGERPRINT, BIGINT, FINGERPRINT128, FINGERPRINT256];

impl Type {
    /// Returns a mask for each word of a value: those of a test value's 64 bits that the word
    /// holds. The words take the bytes in turn.
    fn masks(self) -> impl Iterator<Item = u64> {
        (0..self.words).map(move |word| {
            (0..8)
                .filter(|byte| byte % self.words == word)
                .fold(0, |mask, byte| mask | 0xff << (8 * byte))
        })
    }

    /// Returns the text form of the value with these bits.
    pub fn text(self, bits: u64) -> String {
        match self.name {
            "bigint" => (bits as i64).to_string(),
            _ => self
                .masks()
                .map(|mask| format!("{:016x}", bits & mask))
                .collect(),
        }
    }

    /// Returns an SQL literal for the value with these bits.
    pub fn literal(self, bits: u64) -> String {
        format!("'{}'::{}", self.text(bits), self.name)
    }

    /// Returns SQL for the value whose bits are the result of `bits`, an SQL expression of type
    /// bigint.
    pub fn of_bits(self, bits: &str) -> String {
        let words = self
            .masks()
            .map(|mask| format!("int8send({bits} & ({}))", mask as i64));
        match self.words {
            1 => format!("({bits})::{}", self.name),
            _ => format!(
                "({})::{}",
                words.collect::<Vec<_>>().join(" || "),
                self.name
            ),
        }
    }

    /// Returns SQL for the bits of a value, as a bigint.
    pub fn bits_of(self, value: &str) -> String {
        let words = (0..self.words).map(|word| {
            let first = 64 * word + 1;
            format!(
                "substring({value}::bit({}) FROM {first} FOR 64)::bit(64)::bigint",
                64 * self.words
            )
        });
        match self.words {
            1 => format!("{value}::bigint"),
            _ => format!("({})", words.collect::<Vec<_>>().join(" | ")),
        }
    }

    /// Returns SQL for the ball of a probe, which is its centre and radius.
    pub fn ball(self, probe: Probe) -> String {
        format!("ball({}, {})", self.literal(probe.center), probe.radius)
    }
}

/// A table with the columns `id bigint` and `fp`, and the index that is tested.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    pub name: &'static str,
    /// Name of the index in plans. For partitions, the common prefix of the index names.
    pub index: &'static str,
    pub fp: Type,
}

impl Table {
    pub const fn new(fp: Type) -> Self {
        Table {
            name: "docs",
            index: "docs_fp",
            fp,
        }
    }

    /// Makes the table with these rows, `id` counting from 0, without an index.
    pub fn create(&self, client: &mut Client, values: &[Option<u64>]) -> Result<()> {
        let Table { name, fp, .. } = self;
        client.batch_execute(&format!(
            "DROP TABLE IF EXISTS {name}; CREATE TABLE {name} (id bigint, fp {})",
            fp.name
        ))?;
        self.append(client, 0, values)
    }

    /// Adds rows whose `id` counts from `first`.
    pub fn append(&self, client: &mut Client, first: i64, values: &[Option<u64>]) -> Result<()> {
        let mut text = String::new();
        for (id, value) in (first..).zip(values) {
            let value = value.map_or("\\N".to_owned(), |bits| self.fp.text(bits));
            text += &format!("{id}\t{value}\n");
        }
        let mut copy = client.copy_in(&format!("COPY {} (id, fp) FROM STDIN", self.name))?;
        copy.write_all(text.as_bytes())?;
        copy.finish()?;
        Ok(())
    }

    /// Returns the command that makes the index, with options such as `radius = 3, blocks = 5`.
    pub fn index_command(&self, options: &str) -> String {
        let Table { name, index, fp } = self;
        let with = match options {
            "" => String::new(),
            options => format!(" WITH ({options})"),
        };
        format!(
            "CREATE INDEX {index} ON {name} USING neardup (fp {}){with}",
            fp.opclass
        )
    }

    /// Makes the table with these rows, and then the index.
    pub fn create_indexed(
        &self,
        client: &mut Client,
        values: &[Option<u64>],
        options: &str,
    ) -> Result<()> {
        self.create(client, values)?;
        client.batch_execute(&self.index_command(options))?;
        Ok(())
    }
}

/// Returns the first column of the only row of a query. Any other number of rows is an error.
pub fn value<T>(client: &mut impl GenericClient, query: &str) -> Result<T>
where
    T: for<'a> postgres::types::FromSql<'a>,
{
    Ok(client.query_one(query, &[])?.try_get(0)?)
}
