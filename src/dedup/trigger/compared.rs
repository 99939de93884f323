//! Values by which the trigger and `neardup_remark` compare rows.
use super::columns::Columns;
use crate::am::metric::ValueMetric;
use neardup_pg::slot::Slot;
use neardup_pg::time_span::Span;
use neardup_pg::value::{OwnedValue, Value};

/// Fingerprint or signature of a row, and the row's scope and time.
#[derive(Clone)]
pub struct ComparedValue {
    /// Fingerprint or signature.
    pub fingerprint: OwnedValue,
    /// Values of the scope columns, in the order of the index's columns.
    pub scope: Vec<OwnedValue>,
    /// Span of the row's time or range. `None` without the option `time`.
    pub time: Option<Span>,
}

impl ComparedValue {
    /// Returns the values of the scope columns, in the order of the index's columns.
    pub fn scope_values(&self) -> Vec<Value<'_>> {
        self.scope.iter().map(OwnedValue::get).collect()
    }

    /// Returns the distance of two fingerprints or signatures in bits or mismatches. Returns `None`
    /// if the scopes differ, if the times are not near each other, or if the signatures differ in
    /// scheme, seed or length.
    pub fn distance(&self, other: &Self, columns: &Columns) -> Option<u32> {
        let mut scopes = (columns.scope.iter()).zip(self.scope.iter().zip(&other.scope));
        let same_scope = scopes.all(|(column, (a, b))| column.equal(a.get(), b.get()));
        let distance = || {
            let values = (self.fingerprint.get(), other.fingerprint.get());
            columns.metric.distance(values.0, values.1)
        };
        let near_times = || {
            let times = self.time.zip(other.time);
            times.is_none_or(|(a, b)| a.overlaps(b))
        };
        (same_scope && near_times()).then(distance)?
    }

    /// Returns the distance of an existing row to this value, in bits or mismatches. Returns `None`
    /// if the distance exceeds `columns.limit`, if the scopes differ, or if the times are not near
    /// each other. Compares the values of the scopes, because the index has only a hash of them.
    pub fn distance_to_row(&self, row: &Slot, columns: &Columns) -> Option<u32> {
        let fingerprint = row.get(columns.fingerprint)?;
        let same_scope = (columns.scope.iter().zip(&self.scope)).all(|(column, value)| {
            (row.get(column.column)).is_some_and(|own| column.equal(own, value.get()))
        });
        let near_times = || match (&columns.window, self.time) {
            (Some(window), Some(time)) => {
                let other = window.span(row.get(window.column));
                other.is_some_and(|other| time.overlaps(other))
            }
            _ => true,
        };
        let distance = || (columns.metric).distance(fingerprint, self.fingerprint.get());
        (same_scope && near_times())
            .then(distance)?
            .filter(|&distance| distance <= columns.limit)
    }
}
