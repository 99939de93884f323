//! Options `time` and `within`: rows are compared only if their times are near.
use std::ffi::CString;

use pgrx::PgSqlErrorCode;

use super::names;
use super::trigger_arguments::Arguments;
use crate::dedup::window::Window;
use neardup_pg::catalog;
use neardup_pg::errors::UserError;
use neardup_pg::rel::Rel;
use neardup_pg::spi;
use neardup_pg::time_span::Span;
use neardup_pg::value::{OwnedValue, Value};

/// Condition on the times of compared rows.
pub struct TimeWindow {
    /// Attribute number of the column with the times or ranges.
    pub column: i16,
    window: Window,
}

impl TimeWindow {
    /// Prepares the condition that a trigger's arguments specify. `column` is the attribute number
    /// of the column that the option `time` names. Returns `None` without this option. Raises an
    /// error if the column or the interval is unsuitable.
    pub fn new(table: Rel, column: Option<i16>, arguments: &Arguments) -> Option<Self> {
        let (time, column) = arguments.time.as_ref().zip(column)?;
        if table.is_generated(column) && !table.is_stored_generated(column) {
            refuse_virtual(table, column);
        }
        let within = time.within.as_ref().and_then(|text| {
            let literal = catalog::literal(text);
            // Not a cast of the literal: the kept plan of the statement would have the interval as
            // the setting `IntervalStyle` was when the plan was made.
            let call = [
                b"SELECT pg_catalog.interval_in(",
                literal.as_slice(),
                b", 0, -1)",
            ];
            let statement = call.concat();
            spi::value(&CString::new(statement).expect("made of C strings"), &[])
        });
        let within = within.as_ref().map(OwnedValue::get);
        let window = Window::new(table.attribute(column).atttypid, within);
        Some(TimeWindow {
            column,
            window: arguments.or_invalid(window),
        })
    }

    /// Returns the span of a row with the value `time` in the column. Two rows meet the condition
    /// if their spans overlap. Returns `None` for NULL and for an empty range, because no row is
    /// near such a row.
    pub fn span(&self, time: Option<Value>) -> Option<Span> {
        self.window.span(time)
    }
}

fn refuse_virtual(table: Rel, column: i16) -> ! {
    let name = names::shown(&table.column_name(column));
    UserError::new(
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        format!("time column \"{name}\" is a virtual generated column"),
    )
    .detail(
        "The option \"time\" of neardup_dedup names this column. The values of a virtual generated \
         column are not stored.",
    )
    .hint("Specify a column whose values are stored.")
    .raise()
}
