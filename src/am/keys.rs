//! Conversion of the values in an index's columns to keys of the tree. A key consists of 64-bit
//! words. The searched column holds the values that searches compare. The columns before it are
//! scope columns: the hash of their values is the first word of the key.
//!
//! The rows of one scope, such as a tenant, site or language, are thus next to each other in the
//! index. Two scopes may have the same hash, so the server rechecks the scope columns.
//!
//! In the index of an exclusion constraint, ranges may follow the searched column. They are not
//! part of keys, and the index does not store them. The server compares them in the table.
use neardup_blocktree::key::Key;
use neardup_blocktree::metric::Metric;
use pgrx::{PgSqlErrorCode, pg_sys};

use super::strategies::{EQUAL, RANGE_OVERLAP};
use super::suggestion::key_for;
use super::validate::{
    BALL_RADIUS_BYTES, ball_operator, compares_nearness, compares_overlap, equalities,
    metric_of_length,
};
use neardup_pg::catalog::{base_type, is_pseudo_type, quoted, strategy_in_family, type_name};
use neardup_pg::equality::EqualColumn;
use neardup_pg::errors::UserError;
use neardup_pg::hashing::{hash_family, hash_value, require_hash};
use neardup_pg::rel::{KeyClass, Rel};
use neardup_pg::server;
use neardup_pg::value::{Value, ValueType};

/// Runs a block of code in which `$n` is a constant with the value of `$words`, the number of words
/// in an index's keys. A key has 1, 2 or 4 words for the value, and one more if there are scope
/// columns.
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

/// Layout of an index's keys, as it follows from the index's columns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Number of scope columns: all columns before the searched one.
    pub scope_columns: usize,
    /// Metric of the searched column's values.
    pub metric: Metric,
    /// True if the searched column holds balls. A ball is a centre with a radius of its own. The
    /// index stores only the centres.
    pub has_balls: bool,
    /// True if ranges follow the searched column. The index does not store them.
    pub has_ranges: bool,
}

impl Layout {
    /// Returns the layout of an open neardup index. Raises an error if the columns or their
    /// operator classes are unsuitable.
    pub fn from_index(index: Rel) -> Layout {
        let columns = usize::from(index.column_count() as u16);
        assert_eq!(columns, index.index_form().key_columns);
        let searched = index.searched_column();
        let has_ranges = searched + 1 < columns;
        if has_ranges && !index.is_for_exclusion() {
            refuse(index);
        }
        let stored = index.attribute(searched as i16 + 1).attlen;
        let KeyClass { family, input, .. } = index.key_class(searched);
        let has_ball_operator = |family, input| ball_operator(family, input) != pg_sys::InvalidOid;
        let stores_centers = ValueType::from_oid(input).length() == stored + BALL_RADIUS_BYTES;
        let metric = match stored {
            8 | 16 | 32 if stores_centers => metric_of_length(stored),
            8 | 16 | 32 | -1 if has_ball_operator(family, input) => metric_of_length(stored),
            -1 if compares_overlap(family, input) => Metric::Overlap,
            _ => refuse(index),
        };
        // A column that is compared by nearness cannot be a scope.
        if (0..searched).any(|column| is_near(index.key_class(column))) {
            refuse(index);
        }
        Layout {
            scope_columns: searched,
            metric,
            has_balls: metric.is_hamming() && stores_centers,
            has_ranges,
        }
    }

    /// Returns whether the searched column holds signatures.
    pub fn is_on_signatures(&self) -> bool {
        self.metric.is_jaccard()
    }

    /// Returns whether the index stores whole values of the searched column, not only hashes or
    /// parts of them.
    pub fn stores_values(&self) -> bool {
        self.metric.is_hamming() && !self.has_balls
    }

    /// Number of words for the scope at the beginning of a key: 1 if there are scope columns, else
    /// 0.
    pub fn scope_words(&self) -> usize {
        usize::from(self.scope_columns > 0)
    }

    /// Number of 64-bit words in a key.
    pub fn words(&self) -> usize {
        self.scope_words() + self.metric.words()
    }

    /// Returns the first word of a row's key: the hash of the row's values in the scope columns.
    /// `None` if the index has no scope columns. `value` takes the number of an index column,
    /// counted from 0, and returns the row's value in this column, or `None` for NULL.
    #[inline]
    pub fn row_scope<'v>(
        &self,
        index: Rel,
        value: impl Fn(usize) -> Option<Value<'v>>,
    ) -> Option<u64> {
        let hash = |column| value(column).map(|value| scope_hash(index, column, value));
        (self.scope_columns > 0).then(|| scope((0..self.scope_columns).map(hash)))
    }

    /// Makes a key with the scope hash `scope` and zeros for the value. `scope` must be `None` if
    /// the index has no scope columns.
    pub fn key_in_scope<const N: usize>(&self, scope: Option<u64>) -> Key<N> {
        let mut key = [0; N];
        if let Some(scope) = scope {
            key[0] = scope;
        }
        key
    }

    /// Writes a fingerprint, or the centre of a ball, into `key`, after the word for the scope.
    #[inline]
    pub fn put_fingerprint<const N: usize>(&self, key: &mut Key<N>, value: Value) {
        value.copy_words(&mut key[self.scope_words()..]);
    }

    /// Returns a key's fingerprint as a value of the index's searched column. The value may point
    /// into the key.
    pub fn fingerprint<'k, const N: usize>(&self, index: Rel, key: &'k Key<N>) -> Value<'k> {
        let stored = index.attribute(self.scope_columns as i16 + 1);
        assert!(self.stores_values() && self.metric == metric_of_length(stored.attlen));
        Value::from_words(&key[self.scope_words()..], &stored)
    }

    /// Returns the centre and the radius of a ball of fingerprints. The centre is a key whose word
    /// for the scope is 0, and the radius is in bits. `None` if the radius is negative, because
    /// such a ball contains no fingerprint.
    pub fn ball<const N: usize>(&self, ball: Value) -> Option<(Key<N>, u32)> {
        let mut key = self.key_in_scope(None);
        let (mut words, center) = ([0; 5], self.metric.words());
        // A ball has the centre's words and then the radius in the first half of a word.
        ball.copy_words(&mut words[..=center]);
        key[self.scope_words()..].copy_from_slice(&words[..center]);
        let [a, b, c, d, ..] = words[center].to_ne_bytes();
        let radius = u32::try_from(i32::from_ne_bytes([a, b, c, d])).ok()?;
        Some((key, radius))
    }
}

/// Returns whether an index is on signatures (true) or fingerprints (false). Raises an error for an
/// index on arrays, which have no distances.
pub fn is_on_signatures(index: Rel) -> bool {
    require_distances(index);
    Layout::from_index(index).is_on_signatures()
}

/// Raises an error for an index on arrays, which have no distances.
pub fn require_distances(index: Rel) {
    if !Layout::from_index(index).metric.has_distances() {
        let column = index.column_name(index.searched_column() as i16 + 1);
        UserError::new(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            format!(
                "index \"{}\" contains arrays, which have no distances",
                index.shown()
            ),
        )
        .detail(format!(
            "The index on column \"{}\" finds only arrays that share an element with the query.",
            column.to_string_lossy()
        ))
        .hint(
            "Pass an index on fingerprints or signatures. To find arrays with common elements, \
             join the table with itself with the operator &&.",
        )
        .raise();
    }
}

/// Raises an error unless each scope column's type has a hash function, and values that are equal
/// by the column's operator class have equal hashes.
pub fn require_hashes(index: Rel, layout: &Layout) {
    for column in 0..layout.scope_columns {
        require_hash(index.attribute(column as i16 + 1).atttypid);
        require_same_equality(index, column);
    }
}

/// Raises an error if the operator class of scope column `column` (counted from 0) has another
/// equality than the column's type. For example, a class can compare `citext` values as `text`.
/// Such an index would distinguish `citext` values that are equal.
fn require_same_equality(index: Rel, column: usize) {
    let own = index.attribute(column as i16 + 1).atttypid;
    let KeyClass { family, input, .. } = index.key_class(column);
    let hashed = hash_family(own);
    let agree = equalities(family, input)
        .into_iter()
        .all(|(operator, right)| {
            strategy_in_family(operator, hashed) == pg_sys::HTEqualStrategyNumber as i32
                && (is_pseudo_type(right) || hash_family(right) == hashed)
        });
    if !agree {
        refuse_equality(index, column, own, input);
    }
}

fn refuse_equality(index: Rel, column: usize, own: pg_sys::Oid, input: pg_sys::Oid) -> ! {
    let name = index.column_name(column as i16 + 1);
    let name = name.to_string_lossy();
    let base = type_name(base_type(own));
    let (own, input) = (type_name(own), type_name(input));
    UserError::new(
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        format!("column \"{name}\" of type {own} cannot be compared in a neardup index"),
    )
    .detail(format!(
        "The operator class compares the column's values as {input}. The types {own} and {input} \
         have different rules for equality."
    ))
    .hint(format!(
        "Index an expression instead of the column, such as (lower({name}::text)) or \
         ({name}::text). Or ask a superuser to create an operator class: CREATE OPERATOR CLASS \
         name DEFAULT FOR TYPE {base} USING neardup AS OPERATOR {EQUAL} = ({base}, {base})."
    ))
    .raise()
}

/// Returns the hash of a value in a scope column, or of a value with which a query compares this
/// column. `column` is the number of the column in the index, counted from 0.
pub fn scope_hash(index: Rel, column: usize, value: Value) -> u64 {
    hash_value(value, index.key_class(column).collation)
}

/// Returns the 64-bit words of a fingerprint. Raises an internal error if it does not have `N`
/// words.
pub fn fingerprint_words<const N: usize>(value: Value) -> Key<N> {
    assert_eq!(value.length(), 8 * N as i16);
    let mut key = [0; N];
    value.copy_words(&mut key);
    key
}

/// Returns the hash of a scope column's value, as the index stores it. Equal values have equal
/// hashes.
pub fn scope_value_hash(column: &EqualColumn, value: Value) -> u64 {
    assert_eq!(value.type_oid(), column.value_type);
    hash_value(value, column.collation())
}

/// Combines the hashes of the values in the scope columns, in column order, into the first word of
/// a key. A NULL value has `None` instead of a hash.
pub fn scope(hashes: impl Iterator<Item = Option<u64>>) -> u64 {
    hashes.fold(0, |scope: u64, hash| {
        let mixed = scope.rotate_left(23) ^ hash.unwrap_or(0x9e37_79b9_7f4a_7c15);
        mixed.wrapping_mul(0xff51_afd7_ed55_8ccd)
    })
}

fn refuse(index: Rel) -> ! {
    UserError::new(
        PgSqlErrorCode::ERRCODE_INVALID_OBJECT_DEFINITION,
        "a neardup index must have exactly one fingerprint, signature or bigint[] column, and it \
         must be the last column",
    )
    .detail(
        "The index compares the columns before this column for equality. It finds near-duplicates \
         only among rows with equal values in those columns. Only an exclusion constraint can have \
         ranges after this column.",
    )
    .hint(instead_of_columns(index))
    .raise()
}

/// Raises an error if an exclusion constraint compares a scope column for overlap (`&&`). For such
/// a constraint, each insert would have to search all scopes. `excludes_by` takes the position of
/// an index column, counted from 0, and returns the strategy number of the constraint's operator.
pub fn require_equal_scope(
    index: Rel,
    layout: &Layout,
    excludes_by: impl Fn(usize) -> Option<u16>,
) {
    let overlaps = |column: &usize| excludes_by(*column) == Some(RANGE_OVERLAP);
    let Some(column) = (0..layout.scope_columns).find(overlaps) else {
        return;
    };
    let name = index.column_name(column as i16 + 1);
    let searched = index.column_name(layout.scope_columns as i16 + 1);
    UserError::new(
        PgSqlErrorCode::ERRCODE_INVALID_OBJECT_DEFINITION,
        "ranges that are compared by && must follow the fingerprint",
    )
    .detail("The columns before the fingerprint are compared for equality.")
    .hint(format!(
        "Move column \"{}\" after column \"{}\".",
        name.to_string_lossy(),
        searched.to_string_lossy()
    ))
    .raise()
}

/// Returns the hint of the error that the columns of an index are unsuitable. The hint shows
/// columns that would be suitable.
fn instead_of_columns(index: Rel) -> String {
    let last = index.searched_column() as i16 + 1;
    if (0..last as usize - 1).any(|column| is_near(index.key_class(column))) {
        return "Use only one column of fingerprints or signatures, and write it last: USING \
                neardup (site, fp)."
            .to_owned();
    }
    let names: Vec<String> = (1..last)
        .map(|column| String::from_utf8_lossy(&quoted(&index.column_name(column))).into_owned())
        .collect();
    let front: String = names.iter().map(|name| format!("{name}, ")).collect();
    let all = server::pg_get_indexdef_columns(index.oid(), false).unwrap_or_default();
    // If a column before the searched one is an expression, its name is not in the definition, so
    // the prefix does not match and the hint names no columns.
    let last_key = all
        .to_string_lossy()
        .strip_prefix(&front)
        .map(str::to_owned);
    let key = last_key.and_then(|key| key_for(&key, index.attribute(last).atttypid));
    match key {
        Some(key) => format!("Write USING neardup ({front}{key})."),
        None => "Write a fingerprint as the last column: minhash64(body) for a text, or \
                 hash bigint_hamming_ops for 64-bit hashes in a bigint column."
            .to_owned(),
    }
}

/// Returns whether an operator class compares values by distance, so that its column cannot be a
/// scope column.
fn is_near(KeyClass { family, input, .. }: KeyClass) -> bool {
    ball_operator(family, input) != pg_sys::InvalidOid || compares_nearness(family, input)
}
