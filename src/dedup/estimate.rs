//! Relation between the distance of two fingerprints and the similarity of their texts.
//!
//! That depends on the function that made them. The catalog knows it where a generated column or
//! an index has an expression that calls it.
use core::ffi::CStr;

use pgrx::pg_sys;

use crate::planner::catalog::catalog;
use neardup_pg::catalog::base_type;
use neardup_pg::rel::Rel;
use neardup_pg::spi;
use neardup_pg::value::Value;

/// Relation between the distance of two fingerprints and a similarity.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Estimate {
    /// `minhash64` or `minhash128` made the fingerprints.
    Defined,
    /// The distance says nothing about a similarity, for this reason.
    Undefined(&'static str),
    /// The application made the fingerprints. Only the caller knows how.
    Unknown,
}

/// Result of [`FUNCTIONS_OF_COLUMN`] and [`FUNCTIONS_OF_INDEX`] if all functions are minhash64 or
/// minhash128. It is 0 if there are none; those of simhash have another bit.
const MINHASH: i64 = 1;

/// The functions that the expression of a column (table $1, number $2) calls, of those in the
/// library of function $3.
const FUNCTIONS_OF_COLUMN: &CStr = c"SELECT pg_catalog.bit_or(
    CASE WHEN pg_catalog.starts_with(f.proname::pg_catalog.text, 'minhash') THEN 1 ELSE 2 END)
    FROM pg_catalog.pg_attrdef AS e, pg_catalog.pg_depend AS d, pg_catalog.pg_proc AS f,
        pg_catalog.pg_proc AS own
    WHERE e.adrelid OPERATOR(pg_catalog.=) $1 AND e.adnum OPERATOR(pg_catalog.=) $2
    AND d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_attrdef'::pg_catalog.regclass
    AND d.objid OPERATOR(pg_catalog.=) e.oid
    AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass
    AND d.refobjid OPERATOR(pg_catalog.=) f.oid AND own.oid OPERATOR(pg_catalog.=) $3
    AND f.probin OPERATOR(pg_catalog.=) own.probin
    AND f.proname::pg_catalog.text OPERATOR(pg_catalog.=)
        ANY ('{minhash64,minhash128,simhash,simhash128}'::pg_catalog.text[])";

/// The functions that the expressions of an index $1 call, of those in the library of function $2.
const FUNCTIONS_OF_INDEX: &CStr = c"SELECT pg_catalog.bit_or(
    CASE WHEN pg_catalog.starts_with(f.proname::pg_catalog.text, 'minhash') THEN 1 ELSE 2 END)
    FROM pg_catalog.pg_depend AS d, pg_catalog.pg_proc AS f, pg_catalog.pg_proc AS own
    WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
    AND d.objid OPERATOR(pg_catalog.=) $1
    AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass
    AND d.refobjid OPERATOR(pg_catalog.=) f.oid AND own.oid OPERATOR(pg_catalog.=) $2
    AND f.probin OPERATOR(pg_catalog.=) own.probin
    AND f.proname::pg_catalog.text OPERATOR(pg_catalog.=)
        ANY ('{minhash64,minhash128,simhash,simhash128}'::pg_catalog.text[])";

impl Estimate {
    /// The estimate of the values in an index on fingerprints, whose expressions are loaded.
    /// `function` is one of the extension's.
    pub fn of_index(function: pg_sys::Oid, table: Rel, index: Rel) -> Self {
        let form = index.index_form();
        let (columns, of_expressions) = match form.columns.last() {
            Some(0) | None => (
                index.columns_of_last_expression(),
                functions_of_index(function, index),
            ),
            Some(&column) => (vec![column], 0),
        };
        let columns = columns.into_iter().filter(|&column| column > 0);
        let functions = columns.fold(of_expressions, |functions, column| {
            functions | functions_of_column(function, table, column)
        });
        let input = index.key_class(form.key_columns - 1).input;
        let catalog = catalog(function);
        let ball = catalog.as_ref().and_then(|catalog| catalog.by_ball(input));
        Self::new(functions, ball.map_or(input, |searched| searched.value))
    }

    /// The estimate of the fingerprints in a table's column.
    pub fn of_column(function: pg_sys::Oid, table: Rel, column: i16) -> Self {
        let value_type = base_type(table.attribute(column).atttypid);
        Self::new(functions_of_column(function, table, column), value_type)
    }

    /// The estimate of values of a type that these functions made.
    fn new(functions: i64, value_type: pg_sys::Oid) -> Self {
        match functions {
            MINHASH => Estimate::Defined,
            0 if value_type == pg_sys::INT8OID => Estimate::Undefined(
                "The distance of values of type bigint does not estimate a similarity.",
            ),
            0 => Estimate::Unknown,
            _ => Estimate::Undefined(
                "Its fingerprints are made by simhash, whose distance does not estimate a \
                 similarity.",
            ),
        }
    }
}

/// The functions that the expressions of an index call.
fn functions_of_index(function: pg_sys::Oid, index: Rel) -> i64 {
    let parameters = [Value::oid(index.oid()), Value::oid(function)];
    called(FUNCTIONS_OF_INDEX, &parameters)
}

/// The functions that the expression of a column calls; none unless it is generated.
fn functions_of_column(function: pg_sys::Oid, table: Rel, column: i16) -> i64 {
    if !table.is_generated(column) {
        return 0;
    }
    let parameters = [
        Value::oid(table.oid()),
        Value::int4(column.into()),
        Value::oid(function),
    ];
    called(FUNCTIONS_OF_COLUMN, &parameters)
}

fn called(statement: &CStr, parameters: &[Value]) -> i64 {
    let functions = spi::value(statement, parameters);
    functions
        .and_then(|found| found.get().integer())
        .unwrap_or(0)
}
