//! From the columns of an index to the keys of its tree.
//!
//! The last column is the fingerprint, a ball around one, or a signature ([`super::bands`]).
//! Columns before it are a scope: their values are hashed into the first word of the key, so that
//! rows of one tenant, site or language stand together. Two scopes may share a hash; rows found
//! through one are checked again.
use neardup_blocktree::key::Key;
use pgrx::{PgSqlErrorCode, pg_sys};

use crate::pg::equality::EqualColumn;
use crate::pg::errors::UserError;
use crate::pg::rel::Rel;
use crate::pg::value::Value;

/// Runs a block with a constant that is the number of words of an index's keys: 1, 2 or 4 for the
/// fingerprint, and one for the scope.
macro_rules! with_words {
    ($words:expr, $n:ident => $body:expr) => {
        match $words {
            1 => {
                const $n: usize = 1;
                $body
            }
            2 => {
                const $n: usize = 2;
                $body
            }
            3 => {
                const $n: usize = 3;
                $body
            }
            4 => {
                const $n: usize = 4;
                $body
            }
            5 => {
                const $n: usize = 5;
                $body
            }
            words => unreachable!("keys of {words} words are refused when an index is opened"),
        }
    };
}
pub(crate) use with_words;

/// Layout of an index's keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Columns in front of the fingerprint's.
    pub scope_columns: usize,
    /// 64-bit words of the fingerprint.
    pub fingerprint_words: usize,
    /// True if the last column's values are balls, whose centres are indexed.
    pub balls: bool,
    /// True if they are MinHash signatures, whose bands are indexed ([`super::bands`]).
    pub signatures: bool,
}

impl Layout {
    /// The layout of an open index of this access method; raises an error if its columns make none.
    pub fn of(index: Rel) -> Layout {
        let columns = usize::from(index.column_count() as u16);
        assert_eq!(columns, index.index_form().key_columns);
        let last = columns - 1;
        let stored = index.attribute(columns as i16);
        // SAFETY: an index has as many operator families and input types as key columns.
        let of_column = |column: usize| unsafe {
            let entry = &*index.raw();
            (
                *entry.rd_opfamily.add(column),
                *entry.rd_opcintype.add(column),
            )
        };
        let (family, input) = of_column(last);
        let signatures = stored.attlen == -1;
        let fingerprint_words = match stored.attlen {
            8 => 1,
            16 => 2,
            32 => 4,
            -1 => neardup_blocktree::bands::WORDS,
            _ => refuse(),
        };
        // SAFETY: a catalogue look-up.
        let balls = !signatures && unsafe { pg_sys::get_typlen(input) } == stored.attlen + 8;
        if !balls && !is_fingerprint_family(family, input) {
            refuse();
        }
        // What is compared by nearness is no scope.
        let is_near = |(family, input)| {
            is_fingerprint_family(family, input)
                || super::validate::compares_nearness(family, input)
        };
        if (0..last).any(|column| is_near(of_column(column))) {
            refuse();
        }
        Layout {
            scope_columns: last,
            fingerprint_words,
            balls,
            signatures,
        }
    }

    /// Words of a key in front of the fingerprint's.
    pub fn scope_words(&self) -> usize {
        usize::from(self.scope_columns > 0)
    }

    /// Words of a key.
    pub fn words(&self) -> usize {
        self.scope_words() + self.fingerprint_words
    }

    /// The key of a row, before any table's permutation, and whether it has a fingerprint.
    ///
    /// # Safety
    /// The relation has this layout and `N` words; values and flags are one for each column.
    pub unsafe fn key<const N: usize>(
        &self,
        index: Rel,
        values: *const pg_sys::Datum,
        isnull: *const bool,
    ) -> (Key<N>, bool) {
        let mut key = [0; N];
        // SAFETY: the caller's promise.
        unsafe {
            let last = self.scope_columns;
            let has_fingerprint = !*isnull.add(last);
            if has_fingerprint {
                self.put_fingerprint(&mut key, *values.add(last));
            }
            if let Some(scope) = self.row_scope(index, values, isnull) {
                key[0] = scope;
            }
            (key, has_fingerprint)
        }
    }

    /// The word that stands for a row's scope; `None` if the index has none.
    ///
    /// # Safety
    /// As for [`Layout::key`].
    pub unsafe fn row_scope(
        &self,
        index: Rel,
        values: *const pg_sys::Datum,
        isnull: *const bool,
    ) -> Option<u64> {
        let hashes = (0..self.scope_columns).map(|column| {
            // SAFETY: the caller's promise.
            unsafe {
                let null = *isnull.add(column);
                let value_type = index.attribute(column as i16 + 1).atttypid;
                (!null).then(|| hash(index, column, value_type, *values.add(column)))
            }
        });
        (self.scope_columns > 0).then(|| scope(hashes))
    }

    /// Writes a fingerprint, or a ball's centre, behind the scope of a key.
    ///
    /// # Safety
    /// The datum is of a type of as many words, or of a ball around such a one.
    pub unsafe fn put_fingerprint<const N: usize>(&self, key: &mut Key<N>, datum: pg_sys::Datum) {
        let words = &mut key[self.scope_words()..];
        if self.fingerprint_words == 1 && !self.balls {
            words[0] = datum.value() as u64;
        } else {
            // SAFETY: passed by reference; a ball begins with its centre.
            let from = unsafe {
                core::slice::from_raw_parts(datum.cast_mut_ptr::<u64>(), self.fingerprint_words)
            };
            words.copy_from_slice(from);
        }
    }

    /// A key's fingerprint as the server takes it. It may point into the key.
    pub fn fingerprint_datum<const N: usize>(&self, key: &Key<N>) -> pg_sys::Datum {
        match &key[self.scope_words()..] {
            [word] => pg_sys::Datum::from(*word),
            words => pg_sys::Datum::from(words.as_ptr()),
        }
    }

    /// Reads a ball: its centre into a key, and its radius; `None` for the empty ball.
    ///
    /// # Safety
    /// The datum is a ball around a fingerprint of as many words.
    pub unsafe fn ball<const N: usize>(
        &self,
        key: &mut Key<N>,
        datum: pg_sys::Datum,
    ) -> Option<u32> {
        // SAFETY: a ball is its centre's words, and then its radius.
        let radius = unsafe {
            let words = datum.cast_mut_ptr::<u64>();
            let center = core::slice::from_raw_parts(words, self.fingerprint_words);
            key[self.scope_words()..].copy_from_slice(center);
            words.add(self.fingerprint_words).cast::<i32>().read()
        };
        u32::try_from(radius).ok()
    }
}

/// Raises an error unless the values of all scope columns have a hash, and one that agrees with
/// the equality of the column's operator class.
///
/// # Safety
/// The relation is an open index of this layout.
pub unsafe fn require_hashes(index: Rel, layout: &Layout) {
    for column in 0..layout.scope_columns {
        // SAFETY: the caller's promise.
        unsafe {
            hash_function(index.attribute(column as i16 + 1).atttypid);
            require_same_equality(index, column);
        }
    }
}

/// Raises an error if a scope column's operator class compares otherwise than the column's own
/// type. A type such as citext can be taken as text, but then equal values would be told apart,
/// and hashed by a function that does not fit the comparison.
unsafe fn require_same_equality(index: Rel, column: usize) {
    // SAFETY: an open index has as many operator families as columns; the rest looks up catalogues.
    unsafe {
        let hash_family = |value_type| {
            let flag = pg_sys::TYPECACHE_HASH_OPFAMILY as i32;
            (*pg_sys::lookup_type_cache(value_type, flag)).hash_opf
        };
        let (own, input) = (
            index.attribute(column as i16 + 1).atttypid,
            *(*index.raw()).rd_opcintype.add(column),
        );
        let family = hash_family(own);
        let equalities =
            super::validate::equalities(*(*index.raw()).rd_opfamily.add(column), input);
        let agree = equalities.into_iter().all(|(operator, right)| {
            let is_equality = pg_sys::get_op_opfamily_strategy(operator, family)
                == pg_sys::HTEqualStrategyNumber as i32;
            let is_pseudo = pg_sys::get_typtype(right) as u8 == pg_sys::TYPTYPE_PSEUDO;
            is_equality && (is_pseudo || hash_family(right) == family)
        });
        if !agree {
            refuse_equality(index, column, own, input);
        }
    }
}

unsafe fn refuse_equality(index: Rel, column: usize, own: pg_sys::Oid, input: pg_sys::Oid) -> ! {
    let text = |name: *const core::ffi::c_char| {
        // SAFETY: names are C strings.
        let name = unsafe { core::ffi::CStr::from_ptr(name) };
        name.to_string_lossy().into_owned()
    };
    // SAFETY: the caller's relation is open; types of columns exist.
    let (name, own, base, input) = unsafe {
        (
            index
                .column_name(column as i16 + 1)
                .to_string_lossy()
                .into_owned(),
            text(pg_sys::format_type_be(own)),
            text(pg_sys::format_type_be(pg_sys::getBaseType(own))),
            text(pg_sys::format_type_be(input)),
        )
    };
    UserError::new(
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        format!("column \"{name}\" of type {own} cannot be compared in a neardup index"),
    )
    .detail(format!(
        "The operator class compares its values as {input}, whose equality is not that of {own}."
    ))
    .hint(format!(
        "Index an expression that says which equality is meant, such as (lower({name}::text)) or \
         ({name}::text); or have a superuser create an operator class: CREATE OPERATOR CLASS name \
         DEFAULT FOR TYPE {base} USING neardup AS OPERATOR 3 = ({base}, {base})."
    ))
    .raise()
}

/// The hash of a scope column's value.
///
/// # Safety
/// The relation has such a column, and the value is of that type, which hashes like the column's.
pub unsafe fn hash(
    index: Rel,
    column: usize,
    value_type: pg_sys::Oid,
    value: pg_sys::Datum,
) -> u64 {
    // SAFETY: the caller's promise.
    unsafe {
        let collation = *(*index.raw()).rd_indcollation.add(column);
        hash_of(value_type, collation, value)
    }
}

/// The hash of a value, by a collation.
///
/// # Safety
/// The value is of the type.
pub unsafe fn hash_of(
    value_type: pg_sys::Oid,
    collation: pg_sys::Oid,
    value: pg_sys::Datum,
) -> u64 {
    let seed = pg_sys::Datum::from(0_i64);
    // SAFETY: the caller's promise.
    unsafe {
        pg_sys::FunctionCall2Coll(hash_function(value_type), collation, value, seed).value() as u64
    }
}

/// The words of a value of a type of fingerprints of that width. Raises an internal error for
/// values of another width.
pub fn fingerprint_words<const N: usize>(value: Value) -> Key<N> {
    assert_eq!(value.length(), 8 * N as i16);
    let mut key = [0; N];
    match N {
        1 => key[0] = value.datum().value() as u64,
        _ => {
            let words = value.datum().cast_mut_ptr::<u64>();
            // SAFETY: a value of this length, which is passed by reference; fingerprints are
            // aligned as words.
            key.copy_from_slice(unsafe { core::slice::from_raw_parts(words, N) });
        }
    }
    key
}

/// The word that stands for the scope of a row with these values in an index's columns; `None` if
/// the index has none.
pub fn row_scope(index: Rel, layout: &Layout, values: &[Value]) -> Option<u64> {
    let hashes = (0..layout.scope_columns).map(|column| {
        let value_type = index.attribute(column as i16 + 1).atttypid;
        assert_eq!(values[column].type_oid(), value_type);
        // SAFETY: the value is of the column's type.
        Some(unsafe { hash(index, column, value_type, values[column].datum()) })
    });
    (layout.scope_columns > 0).then(|| scope(hashes))
}

/// The hash of a value of a scope column, as the index has it: the same for equal values.
pub fn scope_value_hash(column: &EqualColumn, value: Value) -> u64 {
    assert_eq!(value.type_oid(), column.value_type);
    // SAFETY: the value is of the type.
    unsafe { hash_of(column.value_type, column.collation(), value.datum()) }
}

/// The extended hash function of a type's default hash operator class; raises an error if it has
/// none.
unsafe fn hash_function(value_type: pg_sys::Oid) -> *mut pg_sys::FmgrInfo {
    // SAFETY: look-ups in catalogues. The type cache's entries stay for the backend's life.
    unsafe {
        let flag = pg_sys::TYPECACHE_HASH_EXTENDED_PROC_FINFO as i32;
        let entry = pg_sys::lookup_type_cache(value_type, flag);
        let function = &raw mut (*entry).hash_extended_proc_finfo;
        if (*function).fn_oid == pg_sys::InvalidOid {
            // The type cache knows the elements of a range, but not of a domain over one.
            let base = pg_sys::getBaseType(value_type);
            if base != value_type {
                return hash_function(base);
            }
            let name = core::ffi::CStr::from_ptr(pg_sys::format_type_be(value_type));
            UserError::new(
                PgSqlErrorCode::ERRCODE_UNDEFINED_FUNCTION,
                format!(
                    "could not identify an extended hash function for type {}",
                    name.to_string_lossy()
                ),
            )
            .detail("A neardup index keeps the hash of columns before the fingerprint.")
            .hint("These need a type with a default hash operator class.")
            .raise();
        }
        function
    }
}

/// The word of a key that stands for the values, or NULLs, of all scope columns.
pub fn scope(hashes: impl Iterator<Item = Option<u64>>) -> u64 {
    hashes.fold(0, |scope: u64, hash| {
        let mixed = scope.rotate_left(23) ^ hash.unwrap_or(0x9e37_79b9_7f4a_7c15);
        mixed.wrapping_mul(0xff51_afd7_ed55_8ccd)
    })
}

/// Returns whether an operator family has `<@` with a ball, for a type.
fn is_fingerprint_family(family: pg_sys::Oid, input: pg_sys::Oid) -> bool {
    super::validate::ball_operator(family, input) != pg_sys::InvalidOid
}

fn refuse() -> ! {
    UserError::new(
        PgSqlErrorCode::ERRCODE_INVALID_OBJECT_DEFINITION,
        "a neardup index needs one fingerprint or signature, as its last column",
    )
    .detail("Columns before it are compared for equality and keep near-duplicates apart.")
    .hint(
        "For 64-bit hashes in a bigint column name the operator class: (hash bigint_hamming_ops).",
    )
    .raise()
}
