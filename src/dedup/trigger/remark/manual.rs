//! Rows whose marks were set by a user, selected by a condition: `neardup_remark(manual => ...)`.
//!
//! Such a row keeps its mark, and a row without a mark stays an original. The row that a kept mark
//! names is an original, even if it is near another row. No mark may name a marked row, so a mark
//! that names a row with a kept mark is replaced by that kept mark.
use std::ffi::CString;

use crate::dedup::trigger::marks::{LONGEST_CHAIN, Marks};
use neardup_pg::caller_sql::Condition;
use neardup_pg::spi::{self, Sees};
use neardup_pg::value::{OwnedValue, Value};

/// Statements about rows whose marks a user set.
pub struct Manual {
    /// Two columns of a query on the table: whether the row's mark is kept, and whether a kept
    /// mark names the row.
    pub columns: Vec<u8>,
    /// Reads the kept mark of the row with a key, or NULL.
    next: CString,
}

/// Decision about the mark of a row.
pub enum Kept {
    /// The row is an original.
    Original,
    /// The row keeps the mark of this key.
    Mark(OwnedValue),
    /// The row is compared with others.
    No,
}

impl Manual {
    /// Selects the rows that meet a condition, or no rows without one. The names are quoted.
    pub fn new(
        condition: Option<&Condition>,
        marks: &Marks,
        [table, key, mark]: [&[u8]; 3],
    ) -> Self {
        let text = |parts: &[&[u8]]| CString::new(parts.concat()).expect("made of C strings");
        let Some(condition) = condition.map(Condition::expression) else {
            return Manual {
                columns: b"false, false".to_vec(),
                next: CString::default(),
            };
        };
        let (condition, equals) = (condition.as_slice(), marks.equals.as_slice());
        let kept = [mark, b" IS NOT NULL AND ", condition].concat();
        let columns = [
            condition,
            b" IS TRUE, ",
            key,
            equals,
            b"ANY (SELECT ",
            mark,
            b" FROM ONLY ",
            table,
            b" WHERE ",
            &kept,
            b") IS TRUE",
        ];
        Manual {
            columns: columns.concat(),
            next: text(&[
                b"SELECT CASE WHEN ",
                &kept,
                b" THEN ",
                mark,
                b" END FROM ONLY ",
                table,
                b" WHERE ",
                key,
                equals,
                b"$1 LIMIT 1",
            ]),
        }
    }

    /// Decides about the mark of a row by the two columns. `own` is the row's key.
    pub fn decide(
        &self,
        [is_kept, is_named]: [bool; 2],
        marks: &Marks,
        own: Value,
        mark: Option<Value>,
    ) -> Kept {
        let kept = match (is_kept, mark) {
            (true, None) => return Kept::Original,
            (true, Some(mark)) => self.resolve(marks, own, mark),
            (false, _) => None,
        };
        match kept {
            Some(mark) => Kept::Mark(mark),
            None if is_named => Kept::Original,
            None => Kept::No,
        }
    }

    /// Returns the original that a kept mark leads to. `None` if it is missing or the row itself.
    fn resolve(&self, marks: &Marks, own: Value, mark: Value) -> Option<OwnedValue> {
        let mut found = None;
        let mut key = marks.keyed(mark).to_owned();
        for _ in 0..LONGEST_CHAIN {
            if marks.equal(Some(key.get()), Some(own)) {
                return None;
            }
            match spi::first(&self.next, &[key.get()], Sees::Latest) {
                // The row before it keeps no mark then.
                None => return found,
                Some(None) => return Some(key),
                Some(Some(next)) => {
                    let next = marks.keyed(next.get()).to_owned();
                    found = Some(std::mem::replace(&mut key, next));
                }
            }
        }
        None
    }
}
