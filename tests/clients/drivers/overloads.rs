//! Calls of overloaded functions, with the parameter types that drivers send.
//!
//! A call must return the same as with typed literals. Drivers that cannot run here are replayed:
//! the types are part of the Parse message.
use super::programs::{Call, Value, in_node, in_python};
use crate::support::Outcome;
use anyhow::{Result, bail, ensure};
use neardup_tests::Database;
use postgres::Client;
use postgres::types::private::BytesMut;
use postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use std::error::Error;

use Value::{Number, Text};

const BODY: &str = "one two three four five six seven eight nine ten";
const FP: &str = "0123456789abcdef";
const NEAR: &str = "0123456789abcde0";
const FP128: &str = "0123456789abcdef0123456789abcdef";
const FP256: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

const SIG: &str = "neardup1/16/0/00000001000000010000000100000001000000010000000100000001\
    000000010000000100000001000000010000000100000001000000010000000100000001";

/// Calls, their values, and the same calls with typed literals.
const CALLS: &[(&str, &[Value], &str)] = &[
    (
        "passages($1, $2)",
        &[Text(BODY), Number("9")],
        "passages('one two three four five six seven eight nine ten'::text, 9::integer)",
    ),
    (
        "passages($1)",
        &[Text(BODY)],
        "passages('one two three four five six seven eight nine ten'::text)",
    ),
    (
        "simhash($1, $2)",
        &[Text(BODY), Text("char")],
        "simhash('one two three four five six seven eight nine ten'::text, 'char'::text)",
    ),
    (
        "simhash128($1, $2, $3, $4)",
        &[Text(BODY), Text("char"), Number("5"), Text("log")],
        "simhash128('one two three four five six seven eight nine ten'::text, 'char'::text, \
         5::integer, 'log'::text)",
    ),
    (
        "minhash64($1, $2, $3)",
        &[Text(BODY), Text("char"), Number("5")],
        "minhash64('one two three four five six seven eight nine ten'::text, 'char'::text, \
         5::integer)",
    ),
    (
        "minhash128($1, $2, $3)",
        &[Text(BODY), Text("char"), Number("5")],
        "minhash128('one two three four five six seven eight nine ten'::text, 'char'::text, \
         5::integer)",
    ),
    (
        "minhash($1, $2, $3)",
        &[Text(BODY), Text("char"), Number("5")],
        "minhash('one two three four five six seven eight nine ten'::text, 'char'::text, \
         5::integer)",
    ),
    (
        "ball($1, $2)",
        &[Text(FP), Number("3")],
        "ball('0123456789abcdef'::fingerprint, 3::integer)",
    ),
    (
        "ball($1::fingerprint128, $2)",
        &[Text(FP128), Number("3")],
        "ball(repeat('0123456789abcdef', 2)::fingerprint128, 3::integer)",
    ),
    (
        "neardup_tune($1, $2)",
        &[Number("0.8"), Number("0.9")],
        "neardup_tune(0.8::float8, 0.9::float8)",
    ),
    (
        "neardup_keys($1, $2)",
        &[Text(FP), Number("3")],
        "neardup_keys('0123456789abcdef'::fingerprint, 3::integer)",
    ),
    (
        "neardup_keys($1, $2, $3)",
        &[Text(FP128), Number("3"), Number("5")],
        "neardup_keys(repeat('0123456789abcdef', 2)::fingerprint128, 3::integer, 5::integer)",
    ),
    (
        "neardup_band_keys($1, $2, $3)",
        &[Text(FP128), Number("4"), Number("16")],
        "neardup_band_keys(repeat('0123456789abcdef', 2)::fingerprint128, 4::integer, 16::integer)",
    ),
    (
        "neardup_keys($1, $2)",
        &[Text(FP256), Number("3")],
        "neardup_keys(repeat('0123456789abcdef', 4)::fingerprint256, 3::integer)",
    ),
    (
        "fingerprint_similarity($1, $2)",
        &[Text(FP), Text(NEAR)],
        "fingerprint_similarity('0123456789abcdef'::fingerprint, '0123456789abcde0'::fingerprint)",
    ),
    (
        "fingerprint_similarity($1, $2)",
        &[Text(FP128), Text(FP128)],
        "1::float8",
    ),
    (
        "minhash_ball($1::minhash_signature, $2)",
        &[Text(SIG), Number("0.5")],
        "minhash_ball(('neardup1/16/0/' || repeat('00000001', 16))::minhash_signature, \
         0.5::float8)",
    ),
    (
        "neardup_radius($1, $2)",
        &[Text("minhash64"), Number("0.8")],
        "neardup_radius('minhash64'::text, 0.8::float8)",
    ),
];

/// Types that a driver gives to the parameters of a call.
struct Driver {
    name: &'static str,
    text: Type,
    integer: Type,
    fraction: Type,
}

const DRIVERS: [Driver; 8] = [
    Driver {
        name: "psycopg",
        text: Type::UNKNOWN,
        integer: Type::INT2,
        fraction: Type::FLOAT8,
    },
    Driver {
        name: "asyncpg, node-postgres, pgx, tokio-postgres",
        text: Type::UNKNOWN,
        integer: Type::UNKNOWN,
        fraction: Type::UNKNOWN,
    },
    Driver {
        name: "pgx, QueryExecModeExec and int32",
        text: Type::TEXT,
        integer: Type::INT4,
        fraction: Type::FLOAT8,
    },
    Driver {
        name: "JDBC",
        text: Type::VARCHAR,
        integer: Type::INT4,
        fraction: Type::FLOAT8,
    },
    Driver {
        name: "JDBC, stringtype=unspecified",
        text: Type::UNKNOWN,
        integer: Type::INT4,
        fraction: Type::FLOAT8,
    },
    Driver {
        name: "JDBC, setShort and setBigDecimal",
        text: Type::VARCHAR,
        integer: Type::INT2,
        fraction: Type::NUMERIC,
    },
    Driver {
        name: "Npgsql",
        text: Type::TEXT,
        integer: Type::INT4,
        fraction: Type::FLOAT8,
    },
    Driver {
        name: "Npgsql, short and decimal",
        text: Type::TEXT,
        integer: Type::INT2,
        fraction: Type::NUMERIC,
    },
];

/// Value in the binary form of the type that the server reports.
#[derive(Debug)]
struct Sent<'a>(&'a str);

impl ToSql for Sent<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match *ty {
            Type::INT2 => self.0.parse::<i16>()?.to_sql(ty, out),
            Type::INT4 => self.0.parse::<i32>()?.to_sql(ty, out),
            Type::INT8 => self.0.parse::<i64>()?.to_sql(ty, out),
            Type::FLOAT8 => self.0.parse::<f64>()?.to_sql(ty, out),
            Type::NUMERIC => {
                // One group of four digits after the decimal point.
                let fraction = (self.0.strip_prefix("0.").unwrap_or_default()).to_owned() + "000";
                let group = fraction.get(..4).unwrap_or_default().parse::<i16>()?;
                for field in [1, -1, 0, 4, group] {
                    out.extend_from_slice(&field.to_be_bytes());
                }
                Ok(IsNull::No)
            }
            Type::TEXT | Type::VARCHAR => self.0.to_sql(ty, out),
            _ => Err(format!("the server asks for the type {ty}").into()),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// Result of a call as text, with the types of a driver.
fn replayed(client: &mut Client, call: &str, values: &[Value], driver: &Driver) -> Result<String> {
    let types: Vec<Type> = (values.iter())
        .map(|value| match value {
            Text(_) => driver.text.clone(),
            Number(number) if number.contains('.') => driver.fraction.clone(),
            Number(_) => driver.integer.clone(),
        })
        .collect();
    let statement = client.prepare_typed(&format!("SELECT ({call})::text"), &types)?;
    let sent: Vec<Sent> = (values.iter())
        .map(|value| match value {
            Text(text) | Number(text) => Sent(text),
        })
        .collect();
    let parameters: Vec<&(dyn ToSql + Sync)> = sent.iter().map(|it| it as _).collect();
    Ok(client.query_one(&statement, &parameters)?.get(0))
}

/// Drivers send a type without a binary form as text: `$1::minhash_signature` is a text first.
fn casts_come_from_text(call: &str) -> String {
    call.replace("$1::", "$1::text::")
}

fn expected(client: &mut Client, literal: &str) -> Result<String> {
    Ok(client
        .query_one(&format!("SELECT ({literal})::text"), &[])?
        .get(0))
}

#[test]
fn replayed_types_choose_the_right_function() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    for (call, values, literal) in CALLS {
        let expected = expected(&mut client, literal)?;
        let call = casts_come_from_text(call);
        for driver in &DRIVERS {
            match replayed(&mut client, &call, values, driver) {
                Ok(found) => ensure!(found == expected, "{}, {call}: {found}", driver.name),
                Err(error) => bail!("{}, {call}: {error:?}", driver.name),
            }
        }
    }
    Ok(())
}

/// A long of JDBC and Npgsql, or an int of Go in pgx without prepared statements.
#[test]
fn a_bigint_is_refused_or_means_the_same() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let driver = Driver {
        name: "bigint",
        text: Type::TEXT,
        integer: Type::INT8,
        fraction: Type::FLOAT8,
    };
    for (call, values, literal) in CALLS {
        let expected = expected(&mut client, literal)?;
        let call = casts_come_from_text(call);
        match replayed(&mut client, &call, values, &driver) {
            Ok(found) => ensure!(found == expected, "{call}: {found}"),
            Err(error) => {
                let code = error
                    .downcast_ref::<postgres::Error>()
                    .and_then(|it| it.code());
                ensure!(
                    code.is_some_and(|it| it.code() == "42883"),
                    "{call}: {error:?}"
                );
            }
        }
        let cast = call
            .replace("$2", "$2::integer")
            .replace("$3", "$3::integer");
        if values
            .iter()
            .skip(1)
            .all(|it| matches!(it, Number(n) if !n.contains('.')))
        {
            let found = replayed(&mut client, &cast, values, &driver)?;
            ensure!(found == expected, "{cast}: {found}");
        }
    }
    Ok(())
}

/// Compares the results of a driver that runs here.
fn compare(driver: &str, database: &Database, results: Option<Vec<Option<String>>>) -> Outcome {
    let mut client = database.connect()?;
    for ((call, _, literal), result) in CALLS.iter().zip(results.unwrap_or_default()) {
        let expected = expected(&mut client, literal)?;
        ensure!(
            result.as_ref() == Some(&expected),
            "{driver}, {call}: {result:?}"
        );
    }
    Ok(())
}

fn calls(change: fn(&str) -> String) -> Vec<Call<'static>> {
    (CALLS.iter())
        .map(|(call, values, _)| Call {
            query: format!("SELECT ({})::text", change(call)),
            values: values.to_vec(),
        })
        .collect()
}

fn by_python(driver: &str) -> Outcome {
    let database = Database::create()?;
    let results = in_python(&database, &calls(str::to_owned), driver)?;
    compare(driver, &database, results)
}

#[test]
fn psycopg_chooses_the_right_function_with_text() -> Outcome {
    by_python("psycopg-text")
}

#[test]
fn psycopg_chooses_the_right_function_in_binary() -> Outcome {
    by_python("psycopg-binary")
}

#[test]
fn asyncpg_chooses_the_right_function() -> Outcome {
    by_python("asyncpg")
}

#[test]
fn node_postgres_chooses_the_right_function() -> Outcome {
    let database = Database::create()?;
    let results = in_node(&database, &calls(str::to_owned))?;
    compare("node-postgres", &database, results)
}
