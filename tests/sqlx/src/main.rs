//! The example of docs/clients.md with sqlx. The environment names the server.
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::{
    PgArgumentBuffer, PgConnectOptions, PgConnection, PgHasArrayType, PgTypeInfo, PgValueFormat,
    PgValueRef,
};
use sqlx::{ConnectOptions, Decode, Encode, Postgres, Type};

/// A value of the type `fingerprint`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Fingerprint(u64);

impl Type<Postgres> for Fingerprint {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_name("fingerprint")
    }
}

impl PgHasArrayType for Fingerprint {
    fn array_type_info() -> PgTypeInfo {
        PgTypeInfo::array_of("fingerprint")
    }
}

impl Encode<'_, Postgres> for Fingerprint {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        buffer.extend_from_slice(&self.0.to_be_bytes());
        Ok(IsNull::No)
    }
}

impl Decode<'_, Postgres> for Fingerprint {
    fn decode(value: PgValueRef<'_>) -> Result<Self, BoxDynError> {
        Ok(Self(match value.format() {
            PgValueFormat::Binary => u64::from_be_bytes(value.as_bytes()?.try_into()?),
            PgValueFormat::Text => u64::from_str_radix(value.as_str()?, 16)?,
        }))
    }
}

async fn run(connection: &mut PgConnection) -> Result<(), BoxDynError> {
    let create = "CREATE TEMP TABLE page (id bigint, fp fingerprint)";
    sqlx::raw_sql(create).execute(&mut *connection).await?;
    let fp = Fingerprint(0x0123_4567_89ab_cdef);
    for (id, fp) in [(1_i64, Some(fp)), (2, Some(Fingerprint(!fp.0))), (3, None)] {
        let insert = sqlx::query("INSERT INTO page VALUES ($1, $2)")
            .bind(id)
            .bind(fp);
        insert.execute(&mut *connection).await?;
    }
    let query = "SELECT id, fp, fp <~> $1 FROM page WHERE fp <~> $1 <= $2";
    let found: Vec<(i64, Option<Fingerprint>, i32)> = sqlx::query_as(query)
        .bind(Fingerprint(fp.0 ^ 1))
        .bind(6)
        .fetch_all(&mut *connection)
        .await?;
    assert_eq!(found, [(1, Some(fp), 1)]);
    let among: Vec<(i64,)> = sqlx::query_as("SELECT id FROM page WHERE fp = ANY ($1)")
        .bind(vec![fp])
        .fetch_all(&mut *connection)
        .await?;
    assert_eq!(among, [(1,)]);
    // As text, too.
    let text = sqlx::raw_sql("SELECT fp FROM page ORDER BY id");
    let rows = text.fetch_all(&mut *connection).await?;
    let fps: Result<Vec<Option<Fingerprint>>, _> =
        rows.iter().map(|row| sqlx::Row::try_get(row, 0)).collect();
    assert_eq!(fps?, [Some(fp), Some(Fingerprint(!fp.0)), None]);
    Ok(())
}

fn main() -> Result<(), BoxDynError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut connection = PgConnectOptions::new().connect().await?;
        run(&mut connection).await
    })
}
