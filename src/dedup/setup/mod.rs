//! `neardup_setup`: returns SQL statements that add a similarity search, or a rule for new
//! near-duplicates (skip, reject or mark them), to an existing table. Also returns the statements
//! that remove it again. The user runs the statements; the function itself only reads catalogs.
mod existing;
mod object_names;
mod options;
mod statements;
mod subject;
mod templates;

use pgrx::pg_sys::{self, Datum};

use super::bound::Bound;
use super::trigger::names;
use neardup_pg::errors::{UserError, shown};
use neardup_pg::fmgr::{Call, export};
use neardup_pg::order_by::OrderBy;
use neardup_pg::rel::{OpenRelation, Rel};
use neardup_pg::varlena;
use statements::steps;
use subject::{Subject, Wanted};

export! {
    guarded "neardup_setup" => setup;
}

/// Argument `action`: what the statements add to a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// An index for searches by similarity of the text.
    Search,
    /// A trigger that skips new near-duplicates.
    Skip,
    /// A trigger that raises an error for new near-duplicates.
    Error,
    /// Triggers that mark near-duplicates with the key of the row that they repeat.
    Mark,
}

impl Goal {
    fn parse(name: &[u8]) -> Self {
        match name {
            b"search" => Goal::Search,
            b"skip" => Goal::Skip,
            b"error" => Goal::Error,
            b"mark" => Goal::Mark,
            _ => UserError::invalid_parameter(format!(
                "unknown value for \"action\": \"{}\"",
                shown(name)
            ))
            .detail("The known values are search, skip, error and mark.")
            .hint("To log near-duplicates, write the CREATE TRIGGER statement yourself.")
            .raise(),
        }
    }
}

// Positions of the arguments of `neardup_setup`.
const RELATION: usize = 0;
const TEXT_COLUMN: usize = 1;
const ACTION: usize = 2;
const SIMILARITY: usize = 3;
const OPTIONS: usize = 4;
const KEEP: usize = 5;

/// `neardup_setup(relation, text_column, action, similarity, options, keep)`.
fn setup(call: &mut Call) -> Datum {
    call.return_collected(|call, give| {
        let names = ["relation", "text_column", "action", "similarity", "options"];
        for (n, name) in names.into_iter().enumerate() {
            if call.is_null(n) {
                UserError::null_not_allowed(format!("\"{name}\" must not be NULL")).raise();
            }
        }
        let text_column = call.name(TEXT_COLUMN).unwrap_or_default();
        let goal = Goal::parse(call.bytes(ACTION));
        let similarity = call.float8(SIMILARITY);
        Bound::from_similarity(similarity);
        let options = call.array::<&[u8]>(OPTIONS, "options");
        let options = options.iter().map(names::cstring).collect();
        let (relation, function) = (call.oid(RELATION), call.function_oid());
        subject::check_kind(relation);
        let table = OpenRelation::any(relation, pg_sys::AccessShareLock);
        let keep = call.text(KEEP).map(|list| OrderBy::parse("keep", &list));
        if let Some(keep) = &keep {
            check_keep(keep, goal, table.rel());
        }
        let wanted = Wanted {
            goal,
            similarity,
            options,
            keep,
        };
        let subject = Subject::new(table.rel(), function, &text_column, wanted);
        let invalid_indexes = existing::check(&subject);
        for step in steps(&subject, &invalid_indexes) {
            give(&[
                Some(Datum::from(step.number)),
                Some(varlena::build(&[step.part.as_bytes()])),
                Some(varlena::build(&[&step.statement])),
                Some(varlena::build(&[&step.note])),
            ]);
        }
    })
}

/// Raises an error if the argument `keep` (an order of rows) is passed for another action than
/// `mark`, or is invalid for the table.
fn check_keep(keep: &OrderBy, goal: Goal, table: Rel) {
    if goal != Goal::Mark {
        UserError::invalid_parameter("\"keep\" requires action => 'mark'")
            .detail("The argument \"keep\" determines which existing rows become originals.")
            .hint("To choose which row of a cluster to keep, pass \"keep\" to neardup_clusters.")
            .raise();
    }
    keep.check(table);
}
