//! Open relations: data of tables and indexes from the relation cache, and the triggers of tables.
use core::cell::Cell;
use core::ffi::CStr;
use core::marker::PhantomData;
use std::ffi::CString;

use pgrx::pg_sys;

use super::catalog::name_of;
use super::expr::Expr;
use super::local_rows::{Reader, require_local_rows};
use super::server::{self, owned};
use super::{catalog, compat};

/// Table or index that is open for `'a`.
#[derive(Clone, Copy)]
pub struct Rel<'a> {
    raw: pg_sys::Relation,
    _open: PhantomData<&'a ()>,
}

impl<'a> Rel<'a> {
    /// Wraps a relation that the server or the caller has opened.
    ///
    /// # Safety
    /// The relation is open and locked for `'a`.
    #[inline]
    pub unsafe fn new(raw: pg_sys::Relation) -> Self {
        Rel {
            raw,
            _open: PhantomData,
        }
    }

    /// Pointer to the server's entry of the relation cache.
    #[inline]
    pub fn raw(self) -> pg_sys::Relation {
        self.raw
    }

    #[inline]
    fn entry(&self) -> &pg_sys::RelationData {
        // SAFETY: the relation is open.
        unsafe { &*self.raw }
    }

    #[inline]
    fn class(&self) -> &pg_sys::FormData_pg_class {
        // SAFETY: each open relation has its row of pg_class.
        unsafe { &*self.entry().rd_rel }
    }

    /// OID of the relation.
    #[inline]
    pub fn oid(self) -> pg_sys::Oid {
        self.entry().rd_id
    }

    /// Name of the relation without its schema.
    pub fn name(self) -> CString {
        name_of(&self.class().relname)
    }

    /// Name of the relation without its schema, for messages. Bytes that are not UTF-8 are
    /// replaced.
    pub fn shown(self) -> String {
        self.name().to_string_lossy().into_owned()
    }

    /// OID of the relation's schema.
    pub fn schema(self) -> pg_sys::Oid {
        self.class().relnamespace
    }

    /// OID of the role that owns the relation.
    pub fn owner(self) -> pg_sys::Oid {
        self.class().relowner
    }

    /// Persistence of the relation (`RELPERSISTENCE_...`): permanent, unlogged or temporary.
    #[inline]
    pub fn persistence(self) -> u8 {
        self.class().relpersistence as u8
    }

    /// Number of the relation's file on disk.
    #[inline]
    pub fn file_number(self) -> u32 {
        compat::file_number(self.entry())
    }

    /// Adds one scan of this index to the server's statistics (`idx_scan`).
    pub fn count_index_scan(self) {
        // SAFETY: the relation is open.
        unsafe { compat::count_index_scan(self.raw) }
    }

    /// Returns whether changes of the relation are written to the write-ahead log.
    #[inline]
    pub fn needs_wal(self) -> bool {
        // As in the C macro: true for a permanent relation, unless its file is new in this
        // transaction and `wal_level` is `minimal`.
        let logs_new_files = server::wal_level() >= pg_sys::WalLevel::WAL_LEVEL_REPLICA as i32;
        self.persistence() == pg_sys::RELPERSISTENCE_PERMANENT
            && (logs_new_files || !compat::has_new_file(self.entry()))
    }

    /// Returns whether this is a temporary relation of the current session.
    pub fn is_local_temp(self) -> bool {
        self.entry().rd_islocaltemp
    }

    /// Name of the relation with its schema, each quoted if necessary, in the server's encoding.
    pub fn qualified_name(self) -> Vec<u8> {
        catalog::qualified(&catalog::schema_name(self.schema()), &self.name())
    }

    /// [`Rel::qualified_name`] as a string, for messages. Bytes that are not UTF-8 are replaced.
    pub fn shown_qualified(self) -> String {
        String::from_utf8_lossy(&self.qualified_name()).into_owned()
    }

    /// Number of columns of the relation, including dropped columns.
    #[inline]
    pub fn column_count(self) -> i16 {
        self.class().relnatts
    }

    /// Description of the column with this number, counted from 1.
    #[inline]
    pub fn attribute(self, column: i16) -> pg_sys::FormData_pg_attribute {
        // SAFETY: an open relation has the relation cache's description of its columns.
        unsafe { *compat::attribute(&*self.entry().rd_att, column) }
    }

    /// Descriptions of the columns that have not been dropped.
    pub fn attributes(self) -> impl Iterator<Item = pg_sys::FormData_pg_attribute> {
        let columns = (1..=self.column_count()).map(move |column| self.attribute(column));
        columns.filter(|attribute| !attribute.attisdropped)
    }

    /// Rows per block of the relation, from the row and page counts of the last VACUUM, ANALYZE or
    /// build; `None` if there are no counts.
    pub fn rows_per_block(self) -> Option<f64> {
        let form = self.class();
        let is_counted = form.reltuples >= 0.0 && form.relpages > 0;
        is_counted.then(|| f64::from(form.reltuples) / f64::from(form.relpages))
    }

    /// Name of the column with this number, counted from 1.
    pub fn column_name(self, column: i16) -> CString {
        name_of(&self.attribute(column).attname)
    }

    /// Number, counted from 1, of the column with this name; `None` if there is no such column or
    /// it is a system column.
    pub fn column_number(self, name: &CStr) -> Option<i16> {
        let mut columns = self.attributes();
        let found = columns.find(|column| name_of(&column.attname).as_c_str() == name);
        found.map(|column| column.attnum)
    }

    /// Returns whether the column with this number, counted from 1, is a generated column of either
    /// kind: stored or virtual.
    pub fn is_generated(self, column: i16) -> bool {
        let attribute = self.attribute(column);
        !attribute.attisdropped && attribute.attgenerated != 0
    }

    /// Returns whether the column with this number, counted from 1, is a stored generated column.
    pub fn is_stored_generated(self, column: i16) -> bool {
        let attribute = self.attribute(column);
        !attribute.attisdropped
            && attribute.attgenerated as u8 == pg_sys::ATTRIBUTE_GENERATED_STORED
    }

    /// Numbers of the columns from which a generated column is computed; 0 stands for the whole
    /// row. Empty if the column is not generated.
    pub fn columns_of_generated(self, column: i16) -> Vec<i16> {
        (self.generation_expression(column)).map_or_else(Vec::new, Expr::columns_used)
    }

    /// Expression of the generated column with this number, counted from 1; `None` if the column is
    /// not generated.
    pub fn generation_expression(&self, column: i16) -> Option<Expr<'_>> {
        // SAFETY: the relation is open, and the column has an expression, which is made in the
        // current memory context.
        self.is_generated(column).then(|| unsafe {
            Expr::new(pg_sys::build_column_default(self.raw, i32::from(column)))
        })
    }

    /// Returns whether other tables inherit from this table, or once did.
    pub fn may_have_children(self) -> bool {
        self.class().relhassubclass
    }

    /// Returns whether this table is a partition of another table.
    pub fn is_partition(self) -> bool {
        self.class().relispartition
    }

    /// Returns whether the table has rules, which rewrite statements on it.
    pub fn has_rules(self) -> bool {
        self.class().relhasrules
    }

    /// OIDs of the table's indexes, in the order in which the server inserts into them.
    pub fn indexes(self) -> Vec<pg_sys::Oid> {
        // SAFETY: the list is a copy, which is freed here.
        unsafe {
            let list = pg_sys::RelationGetIndexList(self.raw);
            let indexes = (0..pg_sys::list_length(list)).map(|i| pg_sys::list_nth_oid(list, i));
            let indexes = indexes.collect();
            pg_sys::list_free(list);
            indexes
        }
    }

    /// OID of the index of the table's primary key; `None` without a primary key.
    pub fn primary_key(self) -> Option<pg_sys::Oid> {
        // Listing the indexes also sets `rd_pkindex`.
        self.indexes();
        let oid = self.entry().rd_pkindex;
        (oid != pg_sys::InvalidOid).then_some(oid)
    }

    /// Returns the data of an index from the relation cache; `None` if this is not an index.
    fn index_parts(&self) -> Option<IndexParts<'_>> {
        use core::slice::from_raw_parts;
        let entry = self.entry();
        // SAFETY: null, or the row of pg_index, which contains its number of columns. An index has
        // an operator family, an input type and a collation for each key column.
        unsafe {
            let form = entry.rd_index.as_ref()?;
            let keys = form.indnkeyatts as usize;
            Some(IndexParts {
                form,
                columns: from_raw_parts(form.indkey.values.as_ptr(), form.indnatts as usize),
                families: from_raw_parts(entry.rd_opfamily, keys),
                inputs: from_raw_parts(entry.rd_opcintype, keys),
                collations: from_raw_parts(entry.rd_indcollation, keys),
            })
        }
    }

    /// Returns the index's row in pg_index as an [`IndexForm`]. Raises an internal error if this is
    /// not an index.
    pub fn index_form(self) -> IndexForm {
        let IndexParts { form, columns, .. } = self.index_parts().expect("an index");
        IndexForm {
            table: form.indrelid,
            is_valid: form.indisvalid,
            is_ready: form.indisready,
            is_unique_at_once: form.indisunique && form.indimmediate && !form.indisexclusion,
            is_deferrable: !form.indimmediate,
            nulls_equal: form.indnullsnotdistinct,
            key_columns: form.indnkeyatts as usize,
            columns: columns.to_vec(),
        }
    }

    /// Returns whether the index belongs to an exclusion constraint. The server then searches the
    /// index for conflicts after each insertion. Raises an internal error if this is not an index.
    pub fn is_for_exclusion(self) -> bool {
        self.index_parts().expect("an index").form.indisexclusion
    }

    /// Returns the position of a neardup index's searched column, counted from 0. Searches compare
    /// the values of this column. It is the last key column that is not a range: only ranges of an
    /// exclusion constraint may follow it. If all columns are ranges, returns the last one. Raises
    /// an internal error if this is not an index.
    pub fn searched_column(self) -> usize {
        let inputs = self.index_parts().expect("an index").inputs;
        let is_searched = |input: &pg_sys::Oid| *input != pg_sys::ANYRANGEOID;
        (inputs.iter().rposition(is_searched)).unwrap_or(inputs.len() - 1)
    }

    /// Returns the operator class and the collation of the index's key column `column`, counted
    /// from 0. Raises an internal error if there is no such column.
    pub fn key_class(self, column: usize) -> KeyClass {
        let parts = self.index_parts().expect("an index");
        KeyClass {
            family: parts.families[column],
            input: parts.inputs[column],
            collation: parts.collations[column],
        }
    }

    /// Returns the OID of the operator class of the index's key column `column`, counted from 0.
    pub fn operator_class(self, column: usize) -> pg_sys::Oid {
        server::get_index_column_opclass(self.oid(), column as i32 + 1)
    }

    /// OID of the handler function of the index's access method.
    pub fn handler(self) -> pg_sys::Oid {
        self.entry().rd_amhandler
    }

    /// Number of blocks in a fork of the relation.
    pub fn blocks(self, fork: pg_sys::ForkNumber::Type) -> pg_sys::BlockNumber {
        // SAFETY: the relation is open.
        unsafe { pg_sys::RelationGetNumberOfBlocksInFork(self.raw, fork) }
    }

    /// Storage parameter `parallel_workers` of the table; `None` if it is not set.
    pub fn parallel_workers(self) -> Option<usize> {
        // SAFETY: the options of a table are null or a `StdRdOptions`.
        let options = unsafe {
            self.entry()
                .rd_options
                .cast::<pg_sys::StdRdOptions>()
                .as_ref()
        };
        usize::try_from(options?.parallel_workers).ok()
    }

    /// Returns whether this is an index of the access method `neardup`.
    #[inline]
    pub fn is_neardup_index(self) -> bool {
        thread_local! {
            static KNOWN: Cell<pg_sys::Oid> = const { Cell::new(pg_sys::InvalidOid) };
        }
        let access_method = self.class().relam;
        if access_method == pg_sys::InvalidOid || self.entry().rd_index.is_null() {
            return false;
        }
        if access_method == KNOWN.get() {
            return true;
        }
        let is_ours =
            server::get_am_name(access_method).is_some_and(|name| name.as_c_str() == c"neardup");
        if is_ours {
            KNOWN.set(access_method);
        }
        is_ours
    }

    /// Triggers of the table, in the order in which they fire.
    pub fn triggers(self) -> Vec<Trigger> {
        // SAFETY: null, or `numtriggers` triggers.
        unsafe {
            let Some(all) = self.entry().trigdesc.as_ref() else {
                return Vec::new();
            };
            let triggers = core::slice::from_raw_parts(all.triggers, all.numtriggers as usize);
            triggers
                .iter()
                .map(|trigger| Trigger::copy(trigger))
                .collect()
        }
    }
}

/// Data of an index, borrowed from the relation cache.
struct IndexParts<'a> {
    /// Row of pg_index.
    form: &'a pg_sys::FormData_pg_index,
    /// Attribute number of the table's column in each index column; 0 for an expression.
    columns: &'a [i16],
    // Operator family of each key column.
    families: &'a [pg_sys::Oid],
    /// OID of the input type of each key column's operator class.
    inputs: &'a [pg_sys::Oid],
    /// OID of the collation of each key column.
    collations: &'a [pg_sys::Oid],
}

/// Operator class and collation of one key column of an index, from the relation cache.
#[derive(Clone, Copy)]
pub struct KeyClass {
    /// OID of the class's operator family.
    pub family: pg_sys::Oid,
    /// OID of the type that the operator class is declared for.
    pub input: pg_sys::Oid,
    /// OID of the collation by which the column's values are compared.
    pub collation: pg_sys::Oid,
}

/// Data of an index from its row in pg_index.
pub struct IndexForm {
    /// OID of the indexed table.
    pub table: pg_sys::Oid,
    /// True if queries may use the index.
    pub is_valid: bool,
    /// True if INSERT and UPDATE write to the index.
    pub is_ready: bool,
    /// True if the index is unique and the server checks uniqueness when a row is written.
    pub is_unique_at_once: bool,
    /// True if the index belongs to a deferrable constraint.
    pub is_deferrable: bool,
    /// True if the unique index treats NULLs as equal.
    pub nulls_equal: bool,
    /// Number of key columns of the index, without INCLUDE columns.
    pub key_columns: usize,
    /// Attribute number of the table's column in each index column, including INCLUDE columns; 0
    /// for an expression.
    pub columns: Vec<i16>,
}

/// Trigger of a table, copied from the relation cache.
#[derive(PartialEq, Eq)]
pub struct Trigger {
    /// OID of the trigger.
    pub oid: pg_sys::Oid,
    /// Name of the trigger.
    pub name: CString,
    /// OID of the function that the trigger calls.
    pub function: pg_sys::Oid,
    /// Events, level and timing of the trigger, as flags (`TRIGGER_TYPE_...`).
    pub flags: u32,
    /// Replication roles in which the trigger fires (`TRIGGER_FIRES_...`).
    pub enabled: u8,
    /// Numbers of the columns in UPDATE OF; empty if an UPDATE of any column fires the trigger.
    pub columns: Vec<i16>,
    /// True if the trigger has a WHEN clause.
    pub has_condition: bool,
    /// Arguments of the trigger's function, from CREATE TRIGGER.
    pub arguments: Vec<CString>,
}

impl Trigger {
    /// Copies the server's description of a trigger.
    ///
    /// # Safety
    /// `trigger` is a valid trigger of the server.
    pub(super) unsafe fn copy(trigger: &pg_sys::Trigger) -> Self {
        // SAFETY: the caller's promise. The arrays have the stored lengths.
        unsafe {
            let columns = match trigger.tgnattr {
                0 => &[],
                count => core::slice::from_raw_parts(trigger.tgattr, count as usize),
            };
            let argument = |i: usize| owned(*trigger.tgargs.add(i)).unwrap_or_default();
            Trigger {
                oid: trigger.tgoid,
                name: owned(trigger.tgname).unwrap_or_default(),
                function: trigger.tgfoid,
                flags: u32::from(trigger.tgtype as u16),
                enabled: trigger.tgenabled as u8,
                columns: columns.to_vec(),
                has_condition: !trigger.tgqual.is_null(),
                arguments: (0..trigger.tgnargs as usize).map(argument).collect(),
            }
        }
    }

    /// Returns whether the trigger has all of these flags (`TRIGGER_TYPE_...`).
    pub fn fires_for(&self, flags: u32) -> bool {
        self.flags & flags == flags
    }
}

/// Relation that is closed when this value is dropped. The lock on it stays until the transaction
/// ends.
pub struct OpenRelation {
    raw: pg_sys::Relation,
    /// Transaction that opened the relation. The relation must not be used in a later one.
    transaction: u32,
}

impl OpenRelation {
    /// Opens a table and locks it in the mode `lock` (`AccessShareLock` etc.). Raises error 0A000
    /// if another engine, such as Citus, stores the table's rows.
    pub fn table(oid: pg_sys::Oid, lock: u32) -> Self {
        let table = Self::new(server::table_open(oid, lock as pg_sys::LOCKMODE));
        require_local_rows(oid, Reader::WholeTable);
        table
    }

    /// Opens an index and locks it in the mode `lock`. `NoLock` means that the caller has locked
    /// the index.
    pub fn index(oid: pg_sys::Oid, lock: u32) -> Self {
        Self::new(server::index_open(oid, lock as pg_sys::LOCKMODE))
    }

    /// Opens a relation of any kind and locks it in the mode `lock`. `NoLock` means that the caller
    /// has locked the relation.
    pub fn any(oid: pg_sys::Oid, lock: u32) -> Self {
        Self::new(server::relation_open(oid, lock as pg_sys::LOCKMODE))
    }

    #[inline]
    fn new(raw: pg_sys::Relation) -> Self {
        OpenRelation {
            raw,
            transaction: compat::local_transaction(),
        }
    }

    fn is_open(&self) -> bool {
        self.transaction == compat::local_transaction()
    }

    /// Handle of the open relation. Raises an internal error if the transaction that opened the
    /// relation has ended.
    pub fn rel(&self) -> Rel<'_> {
        assert!(self.is_open(), "a relation of an earlier transaction");
        // SAFETY: opened by us in this transaction. The rollback of a subtransaction unwinds the
        // owners of relations that were opened in it.
        unsafe { Rel::new(self.raw) }
    }
}

impl Drop for OpenRelation {
    fn drop(&mut self) {
        // After an error, and when the transaction ends, the server closes the relation.
        if !std::thread::panicking() && self.is_open() {
            // SAFETY: opened by us.
            unsafe { pg_sys::relation_close(self.raw, pg_sys::NoLock as pg_sys::LOCKMODE) }
        }
    }
}
