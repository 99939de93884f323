//! Windows of time: rows are near-duplicates only if their times are at most an interval apart, or
//! if their ranges overlap.
use pgrx::pg_sys;

use neardup_pg::caller_sql::Expression;
use neardup_pg::catalog;
use neardup_pg::errors::UserError;
use neardup_pg::fmgr::Call;
use neardup_pg::rel::Rel;
use neardup_pg::time_span::{Span, TimeType, microseconds};
use neardup_pg::value::{OwnedValue, Value};

/// Name of the SQL parameter that has the expression for the times of rows, for error messages.
pub const PARAMETER: &str = "row_time";

/// Condition on the times of two rows.
#[derive(Clone, Copy)]
pub struct Window {
    time_type: TimeType,
    /// Maximum distance of two times in microseconds. 0 for ranges.
    within: i128,
}

impl Window {
    /// Makes the window for times or ranges of the type `time_type`. `within` is the maximum
    /// distance of two times, of type `interval`. It is required for times and must be `None` for
    /// ranges.
    ///
    /// # Errors
    /// A sentence that explains why the type or the interval is unsuitable.
    pub fn new(time_type: pg_sys::Oid, within: Option<Value>) -> Result<Self, String> {
        let shown = catalog::type_name(time_type);
        let Some(time_type) = TimeType::from_oid(time_type) else {
            return Err(format!(
                "The times have type {shown}. The type must be timestamp, timestamptz or date, or \
                 a range of timestamp, timestamptz, date, integer or bigint."
            ));
        };
        let within = match (time_type.is_range(), within) {
            (false, Some(within)) => microseconds(within)?,
            (true, None) => 0,
            (false, None) => {
                return Err(format!(
                    "The times have type {shown}, but \"within\" is missing. Specify the longest \
                     time between two rows, such as 7 days."
                ));
            }
            (true, Some(_)) => {
                return Err(format!(
                    "The times have type {shown}. Ranges are compared for overlap, so \"within\" \
                     is not allowed."
                ));
            }
        };
        Ok(Window { time_type, within })
    }

    /// Returns the span of a row with this time. Two rows meet the condition if their spans
    /// overlap. Returns `None` for NULL and for an empty range, because no row is near such a row.
    pub fn span(&self, time: Option<Value>) -> Option<Span> {
        self.time_type.span(time?, self.within)
    }
}

/// Arguments `row_time` and `within` of a call, before the table is known.
pub struct WindowArgument {
    time: Expression,
    within: Option<OwnedValue>,
}

impl WindowArgument {
    /// Reads the arguments of a call. `time` and `within` are the positions of the two arguments.
    /// Returns `None` if the caller passes neither. Raises an error if only `within` is passed.
    pub fn read(call: &Call, time: usize, within: usize) -> Option<Self> {
        let within = call.parameter(within).value.map(Value::to_owned);
        match call.text(time) {
            Some(text) => Some(WindowArgument {
                time: Expression::parse(PARAMETER, &text),
                within,
            }),
            None if within.is_none() => None,
            None => UserError::invalid_parameter("\"within\" requires \"row_time\"")
                .detail("\"within\" is the maximum time between two near-duplicates.")
                .hint("Pass the column that contains the times, such as row_time => 'published'.")
                .raise(),
        }
    }

    /// Checks the arguments for the rows of a table. Raises an error if the type of the times or
    /// the interval is unsuitable.
    pub fn of_table(self, table: Rel) -> WindowOfTable {
        let time_type = self.time.check(PARAMETER, table);
        let within = self.within.as_ref().map(OwnedValue::get);
        let window = Window::new(time_type, within).unwrap_or_else(|why| {
            UserError::invalid_parameter("invalid time window")
                .detail(why)
                .hint(
                    "Pass a column of times and an interval, such as row_time => 'published', \
                     within => '7 days'. Or pass a column of ranges, such as row_time => 'during'.",
                )
                .raise()
        });
        WindowOfTable {
            time: self.time.sql(),
            window,
        }
    }
}

/// Condition on the times of two rows of a table.
pub struct WindowOfTable {
    /// SQL expression for the time or range of a row.
    pub time: Vec<u8>,
    pub window: Window,
}
