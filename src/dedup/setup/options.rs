//! Argument `options` of `neardup_setup`: further arguments of its triggers.
use std::ffi::{CStr, CString};

use pgrx::PgSqlErrorCode;

use super::Goal;
use super::object_names::ObjectNames;
use crate::dedup::trigger::names;
use crate::dedup::trigger::time_window::TimeWindow;
use crate::dedup::trigger::trigger_arguments::Arguments;
use neardup_pg::errors::{UserError, shown};
use neardup_pg::rel::Rel;

/// Options that the caller cannot pass: they follow from the other arguments of `neardup_setup`, or
/// its statements do not support them. Passing one raises an error.
const NOT_ALLOWED: [&str; 7] = [
    "radius",
    "similarity",
    "action",
    "mark",
    "log",
    "omit",
    "function",
];

/// Further options that the caller cannot pass with the action `search`, because they have a
/// meaning only for triggers.
const ONLY_TRIGGERS: [&str; 6] = ["confirm", "key", "manual", "notice", "time", "within"];

/// Returns the arguments of the triggers as texts: the names of the fingerprint column and of the
/// text column `text`, then the options `similarity`, `action` and (if rows are marked) `mark`,
/// then the caller's `options`. Raises an error if the caller passes an option that is not allowed.
pub fn written(
    goal: Goal,
    similarity: f64,
    text: &CStr,
    names: &ObjectNames,
    options: Vec<CString>,
) -> Vec<CString> {
    let not_allowed: Vec<&str> = match goal {
        Goal::Search => [&NOT_ALLOWED[..], &ONLY_TRIGGERS[..]].concat(),
        Goal::Skip | Goal::Error | Goal::Mark => NOT_ALLOWED.to_vec(),
    };
    for option in &options {
        check_option(option, &not_allowed);
    }
    let mut written = vec![
        names::cstring(&names::argument(&names.fingerprint)),
        names::cstring(&names::argument(text)),
        names::cstring(format!("similarity={similarity}").as_bytes()),
    ];
    match goal {
        Goal::Search | Goal::Skip => written.push(c"action=skip".to_owned()),
        Goal::Error => written.push(c"action=error".to_owned()),
        Goal::Mark => {
            written.push(c"action=mark".to_owned());
            let mark = names::argument(&names.mark);
            written.push(names::cstring(&[b"mark=".to_vec(), mark].concat()));
        }
    }
    written.extend(options);
    written
}

/// Raises an error unless `option` has the form `name=value` and its name is not in `not_allowed`.
fn check_option(option: &CStr, not_allowed: &[&str]) {
    let name = option.to_bytes().split(|&byte| byte == b'=').next();
    let name = name.unwrap_or_default().trim_ascii();
    if names::is_quoted(option.to_bytes()) || !option.to_bytes().contains(&b'=') {
        UserError::invalid_parameter(format!("invalid option: \"{}\"", shown(option.to_bytes())))
            .detail("An option is an argument of neardup_dedup in the form name=value.")
            .hint("Write, for example, ARRAY['confirm=body'].")
            .raise();
    }
    if not_allowed.iter().any(|known| known.as_bytes() == name) {
        UserError::invalid_parameter(format!(
            "neardup_setup does not accept the option \"{}\" here",
            shown(name)
        ))
        .detail(format!(
            "For this action, neardup_setup does not accept these options: {}.",
            not_allowed.join(", ")
        ))
        .hint("Use the other parameters of neardup_setup, or write the statements yourself.")
        .raise();
    }
}

/// Parses the arguments of the triggers. Raises an error if they are invalid for the table.
pub fn parse(table: Rel, goal: Goal, names: &ObjectNames, written: &[CString]) -> Arguments {
    let trigger = names.trigger.to_string_lossy();
    let arguments = Arguments::parse(&trigger, written).unwrap_or_else(|why| {
        UserError::invalid_parameter("invalid options for neardup_setup")
            .detail(why)
            .hint("The options are arguments of neardup_dedup, such as 'confirm=body'.")
            .raise()
    });
    let confirmed = arguments.confirm.as_ref().map(|confirm| &confirm.column);
    let columns = arguments.scope.iter().chain(&arguments.key);
    let timed = arguments.time.as_ref().map(|time| &time.column);
    let mut columns = columns.chain(confirmed).chain(timed);
    if let Some(column) = columns.find(|column| table.column_number(column).is_none()) {
        UserError::new(
            PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN,
            format!(
                "column \"{}\" of table \"{}\" does not exist",
                column.to_string_lossy(),
                table.shown()
            ),
        )
        .detail("An option names this column.")
        .hint("Write the name exactly as it is stored. Upper and lower case are different.")
        .raise();
    }
    let time = arguments.time.as_ref();
    let time = time.and_then(|time| table.column_number(&time.column));
    TimeWindow::new(table, time, &arguments);
    if let (Goal::Mark, Some(condition)) = (goal, arguments.manual.condition()) {
        condition.check(table);
    }
    arguments
}
