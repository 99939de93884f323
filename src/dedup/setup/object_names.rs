//! Names of the columns, indexes and triggers that the statements of `neardup_setup` create.
use core::ffi::CStr;
use std::ffi::CString;

use neardup_pg::catalog;

/// Names of the objects that the statements create.
pub struct ObjectNames {
    /// Index for searches, on an expression that makes fingerprints of the text.
    pub search_index: CString,
    /// Column for fingerprints.
    pub fingerprint: CString,
    /// Index on the fingerprint column.
    pub fingerprint_index: CString,
    /// Column for marks, which are keys of original rows.
    pub mark: CString,
    /// Index on the mark column.
    pub mark_index: CString,
    /// BEFORE trigger that handles near-duplicates.
    pub trigger: CString,
    /// AFTER trigger that renews the marks of rows when their original changes.
    pub marks_trigger: CString,
}

impl ObjectNames {
    /// Derives the names only from the names of the table and the text column, so that the
    /// statements that remove objects find the objects that were added.
    pub fn new(table: &CStr, text: &CStr) -> Self {
        let in_table = |label| catalog::derived_name(text, None, label);
        let in_schema = |label| catalog::derived_name(table, Some(text), label);
        ObjectNames {
            search_index: in_schema(c"neardup"),
            fingerprint: in_table(c"neardup_fp"),
            fingerprint_index: in_schema(c"neardup_fp"),
            mark: in_table(c"neardup_of"),
            mark_index: in_schema(c"neardup_of"),
            trigger: in_table(c"neardup"),
            marks_trigger: in_table(c"neardup_marks"),
        }
    }
}
