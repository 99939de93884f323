//! The Rust code of docs/clients.md. This file has a copy of it and runs it.
use crate::clients::examples::{code, document};
use crate::support::Outcome;
use anyhow::ensure;
use bytes::BytesMut;
use neardup_sketch::{Sketcher, TextOptions};
use neardup_tests::Database;
use std::error::Error;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, NoTls};

/// A value of the type `fingerprint`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Fingerprint(u64);

impl<'a> FromSql<'a> for Fingerprint {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(u64::from_be_bytes(raw.try_into()?)))
    }

    fn accepts(of: &Type) -> bool {
        of.name() == "fingerprint"
    }
}

impl ToSql for Fingerprint {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(&self.0.to_be_bytes());
        Ok(IsNull::No)
    }

    fn accepts(of: &Type) -> bool {
        of.name() == "fingerprint"
    }

    to_sql_checked!();
}

async fn search(client: &Client, body: &str) -> anyhow::Result<Vec<(i64, i32)>> {
    let mut sketcher = Sketcher::new(TextOptions::SET);
    let Some(bits) = sketcher.minhash64(body, &mut || ()) else {
        return Ok(Vec::new());
    };
    let query = "SELECT id, fp <~> $1 FROM page WHERE fp <~> $1 <= $2 ORDER BY fp <~> $1, id";
    let rows = client.query(query, &[&Fingerprint(bits), &6_i32]).await?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

#[test]
fn tokio_postgres_has_a_type() -> Outcome {
    let database = Database::create()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(database.conninfo(), NoTls).await?;
        let connection = tokio::spawn(connection);
        let create = "CREATE TABLE page (id bigint, body text, \
                      fp fingerprint GENERATED ALWAYS AS (minhash64(body)) STORED); \
                      INSERT INTO page VALUES (1, 'The library reopens on Monday.'), \
                      (2, 'The LIBRARY reopens on Monday!'), (3, 'Rain is expected.'), (4, NULL)";
        client.batch_execute(create).await?;
        let found = search(&client, "The library reopens on Monday").await?;
        assert_eq!(found, [(1, 0), (2, 0)]);
        assert_eq!(search(&client, "?!").await?, []);
        let all = "SELECT array_agg(fp ORDER BY id) FROM page";
        let fps: Vec<Option<Fingerprint>> = client.query_one(all, &[]).await?.get(0);
        assert_eq!((fps[0], fps[3]), (fps[1], None));
        let among = "SELECT count(*) FROM page WHERE fp = ANY ($1)";
        let count: i64 = client.query_one(among, &[&fps]).await?.get(0);
        assert_eq!(count, 3);
        drop(client);
        connection.await??;
        Ok(())
    })
}

#[test]
fn document_has_this_code() -> Outcome {
    let document = document()?;
    for (section, source) in [
        ("tokio-postgres", include_str!("rust.rs")),
        ("sqlx", include_str!("../sqlx/src/main.rs")),
    ] {
        let blocks = code(&document, section, "rust");
        ensure!(!blocks.is_empty(), "no code under {section}");
        for block in blocks {
            ensure!(
                source.contains(&block),
                "{section}: not in its test:\n{block}"
            );
        }
    }
    Ok(())
}
