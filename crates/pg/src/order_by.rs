//! An order that a caller gives as an SQL expression list. Its expressions are evaluated as the
//! caller.
use neardup_blocktree::key::Tid;
use pgrx::pg_sys;

use super::caller_sql::{Clause, ROWS, in_parameter, select_addresses};
use super::rel::Rel;
use super::tid::item_pointer;

/// List of expressions as after ORDER BY, as written by a caller, in the server's encoding.
pub struct OrderBy {
    /// The caller's parameter.
    name: &'static str,
    text: Vec<u8>,
}

impl OrderBy {
    /// Checks that a text is a list as after ORDER BY and nothing else: no further clause, no
    /// second statement. What its expressions mean is for the query to find out, with the caller's
    /// rights.
    pub fn parse(name: &'static str, text: &[u8]) -> Self {
        let clause = Clause {
            before: b"SELECT ORDER BY ",
            is_alone: |parsed| parsed.is_order(),
            wrong: "is no list of expressions to order by",
            hint: "Write what could follow ORDER BY, such as 'length(body) DESC, id'.",
        };
        clause.check(name, text);
        let text = text.to_vec();
        OrderBy { name, text }
    }

    /// Runs the query without rows, so that an error in it is raised now: a column that does not
    /// exist, a missing right.
    pub fn check(&self, table: Rel) {
        self.rows(table, &mut || None, |_| ());
    }

    /// Gives rows of a table, which `next` names by their addresses, in this order, those that are
    /// equal by address. The query runs as the caller's own, with the active
    /// snapshot, and with its `work_mem`.
    pub fn rows(&self, table: Rel, next: &mut dyn FnMut() -> Option<Tid>, each: impl FnMut(Tid)) {
        let query = [
            b"SELECT ctid FROM ONLY ",
            table.qualified_name().as_slice(),
            b" WHERE ctid OPERATOR(pg_catalog.=) ANY (SELECT ctid_of_row FROM \"",
            ROWS.to_bytes(),
            b"\") ORDER BY ",
            &self.text,
            b"\n, ctid",
        ]
        .concat();
        in_parameter(self.name, || select_addresses(&query, Some(next), each));
    }
}

/// An array of row addresses, in the current memory context.
pub fn tid_array(rows: &[Tid]) -> pg_sys::Datum {
    let mut pointers: Vec<pg_sys::ItemPointerData> =
        (rows.iter()).map(|&tid| item_pointer(tid)).collect();
    let mut datums: Vec<pg_sys::Datum> = (pointers.iter_mut())
        .map(|pointer| pg_sys::Datum::from(&raw mut *pointer))
        .collect();
    // SAFETY: addresses of six bytes each, passed by reference and aligned to two.
    let array = unsafe {
        pg_sys::construct_array(
            datums.as_mut_ptr(),
            datums.len() as i32,
            pg_sys::TIDOID,
            size_of::<pg_sys::ItemPointerData>() as i32,
            false,
            pg_sys::TYPALIGN_SHORT as core::ffi::c_char,
        )
    };
    pg_sys::Datum::from(array)
}
