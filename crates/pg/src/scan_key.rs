//! Conditions and orders of index scans.
use pgrx::pg_sys::{self, ScanKeyData};

use super::catalog::is_pseudo_type;
use super::rel::Rel;
use super::value::{Value, ValueType};

/// Conditions or orders of an index scan.
#[derive(Clone, Copy)]
pub struct ScanKeys<'a> {
    index: Rel<'a>,
    keys: &'a [ScanKeyData],
}

impl<'a> ScanKeys<'a> {
    /// Wraps what the server passes.
    ///
    /// # Safety
    /// The keys are for operators of the operator classes of this index, and live for `'a`.
    pub(super) unsafe fn new(index: Rel<'a>, keys: &'a [ScanKeyData]) -> Self {
        ScanKeys { index, keys }
    }

    /// Returns whether there are no keys.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.keys.is_empty()
    }

    /// All keys.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = ScanKey<'a>> {
        let index = self.index;
        self.keys.iter().map(move |key| ScanKey { index, key })
    }

    /// The index.
    #[inline]
    pub fn index(self) -> Rel<'a> {
        self.index
    }
}

/// Condition or order of an index scan.
#[derive(Clone, Copy)]
pub struct ScanKey<'a> {
    index: Rel<'a>,
    key: &'a ScanKeyData,
}

impl<'a> ScanKey<'a> {
    /// The index's column, counted from 0.
    #[inline]
    pub fn column(self) -> usize {
        self.key.sk_attno as usize - 1
    }

    /// Returns whether the key has a flag (`SK_...`).
    #[inline]
    pub fn has_flag(self, flag: u32) -> bool {
        self.key.sk_flags as u32 & flag != 0
    }

    /// The operator's strategy.
    #[inline]
    pub fn strategy(self) -> u16 {
        self.key.sk_strategy
    }

    /// The value that the operator compares the column with. Raises an internal error for NULL.
    pub fn value(self) -> Value<'a> {
        let special = pg_sys::SK_ISNULL | pg_sys::SK_SEARCHNULL | pg_sys::SK_SEARCHNOTNULL;
        assert!(!self.has_flag(special));
        // SAFETY: the argument has the type on the right side of the key's operator.
        unsafe { Value::typed(self.key.sk_argument, self.value_type()) }
    }

    fn value_type(self) -> ValueType {
        // Keys of constraints have no type. Their values have the input type of the operator
        // class, which may differ from the stored type.
        let given = match self.key.sk_subtype {
            pg_sys::InvalidOid => self.index.key_class(self.column()).input,
            given => given,
        };
        let own = self.index.attribute(self.key.sk_attno);
        // The key of an operator for any array or any enum has a pseudo-type.
        match given == own.atttypid || is_pseudo_type(given) {
            true => ValueType::from_attribute(&own),
            false => ValueType::from_oid(given),
        }
    }
}

/// Conditions or orders that this extension makes for a scan of a neardup index.
pub struct OwnScanKeys<'a> {
    index: Rel<'a>,
    keys: Vec<ScanKeyData>,
}

impl<'a> OwnScanKeys<'a> {
    /// No key.
    pub fn new(index: Rel<'a>) -> Self {
        assert!(index.is_neardup_index());
        OwnScanKeys {
            index,
            keys: Vec::new(),
        }
    }

    /// Adds a key on a column, counted from 1, with an operator's strategy and the value on its
    /// right side. The value must have the operator's type.
    pub fn push(&mut self, column: i16, strategy: u16, value: Value<'a>) {
        self.keys.push(ScanKeyData {
            sk_attno: column,
            sk_strategy: strategy,
            sk_subtype: value.type_oid(),
            sk_argument: value.datum(),
            ..Default::default()
        });
    }

    /// The keys.
    pub fn get(&self) -> ScanKeys<'_> {
        // SAFETY: each key contains the type of its value. The values live as long as `self`.
        unsafe { ScanKeys::new(self.index, &self.keys) }
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [ScanKeyData] {
        &mut self.keys
    }
}
