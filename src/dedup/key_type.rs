//! SQL type of keys that identify rows in the results of `neardup_pairs_by_key`,
//! `neardup_clusters_by_key` and `neardup_components`.
use core::ffi::CStr;

use pgrx::{PgSqlErrorCode, pg_sys};

use neardup_pg::catalog;
use neardup_pg::errors::UserError;
use neardup_pg::fmgr::Call;
use neardup_pg::server;
use neardup_pg::spi;
use neardup_pg::value::Value;

/// SQL type of the keys in a function's result, chosen by the caller.
#[derive(Clone, Copy)]
pub struct KeyType(pg_sys::Oid);

impl KeyType {
    /// Returns the type of argument `n`, which is polymorphic. Raises an error for a pseudo-type.
    pub fn from_argument(call: &Call, n: usize) -> Self {
        let oid = call.parameter(n).type_oid;
        if catalog::is_pseudo_type(oid) {
            UserError::new(
                PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
                format!("keys cannot be of type {}", catalog::type_name(oid)),
            )
            .hint(
                "To use several columns as the key, create a type: CREATE TYPE k AS (site text, nr \
                 int).",
            )
            .raise();
        }
        KeyType(oid)
    }

    pub fn new(oid: pg_sys::Oid) -> Self {
        KeyType(oid)
    }

    pub fn oid(self) -> pg_sys::Oid {
        self.0
    }

    /// Returns SQL that converts an expression to this type. The SQL contains COALESCE, in which
    /// the server does not allow an expression that returns a set.
    pub fn sql(self, expression: &[u8]) -> Vec<u8> {
        let name = server::format_type_be(self.0).unwrap_or_default();
        [
            b"COALESCE((",
            expression,
            b"), NULL::",
            name.to_bytes(),
            b")",
        ]
        .concat()
    }

    /// Raises error 42804 unless the type `own` is this type or has an implicit cast to it. `what`
    /// describes the values of type `own` in the error.
    pub fn require(self, what: &str, own: pg_sys::Oid) {
        const CAST: &CStr = c"SELECT EXISTS (SELECT FROM pg_catalog.pg_cast
            WHERE castsource OPERATOR(pg_catalog.=) $1 AND casttarget OPERATOR(pg_catalog.=) $2
            AND castcontext OPERATOR(pg_catalog.=) 'i')";
        let base = catalog::base_type(own);
        // The parser calls the function of an implicit cast with the rights of the caller, so the
        // table's owner must not be able to write that function.
        let has_cast = || {
            if ![base, self.0].into_iter().all(catalog::is_base_type) {
                return false;
            }
            let found = spi::value(CAST, &[Value::oid(base), Value::oid(self.0)]);
            found.is_some_and(|found| found.get().as_bool())
        };
        if own == self.0 || base == self.0 || has_cast() {
            return;
        }
        let [own, wanted] = [own, self.0].map(catalog::type_name);
        UserError::new(
            PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
            format!("{what} is of type {own}, not {wanted}"),
        )
        .detail(
            "The key columns of the result have the type of the argument \"key_type\". The default \
             is bigint.",
        )
        .hint(format!(
            "Pass NULL::{own} as the first argument, \"key_type\"."
        ))
        .raise()
    }

    /// Returns the operator `<` of this type as `OPERATOR(schema.name)`. Raises an error if the
    /// type has none.
    pub fn less_than(self) -> Vec<u8> {
        let (_, less_than) = catalog::default_operators(self.0);
        less_than
            .and_then(catalog::operator_text)
            .unwrap_or_else(|| {
                UserError::new(
                    PgSqlErrorCode::ERRCODE_UNDEFINED_FUNCTION,
                    format!(
                        "could not identify an ordering operator for type {}",
                        catalog::type_name(self.0)
                    ),
                )
                .detail("neardup sorts the keys, so that repeated calls return the same result.")
                .hint("Use a key whose type has a default btree operator class.")
                .raise()
            })
    }
}
