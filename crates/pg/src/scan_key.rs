//! Conditions and ORDER BY operators of index scans (`ScanKey`).
use pgrx::pg_sys::{self, ScanKeyData};

use super::catalog::is_pseudo_type;
use super::rel::Rel;
use super::value::{Value, ValueType};

/// The conditions of an index scan, or its ORDER BY operators.
#[derive(Clone, Copy)]
pub struct ScanKeys<'a> {
    index: Rel<'a>,
    keys: &'a [ScanKeyData],
}

impl<'a> ScanKeys<'a> {
    /// Wraps the scan keys of a scan of this index.
    ///
    /// # Safety
    /// The keys are for operators of the operator classes of this index, and live for `'a`.
    pub(super) unsafe fn new(index: Rel<'a>, keys: &'a [ScanKeyData]) -> Self {
        ScanKeys { index, keys }
    }

    /// Returns whether the scan has no conditions, or no ORDER BY operators.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.keys.is_empty()
    }

    /// Iterates over the conditions, or over the ORDER BY operators.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = ScanKey<'a>> {
        let index = self.index;
        self.keys.iter().map(move |key| ScanKey { index, key })
    }

    /// Index that is scanned.
    #[inline]
    pub fn index(self) -> Rel<'a> {
        self.index
    }
}

/// One condition or ORDER BY operator of an index scan.
#[derive(Clone, Copy)]
pub struct ScanKey<'a> {
    index: Rel<'a>,
    key: &'a ScanKeyData,
}

impl<'a> ScanKey<'a> {
    /// Number of the index column on the operator's left, counted from 0.
    #[inline]
    pub fn column(self) -> usize {
        self.key.sk_attno as usize - 1
    }

    /// Returns whether the server has set a flag (`SK_...`).
    #[inline]
    pub fn has_flag(self, flag: u32) -> bool {
        self.key.sk_flags as u32 & flag != 0
    }

    /// Strategy number of the operator in its operator class.
    #[inline]
    pub fn strategy(self) -> u16 {
        self.key.sk_strategy
    }

    /// Value on the operator's right. Raises an internal error for NULL, and for IS NULL and IS NOT
    /// NULL.
    pub fn value(self) -> Value<'a> {
        let special = pg_sys::SK_ISNULL | pg_sys::SK_SEARCHNULL | pg_sys::SK_SEARCHNOTNULL;
        assert!(!self.has_flag(special));
        // SAFETY: the argument has the type on the right side of the key's operator.
        unsafe { Value::typed(self.key.sk_argument, self.value_type()) }
    }

    /// Type of the value on the operator's right.
    fn value_type(self) -> ValueType {
        // The scan keys of a constraint have no type. Their values have the input type of the
        // operator class, which may differ from the type that the index stores.
        let given = match self.key.sk_subtype {
            pg_sys::InvalidOid => self.index.key_class(self.column()).input,
            given => given,
        };
        let own = self.index.attribute(self.key.sk_attno);
        // The scan key of an operator on `anyarray` or `anyenum` has that pseudo-type. Its value
        // has the type of the column.
        match given == own.atttypid || is_pseudo_type(given) {
            true => ValueType::from_attribute(&own),
            false => ValueType::from_oid(given),
        }
    }
}

/// Conditions or ORDER BY operators that this extension itself makes for a scan of a neardup index.
pub struct OwnScanKeys<'a> {
    index: Rel<'a>,
    keys: Vec<ScanKeyData>,
}

impl<'a> OwnScanKeys<'a> {
    /// Makes an empty list for scans of this index.
    pub fn new(index: Rel<'a>) -> Self {
        assert!(index.is_neardup_index());
        OwnScanKeys {
            index,
            keys: Vec::new(),
        }
    }

    /// Adds a condition or an ORDER BY operator. `column` is the index column, counted from 1.
    /// `strategy` is the number of the operator in the column's operator class. `value` is the
    /// operator's right side and must have the operator's type.
    pub fn push(&mut self, column: i16, strategy: u16, value: Value<'a>) {
        self.keys.push(ScanKeyData {
            sk_attno: column,
            sk_strategy: strategy,
            sk_subtype: value.type_oid(),
            sk_argument: value.datum(),
            ..Default::default()
        });
    }

    /// The list, in the form that the access method reads.
    pub fn get(&self) -> ScanKeys<'_> {
        // SAFETY: each key contains the type of its value. The values live as long as `self`.
        unsafe { ScanKeys::new(self.index, &self.keys) }
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [ScanKeyData] {
        &mut self.keys
    }
}
