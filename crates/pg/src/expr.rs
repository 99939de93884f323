//! Expressions of a statement that the planner is planning, and lists of expressions.
use core::ffi::c_void;
use core::marker::PhantomData;
use core::ptr::NonNull;

use pgrx::pg_sys::{self, Node, NodeTag, Oid};

use super::catalog;
use super::value::{Value, ValueType};

/// Expression of the server that lives for `'a`, the duration of one call by the planner.
#[derive(Clone, Copy)]
pub struct Expr<'a> {
    node: NonNull<Node>,
    _call: PhantomData<&'a ()>,
}

/// Kind of an expression, with its parts, for the kinds that this extension inspects.
pub enum ExprKind<'a> {
    /// A constant and its value; `None` is NULL.
    Constant(Option<Value<'a>>),
    /// A parameter, whose value is not part of the expression.
    Parameter,
    /// A column of a relation.
    Column {
        /// Number of the column's relation in the range table, counted from 1.
        entry: i64,
        /// Number of query levels from the expression up to the query whose range table has the
        /// relation. 0 if the expression is in that query itself.
        levels_up: u32,
    },
    /// An operator's OID and its operands.
    Operator(Oid, List<'a>),
    /// A function's OID and its arguments.
    Call(Oid, List<'a>),
    /// `left operator ANY (right)`: the operator's OID and both operands.
    Any(Oid, List<'a>),
    /// `COALESCE` with these arguments.
    Coalesce(List<'a>),
    /// A change of the type that keeps the binary value (`RelabelType`). Has the expression whose
    /// type is changed.
    Relabel(Expr<'a>),
    /// A test `IS NULL`.
    IsNull,
    /// A test `IS NOT NULL`.
    IsNotNull,
    /// An expression of a kind that this extension does not inspect.
    Other,
}

impl<'a> Expr<'a> {
    /// Wraps an expression node of the server.
    ///
    /// # Safety
    /// `node` points to a well-typed expression. The node and the current memory context live for
    /// `'a`.
    pub unsafe fn new(node: *mut Node) -> Self {
        Expr {
            node: NonNull::new(node).expect("an expression"),
            _call: PhantomData,
        }
    }

    /// The server's node of the expression.
    pub fn as_ptr(self) -> *mut Node {
        self.node.as_ptr()
    }

    /// Returns the kind of the expression, with its parts.
    pub fn kind(self) -> ExprKind<'a> {
        let node = self.as_ptr();
        // SAFETY: the node's tag identifies its struct; its parts live as long as the node.
        unsafe {
            match (*node).type_ {
                NodeTag::T_Const => {
                    let constant = &*node.cast::<pg_sys::Const>();
                    let value =
                        || Value::typed(constant.constvalue, ValueType::from_const(constant));
                    ExprKind::Constant((!constant.constisnull).then(value))
                }
                NodeTag::T_Param => ExprKind::Parameter,
                NodeTag::T_Var => {
                    let column = &*node.cast::<pg_sys::Var>();
                    ExprKind::Column {
                        entry: column.varno.into(),
                        levels_up: column.varlevelsup,
                    }
                }
                NodeTag::T_OpExpr => {
                    let operator = &*node.cast::<pg_sys::OpExpr>();
                    ExprKind::Operator(operator.opno, List::new(operator.args))
                }
                NodeTag::T_FuncExpr => {
                    let call = &*node.cast::<pg_sys::FuncExpr>();
                    ExprKind::Call(call.funcid, List::new(call.args))
                }
                NodeTag::T_ScalarArrayOpExpr => {
                    let any = &*node.cast::<pg_sys::ScalarArrayOpExpr>();
                    match any.useOr {
                        true => ExprKind::Any(any.opno, List::new(any.args)),
                        false => ExprKind::Other,
                    }
                }
                NodeTag::T_CoalesceExpr => {
                    ExprKind::Coalesce(List::new((*node.cast::<pg_sys::CoalesceExpr>()).args))
                }
                NodeTag::T_RelabelType => {
                    ExprKind::Relabel(Expr::new((*node.cast::<pg_sys::RelabelType>()).arg.cast()))
                }
                NodeTag::T_NullTest => match (*node.cast::<pg_sys::NullTest>()).nulltesttype {
                    pg_sys::NullTestType::IS_NULL => ExprKind::IsNull,
                    _ => ExprKind::IsNotNull,
                },
                _ => ExprKind::Other,
            }
        }
    }

    /// Returns whether the server considers two expression trees equal (`equal`).
    pub fn equals(self, other: Expr) -> bool {
        // SAFETY: both nodes are expressions.
        unsafe { pg_sys::equal(self.as_ptr().cast(), other.as_ptr().cast()) }
    }

    /// Returns whether the expression is a constant.
    pub fn is_constant(self) -> bool {
        matches!(self.kind(), ExprKind::Constant(_))
    }

    /// The value of a constant; `None` if the expression is not a constant, or is NULL.
    pub fn value(self) -> Option<Value<'a>> {
        match self.kind() {
            ExprKind::Constant(value) => value,
            _ => None,
        }
    }

    /// The value of a constant of type int2, int4, int8 or a domain over one of them. `None` if
    /// the expression is not a constant, is NULL, or has another type.
    pub fn integer(self) -> Option<i64> {
        self.value()?.integer()
    }

    /// The value of a constant of type float4, float8 or a domain over one of them. `None` if the
    /// expression is not a constant, is NULL, or has another type.
    pub fn float(self) -> Option<f64> {
        self.value()?.float()
    }

    /// The expression without its outermost changes of type that keep the binary value.
    pub fn strip_relabel(self) -> Self {
        let mut expression = self;
        while let ExprKind::Relabel(inner) = expression.kind() {
            expression = inner;
        }
        expression
    }

    /// The OID of the expression's type.
    pub fn type_oid(self) -> Oid {
        // SAFETY: the node is an expression.
        unsafe { pg_sys::exprType(self.as_ptr()) }
    }

    /// The OID of the expression's type, or of its base type if it is a domain.
    pub fn base_type(self) -> Oid {
        catalog::base_type(self.type_oid())
    }

    /// Returns whether the expression's type is `wanted` or a domain over `wanted`.
    pub fn has_type(self, wanted: Oid) -> bool {
        let own = self.type_oid();
        own == wanted || catalog::base_type(own) == wanted
    }

    /// Returns the expression with the type `wanted` and an unchanged binary value. Raises an
    /// internal error unless the expression's type and `wanted` are equal or have the same base
    /// type.
    pub fn relabelled(self, wanted: Oid) -> Self {
        let own = self.type_oid();
        if own == wanted {
            return self;
        }
        assert_eq!(catalog::base_type(own), catalog::base_type(wanted));
        let form = pg_sys::CoercionForm::COERCE_IMPLICIT_CAST;
        // SAFETY: both types have the same representation. The server copies a changed node.
        unsafe {
            let (node, none) = (self.as_ptr(), pg_sys::InvalidOid);
            Expr::new(pg_sys::applyRelabelType(
                node, wanted, -1, none, form, -1, false,
            ))
        }
    }

    /// Attribute numbers of the columns that the expression uses; 0 stands for whole rows. Only
    /// columns of the first relation in the range table are listed. Expressions of an index or a
    /// generated column have no other columns.
    pub fn columns_used(self) -> Vec<i16> {
        let mut columns = Vec::new();
        // SAFETY: the node is an expression. The set holds column numbers minus
        // `FirstLowInvalidHeapAttributeNumber`.
        unsafe {
            let (mut used, mut member) = (core::ptr::null_mut(), -1);
            pg_sys::pull_varattnos(self.as_ptr(), 1, &raw mut used);
            loop {
                member = pg_sys::bms_next_member(used, member);
                if member < 0 {
                    return columns;
                }
                columns.push((member + pg_sys::FirstLowInvalidHeapAttributeNumber) as i16);
            }
        }
    }

    /// Lists the functions that the expression calls at any depth, each as its OID and its
    /// arguments.
    pub fn calls(self) -> Vec<(Oid, List<'a>)> {
        unsafe extern "C-unwind" fn add(node: *mut Node, calls: *mut c_void) -> bool {
            if node.is_null() {
                return false;
            }
            // SAFETY: the server passes nodes of the expression, and the list below.
            unsafe {
                if (*node).type_ == NodeTag::T_FuncExpr {
                    (*calls.cast::<Vec<*mut pg_sys::FuncExpr>>()).push(node.cast());
                }
                pg_sys::expression_tree_walker(node, Some(add), calls)
            }
        }
        let mut calls: Vec<*mut pg_sys::FuncExpr> = Vec::new();
        // SAFETY: an expression, and the list that `add` expects. The nodes live for `'a`.
        unsafe {
            add(self.as_ptr(), (&raw mut calls).cast());
            (calls.into_iter())
                .map(|call| ((*call).funcid, List::new((*call).args)))
                .collect()
        }
    }

    /// The expression as the planner simplifies it: named arguments are moved to their positions,
    /// default arguments are filled in, and constants are folded. Needed for expressions from the
    /// catalogue, which the server stores without default arguments.
    pub fn with_default_arguments(self) -> Self {
        // SAFETY: the node is an expression. The result is made in the current memory context.
        unsafe {
            let none = core::ptr::null_mut();
            Expr::new(pg_sys::eval_const_expressions(none, self.as_ptr()))
        }
    }

    /// Returns whether the planner may replace a call of a user-defined function in the expression
    /// by its result. Such a result can become outdated, because a function that is declared as
    /// immutable may nevertheless read a setting or a table.
    ///
    /// Returns true if a call of a user-defined function has no columns in its arguments. Also
    /// returns true if a user-defined function is in SQL: the planner replaces its calls by the
    /// function's body, which may contain calls without columns.
    pub fn folds_user_function(self) -> bool {
        unsafe extern "C-unwind" fn is_users(function: Oid, _: *mut c_void) -> bool {
            function.to_u32() >= pg_sys::FirstNormalObjectId
        }
        unsafe extern "C-unwind" fn is_in_sql(function: Oid, _: *mut c_void) -> bool {
            function.to_u32() >= pg_sys::FirstNormalObjectId && catalog::is_in_sql(function)
        }
        unsafe extern "C-unwind" fn folds(node: *mut Node, none: *mut c_void) -> bool {
            if node.is_null() {
                return false;
            }
            // SAFETY: the server passes nodes of the expression. The functions need no context.
            unsafe {
                pg_sys::check_functions_in_node(node, Some(is_in_sql), none)
                    || pg_sys::check_functions_in_node(node, Some(is_users), none)
                        && !pg_sys::contain_vars_of_level(node, 0)
                    || pg_sys::expression_tree_walker(node, Some(folds), none)
            }
        }
        // SAFETY: the node is an expression.
        unsafe { folds(self.as_ptr(), core::ptr::null_mut()) }
    }

    /// Returns whether the expression calls a volatile function.
    pub fn is_volatile(self) -> bool {
        // SAFETY: the node is an expression.
        unsafe { pg_sys::contain_volatile_functions(self.as_ptr()) }
    }

    /// Returns whether the expression uses columns of its own query level, and not only of outer
    /// queries.
    pub fn has_columns(self) -> bool {
        // SAFETY: the node is an expression.
        unsafe { pg_sys::contain_vars_of_level(self.as_ptr(), 0) }
    }
}

/// List of expressions of the server that lives for `'a`.
#[derive(Clone, Copy)]
pub struct List<'a> {
    list: *const pg_sys::List,
    _call: PhantomData<&'a ()>,
}

impl<'a> List<'a> {
    /// Wraps a list of expressions of the server.
    ///
    /// # Safety
    /// `list` is null (the empty list) or a list of nodes that are valid for [`Expr::new`]. Its
    /// length does not change during `'a`.
    pub unsafe fn new(list: *const pg_sys::List) -> Self {
        List {
            list,
            _call: PhantomData,
        }
    }

    /// The server's list; null for an empty list.
    pub(super) fn raw(self) -> *mut pg_sys::List {
        self.list.cast_mut()
    }

    /// Makes a list of the server from these expressions, in the current memory context.
    pub fn build(expressions: &[Expr]) -> *mut pg_sys::List {
        let mut list = core::ptr::null_mut();
        for expression in expressions {
            // SAFETY: the null list is the empty list.
            list = unsafe { pg_sys::lappend(list, expression.as_ptr().cast()) };
        }
        list
    }

    /// Iterates over the expressions in the list.
    pub fn iter(self) -> impl Iterator<Item = Expr<'a>> {
        (0..).map_while(move |n| {
            // SAFETY: the caller of `new` promised a list of expressions; `n` is within it.
            unsafe {
                (n < pg_sys::list_length(self.list))
                    .then(|| Expr::new(pg_sys::list_nth(self.list, n).cast()))
            }
        })
    }

    /// The expressions in the list if there are exactly `N`; `None` otherwise.
    pub fn elements<const N: usize>(self) -> Option<[Expr<'a>; N]> {
        self.iter().collect::<Vec<_>>().try_into().ok()
    }
}
