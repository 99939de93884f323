//! Comparison of values by the equality operator of an index column, or by the default operators
//! `=` and `<` of a type.
use pgrx::pg_sys::{self, Oid};

use super::rel::{KeyClass, Rel};
use super::value::Value;
use super::{catalog, server};

/// Calls a comparison function and returns its result. `a` and `b` must have the type of the
/// function's two arguments.
fn call(function: Oid, collation: Oid, a: Value, b: Value) -> pg_sys::Datum {
    // SAFETY: the function belongs to an operator class that the server accepts for the type, or
    // is the type's default. The callers have compared the types.
    unsafe { pg_sys::OidFunctionCall2Coll(function, collation, a.datum(), b.datum()) }
}

/// Equality of the values of one index column, by an operator of the column's operator class.
pub struct EqualColumn {
    /// Attribute number of the table's column that is indexed; 0 for an expression.
    pub column: i16,
    function: Oid,
    collation: Oid,
    /// OID of the type of the index column's values.
    pub value_type: Oid,
}

impl EqualColumn {
    /// Looks up the equality of the index column `i`, counted from 0. `strategy` is the strategy
    /// number of the equality operator in the column's operator family.
    pub fn new(index: Rel, i: usize, strategy: u16) -> Self {
        let form = index.index_form();
        let class = index.key_class(i);
        let KeyClass { family, input, .. } = class;
        // An operator class for arrays of one type may use the server's operator for `anyarray`.
        let operators = [input, pg_sys::ANYARRAYOID]
            .map(|oid| server::get_opfamily_member(family, oid, oid, strategy as i16));
        let [own, of_arrays] = operators;
        let operator = if own == pg_sys::InvalidOid {
            of_arrays
        } else {
            own
        };
        EqualColumn {
            column: form.columns[i],
            function: server::get_opcode(operator),
            collation: class.collation,
            value_type: index.attribute(i as i16 + 1).atttypid,
        }
    }

    /// Returns whether a parallel worker may compare values of the column.
    pub fn is_parallel_safe(&self) -> bool {
        server::func_parallel(self.function) as u8 == pg_sys::PROPARALLEL_SAFE
    }

    /// OID of the collation under which values of the column are compared.
    pub fn collation(&self) -> Oid {
        self.collation
    }

    /// Returns whether two values of the index column are equal. Raises an internal error if a
    /// value does not have the column's type.
    pub fn equal(&self, a: Value, b: Value) -> bool {
        assert!([a, b].map(Value::type_oid) == [self.value_type; 2]);
        call(self.function, self.collation, a, b).value() != 0
    }

    /// Returns whether two datums of the index column are equal. Does not check their types.
    ///
    /// # Safety
    /// Both values have the type of the index column.
    pub(super) unsafe fn equal_datums(&self, a: pg_sys::Datum, b: pg_sys::Datum) -> bool {
        // SAFETY: the caller's promise.
        unsafe { pg_sys::OidFunctionCall2Coll(self.function, self.collation, a, b).value() != 0 }
    }
}

/// Order of the values of a type, by the type's default btree operator class and a collation.
pub struct TypeOrder {
    function: Oid,
    collation: Oid,
    type_oid: Oid,
}

impl TypeOrder {
    /// Looks up the default order of a type; `None` if the type has no default btree operator
    /// class.
    pub fn new(type_oid: Oid, collation: Oid) -> Option<Self> {
        let function = catalog::cached_type(type_oid, pg_sys::TYPECACHE_CMP_PROC).cmp_proc;
        (function != pg_sys::InvalidOid).then_some(TypeOrder {
            function,
            collation,
            type_oid,
        })
    }

    /// Returns whether `a` sorts before `b`. Raises an internal error if a value has another type.
    pub fn is_before(&self, a: Value, b: Value) -> bool {
        assert!([a, b].map(Value::type_oid) == [self.type_oid; 2]);
        (call(self.function, self.collation, a, b).value() as i32) < 0
    }
}

/// Equality of the values of a type, by the type's default operator `=` and a collation.
pub struct TypeEquality {
    function: Oid,
    collation: Oid,
    type_oid: Oid,
}

impl TypeEquality {
    /// Looks up the default equality of a type, and the OID of its operator `=`; `None` if the type
    /// has no default operator `=`.
    pub fn new(type_oid: Oid, collation: Oid) -> Option<(Self, Oid)> {
        let operator = catalog::default_operators(type_oid).0?;
        let equality = TypeEquality {
            function: server::get_opcode(operator),
            collation,
            type_oid,
        };
        Some((equality, operator))
    }

    /// OID of the type whose values are compared.
    pub fn type_oid(&self) -> Oid {
        self.type_oid
    }

    /// Returns whether two values of the type are equal. `None` stands for NULL, and two NULLs are
    /// equal. Raises an internal error if a value has another type.
    pub fn equal(&self, a: Option<Value>, b: Option<Value>) -> bool {
        let (Some(a), Some(b)) = (a, b) else {
            return a.is_none() && b.is_none();
        };
        assert!([a, b].map(Value::type_oid) == [self.type_oid; 2]);
        call(self.function, self.collation, a, b).value() != 0
    }
}
