//! Rows that `neardup_remark` compares, and the trigger's rule that decides whether two rows are
//! near-duplicates.
use neardup_sketch::candidates::similarity_at_least;

use crate::dedup::trigger::columns::Columns;
use crate::dedup::trigger::compared::ComparedValue;
use crate::dedup::trigger::text_comparison::TextComparison;
use neardup_pg::slot::Slot;
use neardup_pg::value::Value;

/// Rule by which a trigger compares rows.
pub struct Rule<'a> {
    pub columns: &'a Columns,
    /// Comparison of texts that confirms near rows. `None` without the option `confirm`.
    pub texts: Option<TextComparison>,
}

/// Values by which a row is compared with other rows.
pub struct Subject {
    pub value: ComparedValue,
    /// Sorted feature hashes of the row's text. Empty without the option `confirm`.
    pub features: Vec<u64>,
}

impl Rule<'_> {
    /// Returns the subject for a row with this fingerprint, scope and text. Returns `None` if the
    /// row cannot have near-duplicates, because its text has no features.
    pub fn subject(&self, value: ComparedValue, text: Option<Value>) -> Option<Subject> {
        let features = match &self.texts {
            None => Vec::new(),
            Some(texts) => Some(texts.features(text)).filter(|features| !features.is_empty())?,
        };
        Some(Subject { value, features })
    }

    /// Returns whether the text of an existing row is similar enough to the text of a subject.
    /// Returns true without the option `confirm`.
    pub fn confirms(&self, subject: &Subject, row: &Slot) -> bool {
        self.texts.as_ref().is_none_or(|texts| {
            let other = texts.features(row.get(texts.column));
            similarity_at_least(&subject.features, &other, texts.similarity).is_some()
        })
    }
}
