//! The planner's state, and functions that make and evaluate expressions for the planner.
use core::marker::PhantomData;

use pgrx::pg_sys::{self, BoolExprType, CoercionForm, Oid, PlannerInfo};

use super::catalog;
use super::compat;
use super::expr::{Expr, List};
use super::value::{OwnedValue, Value, ValueType};

/// State of the planner during one call, with functions that make expressions. `'a` is the lifetime
/// of the call. The server passes no state (null) when it simplifies expressions of the catalogue,
/// such as index expressions.
///
/// New expressions are allocated in the current memory context, which is the planner's.
#[derive(Clone, Copy)]
pub struct Planner<'a> {
    root: *mut PlannerInfo,
    _call: PhantomData<&'a ()>,
}

impl<'a> Planner<'a> {
    /// Wraps the planner's state (`PlannerInfo`) as the server passes it.
    ///
    /// # Safety
    /// `root` is null or the planner's state. It and the current memory context live for `'a`. The
    /// context is not switched while the handle is used.
    pub unsafe fn new(root: *mut PlannerInfo) -> Self {
        Planner {
            root,
            _call: PhantomData,
        }
    }

    /// Pointer to the planner's state; `None` while the server simplifies expressions of the
    /// catalogue.
    pub fn root(self) -> Option<*mut PlannerInfo> {
        (!self.root.is_null()).then_some(self.root)
    }

    /// Returns the expression with its constant parts evaluated. The result may be executed.
    pub fn simplified(self, expression: Expr<'a>) -> Expr<'a> {
        self.evaluated(expression, false)
    }

    /// Returns the expression with its constant parts evaluated for an estimate. It assumes the
    /// present values of parameters and of stable functions, so the result must not be executed.
    pub fn estimated(self, expression: Expr<'a>) -> Expr<'a> {
        self.evaluated(expression, true)
    }

    fn evaluated(self, expression: Expr<'a>, for_estimate: bool) -> Expr<'a> {
        let node = expression.as_ptr();
        // SAFETY: a well-typed expression; the state is alive or null, which the function accepts.
        unsafe {
            Expr::new(match self.root() {
                Some(root) if for_estimate => pg_sys::estimate_expression_value(root, node),
                _ => pg_sys::eval_const_expressions(self.root, node),
            })
        }
    }

    /// Estimated number of elements of an array expression.
    pub fn array_length(self, array: Expr<'a>) -> f64 {
        // SAFETY: the planner's state and an expression.
        unsafe { compat::estimate_array_length(self.root, array.as_ptr()) }
    }

    /// Returns whether this extension may rewrite a condition on a column while the planner
    /// simplifies the condition. `entry` is the number of the column's table in the range table,
    /// counted from 1. `levels_up` is the number of query levels from the condition up to the query
    /// with that range table; 0 means the same query.
    ///
    /// Returns false if the planner may later replace the column by an expression without
    /// simplifying the condition again. An example is a column of a UNION ALL.
    ///
    /// Returns true for columns of subqueries and of a GROUP BY: when the planner replaces such a
    /// column, it simplifies the condition again. Also returns true for columns that the planner
    /// does not replace: columns of tables and of outer queries, and columns in expressions of the
    /// catalogue.
    pub fn can_rewrite_on(self, entry: i64, levels_up: u32) -> bool {
        let Some(root) = self.root().filter(|_| levels_up == 0) else {
            return true;
        };
        // SAFETY: the range table is a list of entries.
        unsafe {
            let entries = (*(*root).parse).rtable;
            if !(1..=pg_sys::list_length(entries).into()).contains(&entry) {
                return false;
            }
            let entry: *mut pg_sys::RangeTblEntry =
                pg_sys::list_nth(entries, entry as i32 - 1).cast();
            match (*entry).rtekind {
                pg_sys::RTEKind::RTE_RELATION => true,
                // An entry with children is a UNION ALL whose parts are planned with this query.
                pg_sys::RTEKind::RTE_SUBQUERY => !(*entry).inh,
                kind => compat::is_group(kind),
            }
        }
    }

    /// Makes a constant of type `int4`.
    pub fn int4(self, value: i32) -> Expr<'a> {
        self.constant(Value::int4(value))
    }

    /// Makes a constant that points to the value's memory.
    pub fn constant(self, value: Value<'a>) -> Expr<'a> {
        self.make_const(value.value_type(), Some(value))
    }

    /// Makes a constant with a copy of the value in the planner's memory.
    pub fn copied_constant(self, value: &OwnedValue) -> Expr<'a> {
        // SAFETY: the copy has the same type and is in the planner's memory context.
        let copy = unsafe { Value::typed(value.server_copy(), value.get().value_type()) };
        self.constant(copy)
    }

    /// Makes a NULL constant of the type with this OID.
    pub fn null(self, oid: Oid) -> Expr<'a> {
        self.make_const(ValueType::from_oid(oid), None)
    }

    fn make_const(self, of: ValueType, value: Option<Value<'a>>) -> Expr<'a> {
        let (none, length) = (pg_sys::InvalidOid, of.length().into());
        let datum = value.map_or(pg_sys::Datum::null(), Value::datum);
        // SAFETY: the value has this type, and lives as long as the result.
        unsafe {
            let (oid, by_value) = (of.oid(), of.by_value());
            let is_null = value.is_none();
            Expr::new(pg_sys::makeConst(oid, -1, none, length, datum, is_null, by_value).cast())
        }
    }

    /// Makes `left operator right`. Raises an internal error unless the operator takes operands of
    /// these types.
    pub fn operator(self, operator: Oid, left: Expr<'a>, right: Expr<'a>) -> Expr<'a> {
        let declared = catalog::operator(operator).expect("operator exists");
        assert!(left.has_type(declared.oprleft) && right.has_type(declared.oprright));
        let (result, none) = (declared.oprresult, pg_sys::InvalidOid);
        let (left, right) = (left.as_ptr().cast(), right.as_ptr().cast());
        // SAFETY: the operands have the operator's declared types. Simplified expressions must
        // have their function set.
        unsafe {
            let clause = pg_sys::make_opclause(operator, result, false, left, right, none, none);
            pg_sys::set_opfuncid(clause.cast());
            Expr::new(clause.cast())
        }
    }

    /// Makes `operator argument`. Raises an internal error unless this is a prefix operator for the
    /// argument's type.
    pub fn prefix_operator(self, operator: Oid, argument: Expr<'a>) -> Expr<'a> {
        let declared = catalog::operator(operator).expect("operator exists");
        assert!(declared.oprleft == pg_sys::InvalidOid && argument.has_type(declared.oprright));
        let (result, none) = (declared.oprresult, pg_sys::InvalidOid);
        let (node, right) = (argument.as_ptr().cast(), core::ptr::null_mut());
        // SAFETY: the operand has the operator's declared type. Simplified expressions must have
        // their function set.
        unsafe {
            let clause = pg_sys::make_opclause(operator, result, false, node, right, none, none);
            pg_sys::set_opfuncid(clause.cast());
            Expr::new(clause.cast())
        }
    }

    /// Makes `function(arguments)`. Raises an internal error unless this is a plain function whose
    /// parameters have these types.
    pub fn call(self, function: Oid, arguments: &[Expr<'a>]) -> Expr<'a> {
        self.func_expr(function, arguments, CoercionForm::COERCE_EXPLICIT_CALL)
    }

    /// Makes an implicit cast of `argument` by the function with the OID `function`, which is built
    /// into the server. Raises an internal error unless the function takes the argument's type.
    pub fn cast(self, function: u32, argument: Expr<'a>) -> Expr<'a> {
        let function = Oid::from_u32(function);
        self.func_expr(function, &[argument], CoercionForm::COERCE_IMPLICIT_CAST)
    }

    fn func_expr(
        self,
        function: Oid,
        arguments: &[Expr<'a>],
        form: CoercionForm::Type,
    ) -> Expr<'a> {
        let (declared, result) = catalog::function_signature(function);
        let fits = |(argument, declared): (&Expr, &Oid)| argument.has_type(*declared);
        assert_eq!(arguments.len(), declared.len());
        assert!(arguments.iter().zip(&declared).all(fits));
        let (list, none) = (List::build(arguments), pg_sys::InvalidOid);
        // SAFETY: the arguments have the function's declared types.
        unsafe { Expr::new(pg_sys::makeFuncExpr(function, result, list, none, none, form).cast()) }
    }

    /// Makes `NOT condition`.
    pub fn not(self, condition: Expr<'a>) -> Expr<'a> {
        self.bool_expr(BoolExprType::NOT_EXPR, &[condition])
    }

    /// Makes `a AND b`.
    pub fn and(self, a: Expr<'a>, b: Expr<'a>) -> Expr<'a> {
        self.bool_expr(BoolExprType::AND_EXPR, &[a, b])
    }

    /// Makes `first OR others[0] OR ...`. Returns `first` if `others` is empty.
    pub fn or(self, first: Expr<'a>, others: &[Expr<'a>]) -> Expr<'a> {
        match others {
            [] => first,
            _ => self.bool_expr(BoolExprType::OR_EXPR, &[&[first], others].concat()),
        }
    }

    fn bool_expr(self, operator: BoolExprType::Type, conditions: &[Expr<'a>]) -> Expr<'a> {
        assert!(conditions.iter().all(|it| it.has_type(pg_sys::BOOLOID)));
        // SAFETY: the operator takes this number of conditions.
        unsafe { Expr::new(pg_sys::makeBoolExpr(operator, List::build(conditions), -1).cast()) }
    }
}
