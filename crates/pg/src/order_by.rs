//! ORDER BY lists that a caller passes as text. The server evaluates their SQL expressions with the
//! caller's rights.
use neardup_blocktree::key::Tid;

use super::caller_sql::{Clause, ROW_ADDRESSES, in_parameter, select_addresses};
use super::rel::Rel;

/// ORDER BY list as the caller wrote it, such as `length(body) DESC, id`.
pub struct OrderBy {
    /// Name of the SQL parameter in which the caller passed the list, for error messages.
    name: &'static str,
    /// The list in the server's encoding.
    text: Vec<u8>,
}

impl OrderBy {
    /// Makes an ORDER BY list from the text of the SQL parameter `name`. Raises an error unless the
    /// text is one ORDER BY list, without another clause or statement. Column names are resolved
    /// later, when a query with the list runs with the caller's rights.
    pub fn parse(name: &'static str, text: &[u8]) -> Self {
        let clause = Clause {
            before: b"SELECT ORDER BY ",
            is_alone: |parsed| parsed.is_order(),
            error_predicate: "must be a list of ORDER BY expressions",
            hint: "Write expressions that could follow ORDER BY, such as 'length(body) DESC, id'.",
        };
        clause.check(name, text);
        let text = text.to_vec();
        OrderBy { name, text }
    }

    /// Checks the list before its first use, by sorting no rows of `table`. The server then raises
    /// an error in the list, such as a column that does not exist or a missing privilege.
    pub fn check(&self, table: Rel) {
        self.rows(table, &mut || None, |_| ());
    }

    /// Returns the list as SQL. The caller may append a comma and another expression.
    pub fn sql(&self) -> Vec<u8> {
        // The newline ends a comment in the text.
        [self.text.as_slice(), b"\n"].concat()
    }

    /// Sorts rows of a table by this ORDER BY list. `next` returns the address of one row at each
    /// call, and `None` after the last row. `each` is called with the addresses in sort order. Rows
    /// that the list does not distinguish are in the order of their addresses. The sort runs as a
    /// query with the caller's rights and `work_mem`, and with the active snapshot.
    pub fn rows(&self, table: Rel, next: &mut dyn FnMut() -> Option<Tid>, each: impl FnMut(Tid)) {
        let query = [
            b"SELECT ctid FROM ONLY ",
            table.qualified_name().as_slice(),
            b" WHERE ctid OPERATOR(pg_catalog.=) ANY (SELECT ctid_of_row FROM \"",
            ROW_ADDRESSES.to_bytes(),
            b"\") ORDER BY ",
            &self.text,
            b"\n, ctid",
        ]
        .concat();
        in_parameter(self.name, || select_addresses(&query, Some(next), each));
    }
}
