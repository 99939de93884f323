//! The index that a caller's `relation` and `column_name` stand for.
//!
//! A caller may name a neardup index, or its table. Only a table's OID lasts: `REINDEX
//! CONCURRENTLY` gives an index a new one, and a view or an SQL function stores the OID.
use core::ffi::CStr;

use pgrx::{PgSqlErrorCode, pg_sys};

use crate::am::keys::Layout;
use crate::pg::errors::UserError;
use crate::pg::relation::{load_expressions, relation_name};
use crate::pg::{acl, compat};
use crate::planner::catalog::catalog;

/// The distances that a caller's function has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Distances {
    /// Whole bits: of fingerprints.
    Bits,
    /// Any number: of signatures, and of fingerprints if the table has no signatures indexed.
    Any,
}

/// Returns the OID of the index that a caller names, or of the only one on the table that a caller
/// names. Raises an error if there is none or if there are several, or if the caller may read
/// nothing of the table. The function called is needed to find the extension's types.
pub fn find_index(
    function: pg_sys::Oid,
    relation: pg_sys::Oid,
    column: Option<pg_sys::Datum>,
    distances: Distances,
) -> pg_sys::Oid {
    // SAFETY: a catalogue look-up.
    let kind = unsafe { pg_sys::get_rel_relkind(relation) } as u8;
    match kind {
        pg_sys::RELKIND_RELATION | pg_sys::RELKIND_MATVIEW => (),
        pg_sys::RELKIND_PARTITIONED_TABLE => refuse_partitioned(relation),
        // What is no neardup index is refused by whoever opens it.
        _ if column.is_none() => return relation,
        _ => UserError::invalid_parameter("column_name goes with a table, not with an index")
            .detail(format!("\"{}\" is not a table.", relation_name(relation)))
            .hint("Leave column_name out, or name the table.")
            .raise(),
    }
    // SAFETY: a name is a C string of fixed size, which lives as long as the call.
    let name = column.map(|name| unsafe { CStr::from_ptr(name.cast_mut_ptr()) });
    acl::check_some(relation);
    // SAFETY: a table; the lock stays until the transaction ends, as for all that is read.
    unsafe {
        let table = pg_sys::table_open(relation, pg_sys::AccessShareLock as pg_sys::LOCKMODE);
        let candidates = candidates(table);
        let chosen = choose(table, &candidates, name, distances, function);
        pg_sys::table_close(table, pg_sys::NoLock as pg_sys::LOCKMODE);
        chosen
    }
}

/// A neardup index of a table.
struct Candidate {
    oid: pg_sys::Oid,
    valid: bool,
    partial: bool,
    signatures: bool,
    /// The columns in front of the fingerprint's or signature's; 0 for an expression.
    scope: Vec<i16>,
    /// The table's column that is indexed; 0 for an expression.
    plain: i16,
    /// The table's columns that the indexed value is made from.
    columns: Vec<i16>,
}

/// All neardup indexes of a table.
///
/// # Safety
/// The table is open.
unsafe fn candidates(table: pg_sys::Relation) -> Vec<Candidate> {
    // SAFETY: the table is open, and each of its indexes while it is read.
    unsafe {
        let indexes = pg_sys::RelationGetIndexList(table);
        let mut found = Vec::new();
        for i in 0..pg_sys::list_length(indexes) {
            let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
            let index = pg_sys::index_open(pg_sys::list_nth_oid(indexes, i), lock);
            let access_method = pg_sys::get_am_name((*(*index).rd_rel).relam);
            let is_ours = !access_method.is_null() && CStr::from_ptr(access_method) == c"neardup";
            if is_ours {
                load_expressions(table, index);
                found.push(describe(index));
            }
            // The one that is chosen is locked again; the others are of no interest.
            pg_sys::index_close(index, lock);
        }
        pg_sys::list_free(indexes);
        found.sort_unstable_by_key(|candidate| candidate.oid.to_u32());
        found
    }
}

/// # Safety
/// The relation is an open neardup index, whose expressions are loaded.
unsafe fn describe(index: pg_sys::Relation) -> Candidate {
    // SAFETY: the caller's promise; an index has as many columns as its form says.
    unsafe {
        let form = &*(*index).rd_index;
        let keys = core::slice::from_raw_parts(form.indkey.values.as_ptr(), form.indnatts as usize);
        let (&plain, scope) = keys.split_last().unwrap_or((&0, &[]));
        let mut columns = Vec::new();
        if plain == 0 {
            // The last expression of the list belongs to the last column.
            let expressions = pg_sys::RelationGetIndexExpressions(index);
            let last = pg_sys::list_length(expressions) - 1;
            let mut used = core::ptr::null_mut();
            pg_sys::pull_varattnos(pg_sys::list_nth(expressions, last).cast(), 1, &raw mut used);
            let mut member = -1;
            loop {
                member = pg_sys::bms_next_member(used, member);
                if member < 0 {
                    break;
                }
                columns.push((member + pg_sys::FirstLowInvalidHeapAttributeNumber) as i16);
            }
        } else {
            columns.push(plain);
        }
        Candidate {
            oid: (*index).rd_id,
            valid: form.indisvalid,
            partial: !pg_sys::RelationGetIndexPredicate(index).is_null(),
            signatures: Layout::of(index).signatures,
            scope: scope.to_vec(),
            plain,
            columns,
        }
    }
}

/// Returns the index among a table's that the caller means.
///
/// # Safety
/// The table is open.
unsafe fn choose(
    table: pg_sys::Relation,
    all: &[Candidate],
    name: Option<&CStr>,
    distances: Distances,
    function: pg_sys::Oid,
) -> pg_sys::Oid {
    // SAFETY: the caller's promise.
    let oid = unsafe { (*table).rd_id };
    // SAFETY: a catalogue look-up of a C string.
    let column = name.map(|name| unsafe { pg_sys::get_attnum(oid, name.as_ptr()) });
    if let (Some(name), Some(..=0)) = (name, column) {
        UserError::new(
            PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN,
            format!(
                "column \"{}\" of table \"{}\" does not exist",
                name.to_string_lossy(),
                relation_name(oid)
            ),
        )
        .raise();
    }
    let mut fitting: Vec<&Candidate> = (all.iter())
        .filter(|one| column.is_none_or(|column| one.columns == [column]))
        .collect();
    // Where signatures are all there is, whoever opens the index says how to write a distance.
    let wanted = match distances {
        Distances::Bits => fitting.iter().all(|one| one.signatures),
        Distances::Any => fitting.iter().any(|one| one.signatures),
    };
    fitting.retain(|one| one.signatures == wanted);
    let usable = |one: &&&Candidate| one.valid && !one.partial;
    let usable: Vec<&Candidate> = fitting.iter().filter(usable).copied().collect();
    // SAFETY: the caller's promise.
    let none = |only| unsafe { no_index(table, only, column, distances, function) };
    let Some(first) = usable.first() else {
        none(fitting.first().copied())
    };
    if usable.iter().any(|one| one.columns != first.columns) {
        several(oid, &usable, "They are on different columns.");
    }
    if let [one] = usable[..] {
        return one.oid;
    }
    let alike = |one: &&Candidate| one.scope == first.scope && !one.scope.contains(&0);
    if !usable.iter().all(alike) {
        several(oid, &usable, "They differ in the columns in front.");
    }
    // An index on the column itself is preferred to one on an expression of it, such as a ball, and
    // of several on the column each gives the same answer.
    match usable.iter().find(|one| one.plain != 0) {
        Some(one) => one.oid,
        None => several(oid, &usable, "They are on different expressions."),
    }
}

fn several(table: pg_sys::Oid, indexes: &[&Candidate], why: &str) -> ! {
    let names: Vec<String> = (indexes.iter())
        .map(|index| format!("\"{}\"", relation_name(index.oid)))
        .collect();
    UserError::new(
        PgSqlErrorCode::ERRCODE_AMBIGUOUS_COLUMN,
        format!(
            "table \"{}\" has several neardup indexes",
            relation_name(table)
        ),
    )
    .detail(format!("{}. {why}", names.join(", ")))
    .hint("Choose by column_name => '...', or name the index instead of the table.")
    .raise()
}

/// # Safety
/// The table is open.
unsafe fn no_index(
    table: pg_sys::Relation,
    only: Option<&Candidate>,
    column: Option<i16>,
    distances: Distances,
    function: pg_sys::Oid,
) -> ! {
    // SAFETY: the caller's promise.
    let name = relation_name(unsafe { (*table).rd_id });
    let kind = match distances {
        Distances::Bits => " on fingerprints",
        Distances::Any => "",
    };
    match only {
        Some(one) if one.valid => UserError::new(
            PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT,
            format!("table \"{name}\" has only partial neardup indexes{kind}"),
        )
        .detail("A partial index knows nothing of the other rows.")
        .hint(format!(
            "Name the index, such as '{}', if its rows are those that you mean.",
            relation_name(one.oid)
        ))
        .raise(),
        Some(one) => UserError::new(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("index \"{}\" is not valid", relation_name(one.oid)),
        )
        .hint("An unfinished CREATE INDEX CONCURRENTLY left it. REINDEX or drop it.")
        .raise(),
        None => UserError::new(
            PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT,
            format!("table \"{name}\" has no neardup index{kind}"),
        )
        // SAFETY: the caller's promise.
        .hint(unsafe { statement(table, column, distances, function) })
        .raise(),
    }
}

/// The statement that makes the missing index.
///
/// # Safety
/// The table is open.
unsafe fn statement(
    table: pg_sys::Relation,
    column: Option<i16>,
    distances: Distances,
    function: pg_sys::Oid,
) -> String {
    // SAFETY: the table is open, and its names are C strings.
    unsafe {
        let quoted = |name: *const core::ffi::c_char| {
            CStr::from_ptr(pg_sys::quote_identifier(name)).to_string_lossy()
        };
        let types = catalog(function);
        let indexable = |oid: pg_sys::Oid| {
            let oid = pg_sys::getBaseType(oid);
            let metric = types.as_ref().and_then(|types| types.by_value(oid));
            oid != pg_sys::INT8OID
                && metric
                    .is_some_and(|metric| metric.hamming().is_some() || distances == Distances::Any)
        };
        let attributes = (0..(*(*table).rd_att).natts as usize)
            .map(|i| &*compat::attribute((*table).rd_att, i))
            .filter(|one| !one.attisdropped);
        let wanted = attributes.into_iter().find(|one| match column {
            Some(number) => one.attnum == number,
            None => indexable(one.atttypid),
        });
        let key = match wanted {
            Some(one) if pg_sys::getBaseType(one.atttypid) == pg_sys::INT8OID => {
                format!("{} bigint_hamming_ops", quoted(one.attname.data.as_ptr()))
            }
            Some(one) => quoted(one.attname.data.as_ptr()).into_owned(),
            None => "...".to_owned(),
        };
        let form = (*table).rd_rel;
        format!(
            "CREATE INDEX ON {}.{} USING neardup ({key});",
            quoted(pg_sys::get_namespace_name((*form).relnamespace)),
            quoted((*form).relname.data.as_ptr())
        )
    }
}

fn refuse_partitioned(table: pg_sys::Oid) -> ! {
    UserError::new(
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        format!("table \"{}\" is partitioned", relation_name(table)),
    )
    .detail("Its rows are in its partitions, and each has an index of its own.")
    .hint(
        "Name a partition, for what is near within it. A join finds near-duplicates across \
         partitions: FROM t a JOIN t b ON a.fp <~> b.fp <= 3 AND a.id < b.id.",
    )
    .raise()
}
