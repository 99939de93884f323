//! Lookup and comparison of rows by their signatures and scopes, which are read from the table.
use neardup_blocktree::bands::{Bands, RowSource};
use neardup_blocktree::key::Tid;

use crate::am::index::Index;
use crate::am::keys::Layout;
use crate::am::minhash::{scheme_hash, with_signature};
use crate::dedup::scope::{ScopeColumns, ScopeNumbers, Values};
use neardup_pg::index_columns::IndexColumns;
use neardup_pg::locked_index::LockedIndex;
use neardup_pg::rel::Rel;
use neardup_pg::storage::heap_fetch::HeapFetch;
use neardup_pg::value::Value;

/// Approximate memory of the scope values of a row in bytes, if the values are short.
const SCOPE_BYTES: usize = 128;

/// Signature and scope of a row.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SignatureRow {
    /// Hash of the scope, and the number of the scope among the scopes with this hash. Zeroes
    /// without a scope.
    scope: (u64, u32),
    /// Scheme and seed with which the signature was made.
    made: (u8, u64),
    /// Hash of scheme and seed, which is part of the hashes of bands.
    kind: u64,
    values: Vec<u32>,
}

impl SignatureRow {
    /// Returns the number of positions in which the signatures of two rows differ. Returns `None`
    /// if the scopes differ, or if the signatures differ in scheme, seed or length.
    fn mismatches(&self, other: &SignatureRow) -> Option<usize> {
        let of = |row: &SignatureRow| (row.scope, row.made, row.values.len());
        (of(self) == of(other)).then(|| {
            self.values.len() - neardup_sketch::minhash::matches(&self.values, &other.values)
        })
    }
}

impl SignatureRow {
    /// Returns the first band (group of positions) in which the signatures of two rows have equal
    /// hashes, counted from 0. Returns `None` if there is no such band. The two rows must have the
    /// same scope, and signatures of the same scheme, seed and length.
    pub fn first_shared(&self, other: &SignatureRow, bands: &Bands) -> Option<usize> {
        bands.first_shared(&self.values, &other.values, self.kind)
    }
}

/// Lookup of rows by the entries of a signature index. A found row has the number of its scope
/// among the scopes with the same hash. When a row with another scope hash is found, the numbers
/// begin again. Rows found after that cannot be compared with rows found before.
pub struct SignatureRows<'a> {
    rows: HeapFetch<'a>,
    columns: IndexColumns<'a>,
    index: Rel<'a>,
    layout: Layout,
    scope: Option<ScopeColumns<'a>>,
    numbers: ScopeNumbers,
}

impl<'a> SignatureRows<'a> {
    /// Creates a lookup for an index on signatures.
    pub fn new<const N: usize>(relations: &'a LockedIndex, index: &Index<N>) -> Self {
        SignatureRows {
            rows: HeapFetch::new(relations.table()),
            columns: IndexColumns::new(relations.table(), relations.index()),
            index: relations.index(),
            layout: index.layout,
            scope: ScopeColumns::from_index(relations, &index.layout),
            numbers: ScopeNumbers::default(),
        }
    }

    /// Returns the address at which the snapshot sees the row of an index entry, and the row's
    /// signature and scope. Returns `None` for an invisible row or a row in no scope. If the row
    /// has another scope hash than the row found before it, the numbers of scopes begin again. Then
    /// the result cannot be compared with earlier rows.
    pub fn find(&mut self, entry: Tid) -> Option<(Tid, SignatureRow)> {
        self.find_within(entry, None)
    }

    /// Compares the row of an index entry with a row that was found earlier. Returns the address at
    /// which the snapshot sees the row of the entry, and the number of positions in which the
    /// signatures differ. Returns `None` if the row of the entry is invisible, if the rows differ
    /// in scope, or if the signatures differ in scheme, seed or length.
    pub fn compare(&mut self, entry: Tid, other: &SignatureRow) -> Option<(Tid, usize)> {
        let (row, differing, _) = self.compare_and_return(entry, other)?;
        Some((row, differing))
    }

    /// Like [`SignatureRows::compare`], but also returns the signature and scope of the entry's
    /// row.
    pub fn compare_and_return(
        &mut self,
        entry: Tid,
        other: &SignatureRow,
    ) -> Option<(Tid, usize, SignatureRow)> {
        let (row, found) = self.find_within(entry, Some(other.scope.0))?;
        Some((row, found.mismatches(other)?, found))
    }

    /// Like [`SignatureRows::find`]. If `only` is a hash, also returns `None` if the row's scope
    /// has another hash.
    fn find_within(&mut self, entry: Tid, only: Option<u64>) -> Option<(Tid, SignatureRow)> {
        let (row, mut found, values) = self.read(entry, only)?;
        if let Some((scope, values)) = self.scope.as_ref().zip(values) {
            found.scope.1 = self.numbers.number(scope, found.scope.0, values);
        }
        Some((row, found))
    }

    /// Reads the row of an index entry. Returns its address, the row without the number of its
    /// scope, and the values of its scope. Returns `None` for an invisible row or a row with NULL
    /// in an index column. If `only` is a hash, also returns `None` if the scope has another hash.
    fn read(
        &mut self,
        entry: Tid,
        only: Option<u64>,
    ) -> Option<(Tid, SignatureRow, Option<Values>)> {
        pgrx::check_for_interrupts!();
        let row = self.rows.find(entry)?;
        let slot = self.rows.slot();
        let found = self.columns.with(slot, |values| {
            let values = values[..=self.layout.scope_columns].iter();
            let values: Vec<Value> = values.copied().collect::<Option<_>>()?;
            let hash = (self
                .layout
                .row_scope(self.index, |column| Some(values[column])))
            .unwrap_or(0);
            if only.is_some_and(|only| only != hash) {
                return None;
            }
            let own = values[self.layout.scope_columns];
            Some(with_signature(own, |signature| SignatureRow {
                scope: (hash, 0),
                made: (signature.scheme_code(), signature.seed),
                kind: scheme_hash(signature),
                values: signature.values.to_vec(),
            }))
        })?;
        let values = (self.scope.as_ref()).and_then(|scope| scope.values(slot));
        Some((row, found, values))
    }
}

/// Lookup of rows by the entries of a signature index. All rows can be compared with each other, in
/// any order and even across scopes, unlike those of [`SignatureRows`].
pub struct ComparedRows<'a> {
    rows: SignatureRows<'a>,
    /// Number of positions of a signature.
    hashes: usize,
    /// Maximum number of positions in which near signatures differ.
    mismatches: usize,
}

impl<'a> ComparedRows<'a> {
    /// Creates a lookup for signatures of `hashes` positions. Near signatures differ in at most
    /// `mismatches` positions.
    pub fn new(rows: SignatureRows<'a>, hashes: usize, mismatches: usize) -> Self {
        ComparedRows {
            rows,
            hashes,
            mismatches,
        }
    }
}

impl ComparedRows<'_> {
    /// Returns the number of positions in which the signatures of two rows differ. Returns `None`
    /// if the scopes differ, or if the signatures differ in scheme, seed or length.
    pub fn differing(
        &self,
        (a, a_scope): &ComparedRow,
        (b, b_scope): &ComparedRow,
    ) -> Option<usize> {
        let differing = a.mismatches(b)?;
        let is_one_scope = match (&self.rows.scope, a_scope, b_scope) {
            (Some(scope), Some(a), Some(b)) => scope.equal(a, b),
            _ => true,
        };
        is_one_scope.then_some(differing)
    }

    /// Returns the address at which the snapshot sees the row of an index entry, and the row.
    /// Returns `None` if the row is invisible or in no scope.
    pub fn find(&mut self, entry: Tid) -> Option<(Tid, ComparedRow)> {
        let (row, found, values) = self.rows.read(entry, None)?;
        Some((row, (found, values)))
    }
}

/// Row with its signature, and the values of its scope (`None` if the index has no scope).
/// [`ComparedRows::differing`] compares any two such rows.
pub type ComparedRow = (SignatureRow, Option<Values>);

impl RowSource for ComparedRows<'_> {
    type Row = ComparedRow;

    fn row_bytes(&self) -> usize {
        size_of::<u32>() * self.hashes + SCOPE_BYTES
    }

    fn fetch(&mut self, entry: Tid) -> Option<Self::Row> {
        Some(self.find(entry)?.1)
    }

    fn are_near(&self, a: &Self::Row, b: &Self::Row) -> bool {
        self.differing(a, b)
            .is_some_and(|differing| differing <= self.mismatches)
    }
}
