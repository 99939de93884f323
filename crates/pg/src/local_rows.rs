//! Tables whose rows another engine keeps: Citus in shards, a foreign server on its own disks.
//!
//! Such a table has a relation here, and may have an index here, but no rows: whatever reads them
//! past the executor would report that there is nothing, or what was there before.
use core::ffi::CStr;
use std::ffi::CString;

use pgrx::{PgSqlErrorCode, pg_sys};

use super::catalog::{self, Named, relation_kind, relation_name};
use super::errors::UserError;
use super::spi;
use super::value::Value;

/// Keeper of the rows of a table that are not here.
enum Engine {
    Citus,
    /// A foreign server, by its name.
    Server(CString),
}

/// Reader of a table's rows, by which an error says how to read them where they are.
#[derive(Clone, Copy)]
pub enum Reader {
    /// A function over a whole table.
    WholeTable,
    /// A function over an index.
    Index,
    /// `neardup_remark`.
    Marks,
    /// The trigger `neardup_dedup`.
    Trigger,
}

/// Raises error 0A000 for a table whose rows this server does not keep. Partitioned tables and
/// views pass: a caller may know what to do with their parts.
pub fn require(table: pg_sys::Oid, reader: Reader) {
    let Some(engine) = engine(table) else {
        return;
    };
    let detail = match reader {
        Reader::Trigger => "The trigger neardup_dedup looks rows up in an index of its table.",
        _ => "This function reads a table, or an index, of the server that it runs on.",
    };
    let name = relation_name(table);
    let (message, hint) = match &engine {
        Engine::Citus => (
            format!("the rows of table \"{name}\" are in shards of Citus"),
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

/// The statement that does a reader's work on each shard of a table.
fn on_shards(table: pg_sys::Oid, reader: Reader) -> String {
    let call = match reader {
        Reader::Trigger => {
            return "Make the trigger on the shards, where it sees the rows of its shard.".into();
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
        "Call it on each shard, for what is within it: SELECT * FROM run_command_on_shards({name}, \
         $$SELECT {call}$$). A shard's own name will do on its server."
    )
}

/// The statement that does a reader's work on a foreign server.
fn on_server(server: &CStr, table: &str, reader: Reader) -> String {
    let table = literal(table.into());
    let (call, columns) = match reader {
        Reader::Trigger => return "Make the trigger on that server.".to_owned(),
        Reader::Marks => (format!("neardup_remark({table})"), "(changed bigint)"),
        // A foreign table has no index.
        Reader::WholeTable | Reader::Index => (
            format!("* FROM neardup_pairs_by_key(NULL::bigint, {table}, 6, key => 'id')"),
            "(a bigint, b bigint, distance int)",
        ),
    };
    let server = literal(server.to_bytes().to_vec());
    format!(
        "Call it on that server, by the name that the table has there: SELECT * FROM \
         dblink({server}, $$SELECT {call}$$) AS r {columns}."
    )
}

/// Finds out what keeps the rows of a table; `None`: this server does.
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

/// Returns whether Citus keeps a table's rows in shards: those of distributed, reference, single
/// shard and managed local tables alike. A shard is a table of its own, which is not listed.
fn is_citus_table(table: pg_sys::Oid) -> bool {
    // Everybody may read it. On coordinators and workers it lists tables, and never shards.
    const LISTED: &CStr = c"SELECT EXISTS (SELECT FROM pg_catalog.pg_dist_partition
        WHERE logicalrelid OPERATOR(pg_catalog.=) $1)";
    let schema = pg_sys::Oid::from_u32(pg_sys::PG_CATALOG_NAMESPACE);
    // Nobody but a superuser can put a table into this schema, and Citus is what does.
    catalog::find(schema, c"pg_dist_partition", Named::Relation).is_some()
        && spi::value(LISTED, &[Value::oid(table)]).is_some_and(|found| found.get().as_bool())
}

/// A name as an SQL literal.
fn literal(name: Vec<u8>) -> String {
    let literal = catalog::literal(&CString::new(name).unwrap_or_default());
    String::from_utf8_lossy(&literal).into_owned()
}
