//! The few operations on the server's expression trees that the planner support needs.
//!
//! All of them run inside a support function or an estimator, in the planner's memory context.
use pgrx::pg_sys::{self, CoercionForm, Node, NodeTag, Oid};

/// The node's tag.
///
/// # Safety
/// `node` points to a node.
pub unsafe fn tag(node: *mut Node) -> NodeTag {
    // SAFETY: every node starts with its tag.
    unsafe { (*node).type_ }
}

/// The node as the struct that its tag stands for, if it has that tag.
///
/// # Safety
/// `node` points to a node, and `T` is the struct of `wanted`.
pub unsafe fn downcast<T>(node: *mut Node, wanted: NodeTag) -> Option<*mut T> {
    // SAFETY: as the caller promises.
    (unsafe { tag(node) } == wanted).then_some(node.cast())
}

/// A new list of nodes.
pub fn list(nodes: impl IntoIterator<Item = *mut Node>) -> *mut pg_sys::List {
    let mut list = core::ptr::null_mut();
    for node in nodes {
        // SAFETY: the null list is the empty list.
        list = unsafe { pg_sys::lappend(list, node.cast()) };
    }
    list
}

/// The nodes of a list if it has exactly `N` of them.
///
/// # Safety
/// `list` is null or a list of nodes.
pub unsafe fn elements<const N: usize>(list: *mut pg_sys::List) -> Option<[*mut Node; N]> {
    // SAFETY: a list knows its length, and every position below it can be read.
    unsafe {
        if list.is_null() || (*list).length as usize != N {
            return None;
        }
        Some(core::array::from_fn(|n| {
            pg_sys::list_nth(list, n as core::ffi::c_int).cast()
        }))
    }
}

/// The nodes of a list, of any length.
///
/// # Safety
/// `list` is null or a list of nodes that outlives the result and keeps its length.
pub unsafe fn members(list: *mut pg_sys::List) -> impl Iterator<Item = *mut Node> {
    // SAFETY: the null list is the empty list.
    let length = unsafe { pg_sys::list_length(list) };
    // SAFETY: within the list.
    (0..length).map(move |position| unsafe { pg_sys::list_nth(list, position) }.cast())
}

/// The node below any changes of type that leave the value as it is.
///
/// # Safety
/// `node` points to an expression.
pub unsafe fn strip_relabel(mut node: *mut Node) -> *mut Node {
    // SAFETY: a RelabelType always has an argument.
    unsafe {
        while let Some(relabel) = downcast::<pg_sys::RelabelType>(node, NodeTag::T_RelabelType) {
            node = (*relabel).arg.cast();
        }
    }
    node
}

/// The type of an expression, and the type below it if it is a domain.
///
/// # Safety
/// `node` points to an expression.
pub unsafe fn types(node: *mut Node) -> (Oid, Oid) {
    // SAFETY: as the caller promises.
    unsafe {
        let own = pg_sys::exprType(node);
        (own, pg_sys::getBaseType(own))
    }
}

/// The same value under another type of the same representation.
///
/// # Safety
/// `node` points to an expression whose values are values of `wanted` as well.
pub unsafe fn relabel(node: *mut Node, wanted: Oid) -> *mut Node {
    // SAFETY: as the caller promises; the node is copied where it would have to change.
    unsafe {
        if pg_sys::exprType(node) == wanted {
            return node;
        }
        pg_sys::applyRelabelType(
            node,
            wanted,
            -1,
            pg_sys::InvalidOid,
            CoercionForm::COERCE_IMPLICIT_CAST,
            -1,
            false,
        )
    }
}

/// `operator(left, right)`, yielding a boolean.
///
/// # Safety
/// `operator` is a binary operator on the types of the two expressions.
pub unsafe fn operator(operator: Oid, left: *mut Node, right: *mut Node) -> *mut Node {
    // SAFETY: as the caller promises; an expression that leaves the simplifier knows its function.
    unsafe {
        let (none, boolean) = (pg_sys::InvalidOid, pg_sys::BOOLOID);
        let clause = pg_sys::make_opclause(
            operator,
            boolean,
            false,
            left.cast(),
            right.cast(),
            none,
            none,
        );
        pg_sys::set_opfuncid(clause.cast());
        clause.cast()
    }
}

/// `function(arguments)`.
///
/// # Safety
/// `function` takes the types of the arguments and returns `result`.
pub unsafe fn call(
    function: Oid,
    result: Oid,
    arguments: impl IntoIterator<Item = *mut Node>,
    form: CoercionForm::Type,
) -> *mut Node {
    // SAFETY: as the caller promises.
    unsafe {
        pg_sys::makeFuncExpr(
            function,
            result,
            list(arguments),
            pg_sys::InvalidOid,
            pg_sys::InvalidOid,
            form,
        )
        .cast()
    }
}

/// `NOT argument`.
///
/// # Safety
/// `argument` is a boolean expression.
pub unsafe fn not(argument: *mut Node) -> *mut Node {
    // SAFETY: as the caller promises.
    unsafe { pg_sys::makeBoolExpr(pg_sys::BoolExprType::NOT_EXPR, list([argument]), -1).cast() }
}

/// A constant of type int4.
pub fn int4(value: i32) -> *mut Node {
    // SAFETY: int4 is passed by value in four bytes.
    unsafe {
        let datum = pg_sys::Datum::from(value);
        pg_sys::makeConst(
            pg_sys::INT4OID,
            -1,
            pg_sys::InvalidOid,
            4,
            datum,
            false,
            true,
        )
        .cast()
    }
}

/// The value of a constant of type int2, int4, int8 or a domain over one of them. `None` if the
/// expression is no constant, is NULL, or has another type.
///
/// # Safety
/// `node` points to an expression.
pub unsafe fn constant_integer(node: *mut Node) -> Option<i64> {
    // SAFETY: the tag is checked before the cast.
    unsafe {
        let datum = constant(node)?;
        match types(node).1 {
            pg_sys::INT2OID => Some((datum.value() as i16).into()),
            pg_sys::INT4OID => Some((datum.value() as i32).into()),
            pg_sys::INT8OID => Some(datum.value() as i64),
            _ => None,
        }
    }
}

/// The value of a constant of type float4, float8 or a domain over one of them. `None` if the
/// expression is no constant, is NULL, or has another type.
///
/// # Safety
/// `node` points to an expression.
pub unsafe fn constant_float(node: *mut Node) -> Option<f64> {
    // SAFETY: as the caller promises; both types are passed by value.
    unsafe {
        let datum = constant(node)?;
        match types(node).1 {
            pg_sys::FLOAT4OID => Some(f32::from_bits(datum.value() as u32).into()),
            pg_sys::FLOAT8OID => Some(f64::from_bits(datum.value() as u64)),
            _ => None,
        }
    }
}

/// The value of a constant; `None` if the expression is no constant or is NULL.
///
/// # Safety
/// `node` points to an expression.
pub unsafe fn constant(node: *mut Node) -> Option<pg_sys::Datum> {
    // SAFETY: the tag is checked before the cast.
    unsafe {
        let constant = downcast::<pg_sys::Const>(node, NodeTag::T_Const)?;
        (!(*constant).constisnull).then_some((*constant).constvalue)
    }
}
