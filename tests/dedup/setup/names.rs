//! Tables with names of every kind, and the statements of `neardup_setup` for them.
use crate::support::Outcome;
use crate::support::table::value;
use anyhow::{Context, Result, ensure};
use postgres::Client;

/// A table in a schema, and the extension in one.
pub struct Names {
    pub extension: &'static str,
    pub table: &'static str,
    /// Column of texts, quoted, and its type.
    pub text: &'static str,
    text_type: &'static str,
    /// The key's type, and a key from a number `{}`.
    key_type: &'static str,
    key: &'static str,
    pub search_path: &'static str,
}

pub const PLAIN: Names = Names {
    extension: "public",
    table: "docs",
    text: "body",
    text_type: "text",
    key_type: "int",
    key: "{}",
    search_path: "public",
};
/// The schemas are not in the search path, and every name needs quotes. The trigger's arguments
/// need quotes too, for commas, equals signs and quotes.
pub const ODD: Names = Names {
    extension: r#""The ext's""#,
    table: r#""My ""schema"", 1"."Docs = $neardup$ {text}""#,
    text: r#"" Body, ""text"" = \ ' ""#,
    text_type: r#""My ""schema"", 1".text_domain"#,
    key_type: r#""My ""schema"", 1".key_domain"#,
    key: "'key ' || {}",
    search_path: "''",
};
/// Names of maximum length with a common prefix.
pub const LONG: Names = Names {
    extension: "public",
    table: "ddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd",
    text: "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
    text_type: "char(200)",
    key_type: "uuid",
    key: "md5(({})::text)::uuid",
    search_path: "public",
};

/// A statement of the result.
pub struct Step {
    pub statement: String,
    pub note: String,
}

impl Names {
    /// Makes the table with rows from 1 to `rows`. Every tenth row repeats the one before.
    pub fn create(&self, client: &mut Client, rows: i32) -> Outcome {
        client.batch_execute(&format!(
            r#"CREATE SCHEMA IF NOT EXISTS "The ext's"; CREATE SCHEMA "My ""schema"", 1";
            CREATE DOMAIN "My ""schema"", 1".text_domain AS varchar(400);
            CREATE DOMAIN "My ""schema"", 1".key_domain AS text COLLATE "C" NOT NULL;
            ALTER EXTENSION neardup SET SCHEMA {extension};
            CREATE TABLE {table} ({text} {text_type}, first_page int, pages int, n int,
                id {key_type} PRIMARY KEY);
            INSERT INTO {table} ({text}, n, id)
            SELECT {words}, i, {key} FROM generate_series(1, {rows}) i;
            INSERT INTO {table} (n, id) SELECT 0, {null_key};
            SET search_path = {search_path}"#,
            extension = self.extension,
            table = self.table,
            text = self.text,
            text_type = self.text_type,
            key_type = self.key_type,
            key = self.key_of("i"),
            null_key = self.key_of("0"),
            words = words("(i - (i % 10 = 0)::int)"),
            search_path = self.search_path,
        ))?;
        Ok(())
    }

    /// The column of texts without quotes.
    fn text_name(&self) -> String {
        self.text.trim_matches('"').replace("\"\"", "\"")
    }

    pub fn key_of(&self, number: &str) -> String {
        self.key.replace("{}", number)
    }

    /// The statements of a part.
    pub fn steps(&self, client: &mut Client, action: &str, part: &str) -> Result<Vec<Step>> {
        let name = self.text_name();
        let query = format!(
            "SELECT statement, note FROM {}.neardup_setup($1::text::regclass, $2::text::name, $3) \
             WHERE part = $4 ORDER BY step",
            self.extension
        );
        let rows = client.query(&query, &[&self.table, &name, &action, &part])?;
        ensure!(!rows.is_empty(), "no statements to {part} {action}");
        let step = |row: &postgres::Row| Step {
            statement: row.get(0),
            note: row.get(1),
        };
        Ok(rows.iter().map(step).collect())
    }

    pub fn run(&self, client: &mut Client, action: &str, part: &str) -> Outcome {
        for step in self.steps(client, action, part)? {
            client
                .batch_execute(&step.statement)
                .with_context(|| step.statement.clone())?;
        }
        Ok(())
    }

    /// Columns, indexes and triggers of the table.
    pub fn definition(&self, client: &mut Client) -> Result<String> {
        value(
            client,
            &format!(
                "SELECT concat_ws(E'\\n',
                    (SELECT string_agg(concat_ws(' ', attname, atttypid::regtype, atttypmod,
                        attnotnull), E'\\n' ORDER BY attnum) FROM pg_attribute
                        WHERE attrelid = t.oid AND attnum > 0 AND NOT attisdropped),
                    (SELECT string_agg(pg_get_indexdef(indexrelid), E'\\n' ORDER BY indexrelid)
                        FROM pg_index WHERE indrelid = t.oid),
                    (SELECT string_agg(pg_get_triggerdef(oid), E'\\n' ORDER BY tgname)
                        FROM pg_trigger WHERE tgrelid = t.oid))
                 FROM pg_class t WHERE oid = $names${}$names$::regclass",
                self.table
            ),
        )
    }

    /// Column that the statements add.
    pub fn column(&self, label: &str) -> String {
        // The server shortens a name to 63 bytes.
        let kept: String = self.text_name().chars().take(62 - label.len()).collect();
        format!("\"{}_{label}\"", kept.replace('"', "\"\""))
    }

    /// Inserts a row, and returns how many were written.
    pub fn insert(
        &self,
        client: &mut Client,
        number: i32,
        text: &str,
    ) -> Result<u64, postgres::Error> {
        client.execute(
            &format!(
                "INSERT INTO {} ({}, n, id) SELECT {text}, {number}, {}",
                self.table,
                self.text,
                self.key_of(&number.to_string())
            ),
            &[],
        )
    }
}

/// Words that depend on a number, in SQL: texts of different numbers share hardly any.
pub fn words(number: &str) -> String {
    format!(
        "(SELECT string_agg(substr(md5(concat({number}, ' ', w)), 1, 5), ' ' ORDER BY w) \
         FROM generate_series(1, 30) w)"
    )
}

/// The same with another last word: a near-duplicate within a similarity of 0.8.
pub fn reworded(number: &str) -> String {
    format!("regexp_replace({}, '\\S+$', 'other')", words(number))
}
