//! Indexes on MinHash signatures: each row stands in one table for each band of its signature.
pub mod build;
pub mod options;
pub mod search;

use neardup_blocktree::bands::Bands;
use neardup_blocktree::key::{EntryKey, Key, Tid};
use pgrx::{PgSqlErrorCode, pg_sys};

use super::index::{Index, name};
use super::keys::Layout;
use crate::pg::errors::UserError;
use crate::pg::memory_context::OwnContext;
use crate::pg::rel::Rel;
use crate::pg::value::Value;
use crate::types::signature::Signature;

/// Hash of the scheme and the seed of a signature, for [`Bands::hash`]: equal for all that can be
/// compared.
pub fn scheme_hash(signature: &Signature) -> u64 {
    (signature.seed ^ u64::from(signature.scheme.code()) << 56).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Raises an error unless a signature is as long as those of an index.
pub fn expect_length(relation: Rel, bands: &Bands, signature: &Signature) {
    let hashes = signature.values.len();
    if hashes != bands.hashes() {
        let name = name(relation);
        UserError::new(
            PgSqlErrorCode::ERRCODE_DATA_EXCEPTION,
            format!("signature has another length than those of index {name}"),
        )
        .detail(format!(
            "It has {hashes} hashes; the index is for {}.",
            bands.hashes()
        ))
        .hint(format!(
            "Make the index WITH (hashes = {hashes}), or the signature with hashes => {}.",
            bands.hashes()
        ))
        .raise();
    }
}

/// Returns whether an index is one on signatures.
pub fn is_on_signatures(index: Rel) -> bool {
    Layout::of(index).signatures
}

/// Calls a function with a signature. What it takes to read it from TOAST is given back afterwards:
/// a caller may do so for millions of rows before the server frees anything.
///
/// # Safety
/// The datum is a signature.
pub unsafe fn with_signature<T>(datum: pg_sys::Datum, each: impl FnOnce(&Signature) -> T) -> T {
    // SAFETY: the caller's promise; the context outlives the signature in it.
    unsafe {
        if pgrx::varlena::varatt_is_4b_u(datum.cast_mut_ptr()) {
            return each(&Signature::from_datum(datum));
        }
        let context = OwnContext::new(c"neardup signature");
        each(&context.run(|| Signature::from_datum(datum)))
    }
}

/// The same with a value of the last column of an index on signatures.
pub fn with_signature_of<T>(index: Rel, value: Value, each: impl FnOnce(&Signature) -> T) -> T {
    assert!(is_on_signatures(index));
    assert_eq!(
        value.type_oid(),
        index.attribute(index.column_count()).atttypid
    );
    // SAFETY: values of this column are signatures.
    unsafe { with_signature(value.datum(), each) }
}

/// The words that all keys of a row share, and whether it has a signature.
///
/// # Safety
/// The index is one on signatures; values and flags are one for each of its columns.
pub unsafe fn row_key<const N: usize>(
    index: &Index<N>,
    values: *const pg_sys::Datum,
    isnull: *const bool,
) -> (Key<N>, bool) {
    // SAFETY: the caller's promise.
    unsafe {
        let column = index.layout.scope_columns;
        let scope = index.layout.row_scope(index.relation(), values, isnull);
        let (Some(bands), false) = (&index.bands, *isnull.add(column)) else {
            return (Bands::row(scope, &[0; 2]), false);
        };
        let sketch = with_signature(*values.add(column), |signature| {
            expect_length(index.relation(), bands, signature);
            bands.sketch(signature.values)
        });
        (Bands::row(scope, &sketch), true)
    }
}

/// Adds a row to the index: to the table of each band, one after the other, as rows with a
/// fingerprint are added.
///
/// # Safety
/// As for [`row_key`].
pub unsafe fn insert<const N: usize>(
    mut index: Index<N>,
    values: *const pg_sys::Datum,
    isnull: *const bool,
    tid: Tid,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let column = index.layout.scope_columns;
        let scope = index.layout.row_scope(index.relation(), values, isnull);
        let tree = index.tree();
        let add = |table, key| index.or_corrupt(tree.insert(&EntryKey { table, key, tid }));
        match &index.bands {
            Some(bands) if !*isnull.add(column) => {
                with_signature(*values.add(column), |signature| {
                    expect_length(index.relation(), bands, signature);
                    let (kind, sketch) = (scheme_hash(signature), bands.sketch(signature.values));
                    for band in 0..bands.count() {
                        let key = bands.key(band, signature.values, kind, scope, &sketch);
                        add(band as u16, key);
                    }
                });
            }
            _ => add(index.design.null_table(), Bands::row(scope, &[0; 2])),
        }
        let root = tree.root();
        index.remember_root(root);
    }
}
