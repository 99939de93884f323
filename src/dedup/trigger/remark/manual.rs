//! Rows whose marks a user has set and `neardup_remark` keeps, selected by a condition:
//! `neardup_remark(manual => ...)`.
//!
//! Such a row keeps its mark, or stays an original if it has none. The row that a kept mark names
//! is an original, even if it is near another row. No mark may name a marked row, so a mark that
//! names a row with a kept mark is replaced by that kept mark.
use std::ffi::CString;

use crate::dedup::trigger::marks::{LONGEST_CHAIN, Marks};
use neardup_pg::caller_sql::Condition;
use neardup_pg::spi::{self, Sees};
use neardup_pg::value::{OwnedValue, Value};

/// SQL for the rows that keep the marks that a user has set.
pub struct Manual {
    /// SQL for two boolean columns in a query on the table. The first is true if the row keeps its
    /// mark. The second is true if a kept mark names the row.
    pub columns: Vec<u8>,
    /// Statement that reads the kept mark of the row with a key. Returns NULL if the row keeps no
    /// mark.
    next: CString,
}

/// Decision of `neardup_remark` about the mark of a row.
pub enum Kept {
    /// The row is an original.
    Original,
    /// The row gets this mark, which is its kept mark or the original that its kept mark leads to.
    Mark(OwnedValue),
    /// No mark is kept, so the row is compared with other rows.
    No,
}

impl Manual {
    /// Makes the SQL for a table whose rows keep their marks if they meet a condition. Without a
    /// condition, no row keeps its mark. `table`, `key` and `mark` are quoted names.
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

    /// Decides about the mark of a row. `is_kept` and `is_named` are the values of
    /// [`Manual::columns`] for the row. `own` is the row's key, and `mark` its present mark.
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

    /// Returns the key of the original that the kept mark `mark` of a row leads to. `own` is the
    /// key of the row itself. Returns `None` if no row has the key `mark`, or if the marks lead
    /// back to the row or form a circle.
    fn resolve(&self, marks: &Marks, own: Value, mark: Value) -> Option<OwnedValue> {
        let mut found = None;
        let mut key = marks.keyed(mark).to_owned();
        for _ in 0..LONGEST_CHAIN {
            if marks.equal(Some(key.get()), Some(own)) {
                return None;
            }
            match spi::first(&self.next, &[key.get()], Sees::Latest) {
                // No row has this key, so the previous row in the chain is the original. If this
                // key is the first in the chain, there is no original.
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
