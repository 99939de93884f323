//! Rejects tables whose rows another engine stores: Citus in shards, or a foreign server.
//!
//! Such a table has an entry in pg_class here, and may have an index, but no rows. A function that
//! reads it without the executor would find no rows, or rows from before the table was distributed.
use core::ffi::CStr;
use std::ffi::CString;

use pgrx::{PgSqlErrorCode, pg_sys};

use super::catalog::{self, Named, relation_kind, relation_name};
use super::errors::UserError;
use super::spi;
use super::value::Value;

/// Engine that stores the rows of a table elsewhere than in this server's table.
enum Engine {
    Citus,
    /// Foreign server with this name.
    Server(CString),
}

/// Kind of function or trigger that is about to read a table's rows. It selects the advice in the
/// error of [`require_local_rows`].
#[derive(Clone, Copy)]
pub enum Reader {
    /// A function over a whole table, such as `neardup_pairs_by_key`.
    WholeTable,
    /// A function over one index.
    Index,
    /// The function `neardup_remark`.
    Marks,
    /// The trigger `neardup_dedup`.
    Trigger,
}

/// Raises error 0A000 if another engine stores the rows of a table. The error's hint shows how to
/// run `reader` where the rows are. Accepts partitioned tables and views, because callers may
/// handle their partitions, or the tables that a view reads.
pub fn require_local_rows(table: pg_sys::Oid, reader: Reader) {
    let Some(engine) = engine(table) else {
        return;
    };
    let detail = match reader {
        Reader::Trigger => "The trigger neardup_dedup looks rows up in an index of its table.",
        _ => "This function reads only tables and indexes of the server on which it runs.",
    };
    let name = relation_name(table);
    let (message, hint) = match &engine {
        Engine::Citus => (
            format!("the rows of table \"{name}\" are in Citus shards"),
            on_shards(table, reader),
        ),
        Engine::Server(server) => (
            format!(
                "the rows of foreign table \"{name}\" are on server \"{}\"",
                server.to_string_lossy()
            ),
            on_server(server, &name, reader),
        ),
    };
    UserError::new(PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED, message)
        .detail(detail)
        .hint(hint)
        .raise()
}

/// Hint that shows how to run `reader` on each Citus shard of a table.
fn on_shards(table: pg_sys::Oid, reader: Reader) -> String {
    let call = match reader {
        Reader::Trigger => {
            return "Create the trigger on each shard, where it compares the rows of that shard."
                .into();
        }
        Reader::WholeTable => {
            "json_agg(p) FROM neardup_pairs_by_key(NULL::bigint, '%s', 6, key => 'id') p"
        }
        Reader::Index => {
            "json_agg(neardup_index_info(i.indexrelid)) FROM pg_index i \
             JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam \
             WHERE i.indrelid = '%s'::regclass AND a.amname = 'neardup'"
        }
        Reader::Marks => "neardup_remark('%s')",
    };
    let name = literal(catalog::qualified_relation(table).unwrap_or_default());
    format!(
        "Call the function on each shard, for the rows of that shard: SELECT * FROM \
         run_command_on_shards({name}, $$SELECT {call}$$). On a shard's server, you can also pass \
         the shard's own name."
    )
}

/// Hint that shows how to run `reader` on a foreign server, for the foreign table `table`.
fn on_server(server: &CStr, table: &str, reader: Reader) -> String {
    let table = literal(table.into());
    let (call, columns) = match reader {
        Reader::Trigger => return "Create the trigger on that server.".to_owned(),
        Reader::Marks => (format!("neardup_remark({table})"), "(changed bigint)"),
        // A foreign table has no index.
        Reader::WholeTable | Reader::Index => (
            format!("* FROM neardup_pairs_by_key(NULL::bigint, {table}, 6, key => 'id')"),
            "(a bigint, b bigint, distance int)",
        ),
    };
    let server = literal(server.to_bytes().to_vec());
    format!(
        "Call the function on that server, with the table's name there: SELECT * FROM \
         dblink({server}, $$SELECT {call}$$) AS r {columns}."
    )
}

/// The other engine that stores the rows of a table; `None` if this server stores them.
fn engine(table: pg_sys::Oid) -> Option<Engine> {
    if relation_kind(table) == pg_sys::RELKIND_FOREIGN_TABLE {
        const SERVER: &CStr = c"SELECT s.srvname FROM pg_catalog.pg_foreign_table t
            JOIN pg_catalog.pg_foreign_server s ON s.oid OPERATOR(pg_catalog.=) t.ftserver
            WHERE t.ftrelid OPERATOR(pg_catalog.=) $1";
        let name = spi::value(SERVER, &[Value::oid(table)]).map(|name| name.get().output());
        return Some(Engine::Server(
            CString::new(name.unwrap_or_default()).unwrap_or_default(),
        ));
    }
    is_citus_table(table).then_some(Engine::Citus)
}

/// Returns whether Citus stores a table's rows in shards: a distributed, reference, single-shard
/// or managed local table. A shard itself is a separate table, for which this returns false.
fn is_citus_table(table: pg_sys::Oid) -> bool {
    // All users may read pg_dist_partition. It lists tables on coordinators and workers, but no
    // shards.
    const LISTED: &CStr = c"SELECT EXISTS (SELECT FROM pg_catalog.pg_dist_partition
        WHERE logicalrelid OPERATOR(pg_catalog.=) $1)";
    let schema = pg_sys::Oid::from_u32(pg_sys::PG_CATALOG_NAMESPACE);
    // Only superusers can create a table in pg_catalog, so pg_dist_partition is from Citus.
    catalog::find(schema, c"pg_dist_partition", Named::Relation).is_some()
        && spi::value(LISTED, &[Value::oid(table)]).is_some_and(|found| found.get().as_bool())
}

/// A name as an SQL string literal.
fn literal(name: Vec<u8>) -> String {
    let literal = catalog::literal(&CString::new(name).unwrap_or_default());
    String::from_utf8_lossy(&literal).into_owned()
}
