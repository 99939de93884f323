//! Selection of the index for functions over whole tables, by the caller's `relation` and
//! `column_name`.
//!
//! `relation` is a neardup index or its table. Tables are accepted because only their OIDs are
//! stable: `REINDEX CONCURRENTLY` changes the OID of an index, and a view or an SQL function stores
//! the OID.
use core::ffi::CStr;

use pgrx::{PgSqlErrorCode, pg_sys};

use super::bound::{Bound, IndexBounds};
use crate::am::index::metric_of;
use crate::am::keys::{Layout, is_on_signatures};
use crate::am::suggestion::key_for;
use crate::planner::catalog::catalog;
use crate::types::signature::similarity;
use neardup_pg::acl;
use neardup_pg::catalog::{
    base_type, is_text, qualified_relation, quoted, relation_kind, relation_name,
};
use neardup_pg::errors::{UserError, UserNotice};
use neardup_pg::rel::{OpenRelation, Rel};
use neardup_pg::spi;
use neardup_pg::value::Value;

/// Returns the OID of the index `relation` or, if `relation` is a table, of its only matching
/// index. `column` is the caller's column name, which restricts the choice to indexes on this
/// column. If both signatures and fingerprints are indexed, a radius in `bound` selects the
/// fingerprints. A similarity, or no bound, selects the signatures. Among several indexes on one
/// signature column, selects the index that suits the similarity best.
///
/// Raises an error if no index or several match, or if the user may not read the table. The schema
/// of `function` is used to find the extension's types.
pub fn find_index(
    function: pg_sys::Oid,
    relation: pg_sys::Oid,
    column: Option<&CStr>,
    bound: Option<Bound>,
) -> pg_sys::Oid {
    find(
        function,
        relation,
        column,
        Wanted {
            bound,
            agreed: false,
        },
    )
}

/// Like [`find_index`], but for searches that use the bound of the index if the caller passes none.
/// In that case, raises an error if the matching indexes have different bounds.
pub fn find_bounded_index(
    function: pg_sys::Oid,
    relation: pg_sys::Oid,
    column: Option<&CStr>,
    bound: Option<Bound>,
) -> pg_sys::Oid {
    let agreed = bound.is_none();
    find(function, relation, column, Wanted { bound, agreed })
}

/// Caller's bound, by which one of several indexes of a table is selected.
#[derive(Clone, Copy)]
struct Wanted {
    /// Bound that the caller passed.
    bound: Option<Bound>,
    /// True if all matching indexes must have the same bound.
    agreed: bool,
}

fn find(
    function: pg_sys::Oid,
    relation: pg_sys::Oid,
    column: Option<&CStr>,
    wanted: Wanted,
) -> pg_sys::Oid {
    match relation_kind(relation) {
        pg_sys::RELKIND_RELATION | pg_sys::RELKIND_MATVIEW => (),
        pg_sys::RELKIND_PARTITIONED_TABLE => refuse_partitioned(relation),
        pg_sys::RELKIND_VIEW => refuse_view(relation),
        pg_sys::RELKIND_FOREIGN_TABLE => (),
        // The caller names an index. If it is not a neardup index, opening it raises an error
        // later.
        _ if column.is_none() => return relation,
        _ => UserError::invalid_parameter("\"column_name\" requires a table, not an index")
            .detail(format!("\"{}\" is not a table.", relation_name(relation)))
            .hint("Omit \"column_name\", or pass the table.")
            .raise(),
    }
    let table = open_table(relation);
    let candidates = candidates(table.rel());
    let chosen = choose(table.rel(), &candidates, column, wanted, function);
    if (candidates.iter()).any(|one| one.oid == chosen && !one.scope.is_empty()) {
        tell_scope(table.rel(), chosen);
    }
    chosen
}

/// Opens a table that a caller names, for reading all of its rows. Raises an error if the caller
/// may read none of its columns. Raises error 0A000 if some rows are not in the table itself: they
/// are in Citus shards, on a foreign server, or in tables that inherit from the table (such as the
/// chunks of TimescaleDB).
pub fn open_table(oid: pg_sys::Oid) -> OpenRelation {
    acl::check_any_column(oid);
    let table = OpenRelation::table(oid, pg_sys::AccessShareLock);
    if table.rel().may_have_children() && has_children(oid) {
        refuse_parent(table.rel());
    }
    table
}

fn has_children(table: pg_sys::Oid) -> bool {
    const CHILDREN: &CStr = c"SELECT EXISTS (SELECT FROM pg_catalog.pg_inherits
        WHERE inhparent OPERATOR(pg_catalog.=) $1)";
    spi::value(CHILDREN, &[Value::oid(table)]).is_some_and(|found| found.get().as_bool())
}

/// Sends a notice to a caller who named a table: the index found for it compares rows only within
/// scopes.
fn tell_scope(table: Rel, index: pg_sys::Oid) {
    let index = relation_name(index);
    UserNotice {
        message: format!(
            "index \"{index}\" compares only rows with equal values in its leading columns"
        ),
        detail: format!("Table \"{}\" has no other usable index.", table.shown()),
        hint: format!(
            "To find near-duplicates in the whole table, create an index on the last column alone. \
             To compare only rows with equal values in the leading columns, pass '{index}' instead \
             of the table."
        ),
    }
    .report();
}

/// Neardup index of the table that the caller named.
struct Candidate {
    oid: pg_sys::Oid,
    valid: bool,
    partial: bool,
    /// True if the index is on signatures, false if it is on fingerprints.
    signatures: bool,
    /// Attribute numbers of the columns before the fingerprint or signature. 0 for an expression.
    scope: Vec<i16>,
    /// Attribute number of the fingerprint or signature column. 0 if an expression makes the value.
    plain: i16,
    /// Attribute numbers of the table columns that the indexed fingerprint or signature is made
    /// from.
    columns: Vec<i16>,
}

/// Returns all neardup indexes of a table on fingerprints or signatures, in the order of their
/// OIDs. Skips indexes on other values, which have no distances. Closes the indexes, because the
/// caller opens the selected index itself.
fn candidates(table: Rel) -> Vec<Candidate> {
    let mut found = Vec::new();
    for oid in table.indexes() {
        let index = OpenRelation::index(oid, pg_sys::AccessShareLock);
        let index_on_distances = index.rel().is_neardup_index()
            && Layout::from_index(index.rel()).metric.has_distances();
        if index_on_distances {
            found.push(describe(index.rel()));
        }
    }
    found.sort_unstable_by_key(|candidate| candidate.oid.to_u32());
    found
}

/// Returns the properties of an index by which [`choose`] selects an index.
fn describe(index: Rel) -> Candidate {
    let form = index.index_form();
    let (scope, others) = form.columns.split_at(index.searched_column());
    let plain = others[0];
    Candidate {
        oid: index.oid(),
        valid: form.is_valid,
        partial: index.is_partial(),
        signatures: is_on_signatures(index),
        scope: scope.to_vec(),
        plain,
        columns: match plain {
            0 => index.columns_of_searched_expression(),
            column => vec![column],
        },
    }
}

/// Returns the OID of the index among `all` that fits the caller's column name and bound. Raises an
/// error if no index or several fit.
fn choose(
    table: Rel,
    all: &[Candidate],
    name: Option<&CStr>,
    wanted: Wanted,
    function: pg_sys::Oid,
) -> pg_sys::Oid {
    let (oid, bound) = (table.oid(), wanted.bound);
    let column = name.map(|name| {
        let number = table.column_number(name);
        number.unwrap_or_else(|| no_column(oid, name))
    });
    let mut fitting: Vec<&Candidate> = (all.iter())
        .filter(|one| column.is_none_or(|column| one.columns == [column]))
        .collect();
    // A radius selects an index on signatures only if no fingerprints are indexed. A later check
    // then rejects the radius.
    let signatures = match bound {
        Some(Bound::Radius(_)) => fitting.iter().all(|one| one.signatures),
        Some(Bound::Similarity(_)) | None => fitting.iter().any(|one| one.signatures),
    };
    let usable = |one: &&&Candidate| one.valid && !one.partial;
    if wanted.agreed {
        let usable: Vec<&Candidate> = fitting.iter().filter(usable).copied().collect();
        if usable
            .iter()
            .any(|one| one.signatures != usable[0].signatures)
        {
            let why = "Some are on fingerprints and some are on signatures.";
            let hint = "Pass a radius for fingerprints or a similarity for signatures, or select \
                        the column with column_name => '...'.";
            several(oid, &usable, why, hint);
        }
    }
    fitting.retain(|one| one.signatures == signatures);
    let usable: Vec<&Candidate> = fitting.iter().filter(usable).copied().collect();
    let none = |only| no_index(table, only, column, bound, function);
    let Some(first) = usable.first() else {
        none(fitting.first().copied())
    };
    if usable.iter().any(|one| one.columns != first.columns) {
        let hint = "Select the column with column_name => '...', or pass the index instead of the \
                    table.";
        several(oid, &usable, "They are on different columns.", hint);
    }
    match usable[..] {
        [one] => one.oid,
        _ => choose_on_column(table, usable, wanted),
    }
}

/// Selects one of the indexes `usable`, which are on the same fingerprint or signature column.
/// Prefers indexes without a scope, and indexes on the column itself. Of several such indexes on
/// signatures, selects the one that suits the bound in `wanted` best. Raises an error if the choice
/// is ambiguous, or if the indexes have different bounds and `wanted` does not allow that.
fn choose_on_column(table: Rel, usable: Vec<&Candidate>, wanted: Wanted) -> pg_sys::Oid {
    const HINT: &str = "Pass the index instead of the table.";
    let oid = table.oid();
    // The caller named the table and wants all rows, so an index without a scope is preferred.
    let whole: Vec<&Candidate> = (usable.iter().copied())
        .filter(|one| one.scope.is_empty())
        .collect();
    let scope = &usable[0].scope;
    let is_alike = |one: &&Candidate| one.scope == *scope && !one.scope.contains(&0);
    let answers = match whole[..] {
        [_, ..] => whole,
        [] if usable.iter().all(is_alike) => usable,
        [] => several(oid, &usable, "They differ in their leading columns.", HINT),
    };
    if let [one] = answers[..] {
        return one.oid;
    }
    if wanted.agreed {
        require_one_bound(table, &answers);
    }
    // An index on the column itself is preferred to an index on an expression of the column, such
    // as `ball(fp, 3)`. All indexes on the column return the same result.
    let on_column: Vec<&Candidate> = (answers.iter().copied())
        .filter(|one| one.plain != 0)
        .collect();
    match on_column[..] {
        [] => several(oid, &answers, "They are on different expressions.", HINT),
        [one] => one.oid,
        [first, ..] if !first.signatures => first.oid,
        _ => made_for(&on_column, wanted.bound),
    }
}

/// Raises an error if the indexes were built for different bounds.
fn require_one_bound(table: Rel, indexes: &[&Candidate]) {
    let opened: Vec<OpenRelation> = (indexes.iter())
        .map(|one| OpenRelation::index(one.oid, pg_sys::AccessShareLock))
        .collect();
    let bounds = IndexBounds::new(opened.iter().map(OpenRelation::rel));
    if bounds.agree() {
        return;
    }
    let example = bounds.example(" => ");
    let hint = format!("Pass a bound, such as {example}, or pass an index instead of the table.");
    bounds.refuse(&table.shown(), &hint)
}

/// Returns the OID of one of several signature indexes. The guarantee of an index is the lowest
/// similarity at which it finds all pairs. The index with the highest guarantee up to the
/// similarity in `bound` finds all wanted pairs and reads the fewest candidates. If there is no
/// such index, or `bound` is not a similarity, returns the index with the lowest guarantee.
fn made_for(indexes: &[&Candidate], bound: Option<Bound>) -> pg_sys::Oid {
    let wanted = match bound {
        Some(Bound::Similarity(similarity)) => similarity,
        Some(Bound::Radius(_)) | None => 0.0,
    };
    let guaranteed = |one: &Candidate| {
        let index = OpenRelation::index(one.oid, pg_sys::AccessShareLock);
        let metric = metric_of(index.rel());
        let bands = metric.bands();
        bands.map_or(0.0, |bands| similarity(bands.guaranteed(), bands.hashes()))
    };
    let all: Vec<(f64, pg_sys::Oid)> = (indexes.iter())
        .map(|one| (guaranteed(one), one.oid))
        .collect();
    // The guarantee is computed from a whole number of mismatches. It can be slightly above the
    // similarity in the index's options.
    let enough = all.iter().filter(|(least, _)| *least <= wanted + 1e-9);
    let best = enough
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .or_else(|| all.iter().min_by(|a, b| a.0.total_cmp(&b.0)));
    best.map_or(pg_sys::InvalidOid, |(_, oid)| *oid)
}

fn no_column(table: pg_sys::Oid, name: &CStr) -> ! {
    UserError::new(
        PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN,
        format!(
            "column \"{}\" of table \"{}\" does not exist",
            name.to_string_lossy(),
            relation_name(table)
        ),
    )
    .raise()
}

fn several(table: pg_sys::Oid, indexes: &[&Candidate], why: &str, hint: &str) -> ! {
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
    .detail(format!(
        "The usable indexes are {}. {why}",
        names.join(", ")
    ))
    .hint(hint)
    .raise()
}

fn no_index(
    table: Rel,
    only: Option<&Candidate>,
    column: Option<i16>,
    bound: Option<Bound>,
    function: pg_sys::Oid,
) -> ! {
    let name = table.shown();
    let kind = match bound {
        Some(Bound::Radius(_)) => " on fingerprints",
        Some(Bound::Similarity(_)) | None => "",
    };
    match only {
        Some(one) if one.valid => UserError::new(
            PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT,
            format!("table \"{name}\" has only partial neardup indexes{kind}"),
        )
        .detail("A partial index does not contain all rows of the table.")
        .hint(format!(
            "To search only the rows of a partial index, pass that index, such as '{}'.",
            relation_name(one.oid)
        ))
        .raise(),
        Some(one) => UserError::new(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("index \"{}\" is not valid", relation_name(one.oid)),
        )
        .hint(
            "CREATE INDEX CONCURRENTLY did not finish and left an invalid index. Drop the index or \
             run REINDEX.",
        )
        .raise(),
        None => UserError::new(
            PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT,
            format!("table \"{name}\" has no neardup index{kind}"),
        )
        .hint(statement(table, column, bound, function))
        .raise(),
    }
}

/// Returns the CREATE INDEX statement for the hint of an error about a missing index. `column` is
/// the attribute number of the column that the caller named. If it is `None`, this function chooses
/// a column of the table. It suggests a column of signatures only if `bound` is not a radius.
/// `function` is a function of the extension, by which the extension's types are found.
fn statement(
    table: Rel,
    column: Option<i16>,
    bound: Option<Bound>,
    function: pg_sys::Oid,
) -> String {
    let types = catalog(function);
    let has_signatures = !matches!(bound, Some(Bound::Radius(_)));
    let indexable = |oid: pg_sys::Oid| {
        let oid = base_type(oid);
        let searched = types.as_ref().and_then(|types| types.by_value(oid));
        oid != pg_sys::INT8OID
            && searched.is_some_and(|searched| searched.metric.is_hamming() || has_signatures)
    };
    let attributes = || table.attributes();
    let wanted = match column {
        Some(number) => attributes().find(|one| one.attnum == number),
        None => (attributes().find(|one| indexable(one.atttypid)))
            .or_else(|| only(attributes().filter(|one| is_text(base_type(one.atttypid))))),
    };
    let key = wanted.and_then(|one| {
        let name = quoted(&table.column_name(one.attnum));
        let name = String::from_utf8_lossy(&name).into_owned();
        match indexable(one.atttypid) {
            true => Some(name),
            false => key_for(&name, one.atttypid),
        }
    });
    let key = key.unwrap_or_else(|| "...".to_owned());
    let table = table.qualified_name();
    let table = String::from_utf8_lossy(&table);
    format!("CREATE INDEX ON {table} USING neardup ({key});")
}

/// Returns the only item of an iterator, or `None` if it has no or several items.
fn only<T>(mut items: impl Iterator<Item = T>) -> Option<T> {
    items.next().filter(|_| items.next().is_none())
}

fn refuse_partitioned(table: pg_sys::Oid) -> ! {
    UserError::new(
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        format!("table \"{}\" is partitioned", relation_name(table)),
    )
    .detail("The rows are in the partitions, and each partition has its own index.")
    .hint(format!(
        "To find near-duplicates within a partition, pass the partition. {}",
        instead_of(table)
    ))
    .raise()
}

fn refuse_parent(table: Rel) -> ! {
    UserError::new(
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        format!("other tables inherit from table \"{}\"", table.shown()),
    )
    .detail("The rows of those tables also belong to this table, but each table has its own index.")
    .hint(format!(
        "To find near-duplicates within one of those tables, pass that table. To search this \
         table without those tables, pass an index of this table. {}",
        instead_of(table.oid())
    ))
    .raise()
}

fn refuse_view(view: pg_sys::Oid) -> ! {
    UserError::new(
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        format!("\"{}\" is a view", relation_name(view)),
    )
    .detail("A view has no rows and no index of its own.")
    .hint(format!(
        "Pass the table that the view reads. Pass the condition of the view as filter => '...'. \
         {}",
        instead_of(view)
    ))
    .raise()
}

/// Returns a sentence that suggests a join, which finds the near-duplicates in any relation. It is
/// for the hint of an error about a relation that no single index covers, such as a view.
fn instead_of(relation: pg_sys::Oid) -> String {
    let name = qualified_relation(relation).unwrap_or_default();
    let name = String::from_utf8_lossy(&name);
    format!(
        "To find all near-duplicates, use a join with <~> or <%>, such as FROM {name} a JOIN \
         {name} b ON a.fp <~> b.fp <= 6 AND a.id < b.id. To make clusters from the pairs of the \
         join, use neardup_components."
    )
}
