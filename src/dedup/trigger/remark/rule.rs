//! Finds the trigger whose arguments `neardup_remark` applies to the rows of a table.
use std::ffi::CStr;

use pgrx::{PgSqlErrorCode, pg_sys};

use crate::dedup::trigger::extension_types::ExtensionTypes;
use crate::dedup::trigger::trigger_arguments::{Action, Arguments};
use neardup_pg::catalog::{self, Named};
use neardup_pg::errors::UserError;
use neardup_pg::rel::{Rel, Trigger};

/// Finds the BEFORE trigger that marks rows of a table, even if the trigger is disabled. If `name`
/// is set, finds only the trigger with that name. Raises an error if there is no such trigger, if
/// there are several, or if the trigger has a WHEN condition.
pub fn find(table: Rel, types: ExtensionTypes, name: Option<&CStr>) -> Trigger {
    let function = catalog::find(types.schema(), c"neardup_dedup", Named::Function(&[]));
    let mut found: Vec<Trigger> = (table.triggers().into_iter())
        .filter(|trigger| Some(trigger.function) == function)
        .filter(|trigger| trigger.fires_for(pg_sys::TRIGGER_TYPE_BEFORE))
        .filter(|trigger| name.is_none_or(|name| trigger.name.as_c_str() == name))
        .filter(|trigger| {
            let arguments = Arguments::read(trigger);
            arguments.is_ok_and(|arguments| matches!(arguments.action, Action::Mark(_)))
        })
        .collect();
    match found.as_slice() {
        [_, _, ..] => refuse_several(table, &found),
        [only] if only.has_condition => refuse_condition(format!(
            "trigger \"{}\" of table \"{}\" has a WHEN condition",
            only.name.to_string_lossy(),
            table.shown()
        )),
        _ => (),
    }
    found.pop().unwrap_or_else(|| {
        let named = name.map(|name| format!(" \"{}\"", name.to_string_lossy()));
        UserError::new(
            PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT,
            format!(
                "table \"{}\" has no trigger{} that marks rows",
                table.shown(),
                named.unwrap_or_default()
            ),
        )
        .detail(
            "neardup_remark uses the arguments of the BEFORE trigger that calls neardup_dedup with \
             action=mark.",
        )
        .hint("First create the triggers with action=mark.")
        .raise()
    })
}

/// Raises an error: several triggers mark the rows of a table. The hint lists the triggers to
/// choose from.
fn refuse_several(table: Rel, found: &[Trigger]) -> ! {
    let names = |has_condition: &[bool]| {
        let named = found
            .iter()
            .filter(|trigger| has_condition.contains(&trigger.has_condition));
        let names: Vec<_> = named
            .map(|trigger| trigger.name.to_string_lossy())
            .collect();
        names.join(", ")
    };
    let (all, plain, refused) = (names(&[true, false]), names(&[false]), names(&[true]));
    if plain.is_empty() {
        refuse_condition(format!(
            "the triggers that mark rows of table \"{}\" have WHEN conditions",
            table.shown()
        ));
    }
    let error = UserError::new(
        PgSqlErrorCode::ERRCODE_AMBIGUOUS_PARAMETER,
        format!("several triggers mark rows of table \"{}\"", table.shown()),
    );
    match refused.is_empty() {
        true => error
            .detail(format!("The triggers are {all}."))
            .hint("Pass the name of one of them as the argument \"trigger_name\"."),
        false => error
            .detail(format!(
                "The triggers are {all}. These have a WHEN condition: {refused}."
            ))
            .hint(format!(
                "Pass one of these as the argument \"trigger_name\": {plain}. neardup_remark does \
                 not accept triggers with a WHEN condition."
            )),
    }
    .raise()
}

/// Raises an error about triggers with a WHEN condition, which fire for only some rows.
fn refuse_condition(message: String) -> ! {
    UserError::new(PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED, message)
        .detail(
            "neardup_remark processes all rows of a table. It cannot evaluate the WHEN condition \
             of a trigger.",
        )
        .hint(
            "Instead of WHEN conditions, use a scope column with a different value for each group \
             of rows. Or keep each group in a partition that has its own triggers.",
        )
        .raise()
}
