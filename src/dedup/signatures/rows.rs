//! Rows with their signatures and scopes.
use neardup_blocktree::key::Tid;
use pgrx::pg_sys;

use crate::am::bands::with_signature;
use crate::am::index::Index;
use crate::am::keys::Layout;
use crate::dedup::scope::{IndexColumns, ScopeColumns, Values};
use crate::pg::compat;
use crate::pg::relation::LockedIndex;
use crate::storage::heap_fetch::HeapFetch;

/// What makes rows equal or near: the signature, within a scope.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct FoundRow {
    /// The scope's hash, and its number among those with the same; zeroes without a scope.
    scope: (u64, u32),
    /// The scheme and the seed.
    made: (u8, u64),
    values: Vec<u32>,
}

impl FoundRow {
    /// In how many positions two signatures differ; `None` if they are of different scopes, or were
    /// made in different ways.
    fn mismatches(&self, other: &FoundRow) -> Option<usize> {
        let of = |row: &FoundRow| (row.scope, row.made, row.values.len());
        (of(self) == of(other)).then(|| {
            self.values.len() - neardup_sketch::minhash::matches(&self.values, &other.values)
        })
    }
}

/// Looks up rows.
pub struct SignatureRows {
    rows: HeapFetch,
    columns: IndexColumns,
    index: pg_sys::Relation,
    layout: Layout,
    scope: Option<ScopeColumns>,
    /// The scopes with one hash, that of the row found last: what is compared stands together.
    hash: u64,
    known: Vec<Values>,
    /// Where their values live, and those of the row at hand.
    contexts: [pg_sys::MemoryContext; 2],
}

impl SignatureRows {
    /// # Safety
    /// The relations are open as long as the result lives, and the index is theirs, on signatures.
    pub unsafe fn new<const N: usize>(relations: &LockedIndex, index: &Index<N>) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            SignatureRows {
                rows: HeapFetch::new(relations.table()),
                columns: IndexColumns::of(relations.index()),
                index: relations.index(),
                layout: index.layout,
                scope: ScopeColumns::of(relations.index(), &index.layout),
                hash: 0,
                known: Vec::new(),
                contexts: [
                    compat::small_context(c"neardup scopes"),
                    compat::small_context(c"neardup row"),
                ],
            }
        }
    }

    /// The row of an entry: its address as the snapshot sees it, and what it holds. `None` if the
    /// snapshot sees none, or if it is in no scope. It compares with rows that were found before as
    /// long as only rows of scopes with the same hash come in between.
    ///
    /// # Safety
    /// As for [`SignatureRows::new`].
    pub unsafe fn find(&mut self, entry: Tid) -> Option<(Tid, FoundRow)> {
        // SAFETY: the caller's promise.
        unsafe { self.find_within(entry, None) }
    }

    /// The row of an entry and its mismatches with one found before; `None` if the snapshot sees
    /// none, or if nothing can be said of the two.
    ///
    /// # Safety
    /// As for [`SignatureRows::new`].
    pub unsafe fn compare(&mut self, entry: Tid, other: &FoundRow) -> Option<(Tid, usize)> {
        // SAFETY: the caller's promise.
        let (row, found) = unsafe { self.find_within(entry, Some(other.scope.0)) }?;
        Some((row, found.mismatches(other)?))
    }

    /// As [`SignatureRows::find`], of scopes with one hash only, if one is passed.
    ///
    /// # Safety
    /// As for [`SignatureRows::new`].
    unsafe fn find_within(&mut self, entry: Tid, only: Option<u64>) -> Option<(Tid, FoundRow)> {
        let row = self.rows.find(entry)?;
        let column = self.layout.scope_columns;
        // SAFETY: the caller's promise; values live as long as the context.
        unsafe {
            let [kept, passing] = self.contexts;
            pg_sys::MemoryContextReset(passing);
            let outer = pg_sys::MemoryContextSwitchTo(passing);
            let slot = self.rows.slot();
            let (layout, index) = (&self.layout, self.index);
            let found = self.columns.with(slot, |values, nulls| {
                if nulls[..=column].contains(&true) {
                    return None;
                }
                let hash = layout.row_scope(index, values.as_ptr(), nulls.as_ptr());
                let signature = with_signature(values[column], |signature| FoundRow {
                    scope: (hash.unwrap_or(0), 0),
                    made: (signature.scheme_code(), signature.seed),
                    values: signature.values.to_vec(),
                });
                Some(signature)
            });
            let found = found.filter(|found| only.is_none_or(|only| only == found.scope.0));
            let found = found.map(|mut found| {
                if let Some(scope) = &self.scope
                    && let Some(values) = scope.values(slot)
                {
                    if self.hash != found.scope.0 {
                        self.hash = found.scope.0;
                        self.known.clear();
                        pg_sys::MemoryContextReset(kept);
                    }
                    let known = &mut self.known;
                    let number = known.iter().position(|other| scope.equal(other, &values));
                    found.scope.1 = number.unwrap_or_else(|| {
                        pg_sys::MemoryContextSwitchTo(kept);
                        known.push(scope.copy(&values));
                        pg_sys::MemoryContextSwitchTo(passing);
                        known.len() - 1
                    }) as u32;
                }
                (row, found)
            });
            pg_sys::MemoryContextSwitchTo(outer);
            found
        }
    }
}

impl Drop for SignatureRows {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            for context in self.contexts {
                // SAFETY: made by us.
                unsafe { pg_sys::MemoryContextDelete(context) }
            }
        }
    }
}
