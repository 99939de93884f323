//! Monotone functions of an estimated distance or similarity `s`, such as `1 - s`, `100 * s` or
//! `round(s::numeric, 2)`. Converts a bound of the function's value to a bound of the estimate.
//!
//! The converted bound is exact despite rounding. `_neardup_inverse` inverts arithmetic on float8,
//! even if the bound is not known while planning. For other functions, bisection finds the last
//! estimate for which the server's own comparison holds.
use pgrx::pg_sys::{self, Oid};

use super::catalog::Catalog;
use super::comparison::Comparison;
use super::radius::as_float8;
use crate::types::inverse::{FloatStep, bisect};
use neardup_pg::catalog::operator;
use neardup_pg::expr::{Expr, ExprKind};
use neardup_pg::planner::Planner;
use neardup_pg::value::Value;

/// Maximum number of steps (operators, casts and other calls) of a function whose bounds are
/// converted. A condition with a longer function is not rewritten.
const MAX_STEPS: usize = 4;
/// Largest absolute value of the constant in a step, such as 100 in `100 * s`. The constant of a
/// multiplication or division must also be at least the reciprocal of this number. A condition with
/// another constant is not rewritten. The limits keep results in the range of int4 and float4,
/// outside which the server would raise an error.
const MAX_CONSTANT: f64 = 10_000.0;
/// Positive number that is smaller than every possible estimate except 0. [`Monotone::bisected`]
/// tries numbers from 0 to 1 to find the last estimate that fulfils a condition. It tries 0, but no
/// number between 0 and this limit. Such a tiny number could make the server's arithmetic raise an
/// error, for example by overflow, that no real estimate would raise.
const SMALLEST: f64 = 1e-9;

/// One step of a monotone function: an operator with a constant operand, a cast, a rounding, or
/// COALESCE.
struct Step<'a> {
    /// Operator or function of the step.
    function: Applied,
    /// Arguments of the operator or function. One of them is the input of the step, see `position`.
    arguments: Vec<Expr<'a>>,
    /// Index in `arguments` of the step's input, which is the estimate or the result of the
    /// previous step.
    position: usize,
    /// The operation and its constant, if the step is arithmetic on float8, which can be inverted.
    /// `None` for other steps.
    float: Option<(FloatStep, f64)>,
}

/// Operator or function that a step applies.
enum Applied {
    /// Operator with this OID.
    Operator(Oid),
    /// Function with this OID.
    Function(Oid),
    /// COALESCE, which replaces NULL by a constant.
    Coalesce,
}

/// Monotone function of an estimate. `steps` are its operations, from the innermost to the
/// outermost.
pub struct Monotone<'a> {
    steps: Vec<Step<'a>>,
}

/// Set of estimates for which a comparison of a monotone function with a bound holds.
pub enum Admitted<'a> {
    /// Estimates up to this float8 expression.
    AtMost(Expr<'a>),
    /// Estimates from this float8 expression on.
    AtLeast(Expr<'a>),
}

impl<'a> Monotone<'a> {
    /// Parses an expression that is a monotone function of an inner expression, such as a
    /// similarity. `leaf` recognizes the inner expression: it returns `Some` for it and `None` for
    /// all others. Returns the result of `leaf`, and the function. Returns `None` if `leaf`
    /// recognizes no inner expression, if the function may not be monotone, or if it has more than
    /// `MAX_STEPS` steps.
    pub fn read<T>(
        mut expression: Expr<'a>,
        leaf: impl Fn(Expr<'a>) -> Option<T>,
    ) -> Option<(T, Self)> {
        let mut steps = Vec::new();
        loop {
            expression = expression.strip_relabel();
            if let Some(found) = leaf(expression) {
                steps.reverse();
                let function = Monotone { steps };
                return function.fits_integers().then_some((found, function));
            }
            if steps.len() == MAX_STEPS {
                return None;
            }
            let step = Step::read(expression)?;
            expression = step.arguments[step.position];
            steps.push(step);
        }
    }

    /// Returns whether no cast to int4 in the function can overflow.
    fn fits_integers(&self) -> bool {
        let is_cast =
            |step: &Step| matches!(step.function, Applied::Function(oid) if to_integer(oid));
        let cast = self.steps.iter().position(is_cast);
        let is_arithmetic = |step: &&Step| matches!(step.function, Applied::Operator(_));
        // Two arithmetic steps multiply an estimate by at most MAX_CONSTANT squared, which fits
        // into int4.
        cast.is_none_or(|cast| self.steps[..cast].iter().filter(is_arithmetic).count() <= 2)
    }

    /// Returns whether the function is the estimate itself, without any step.
    pub fn is_identity(&self) -> bool {
        self.steps.is_empty()
    }

    /// Returns true if the function increases with the estimate, and false if it decreases.
    /// Compares its values at 0 and 1. Returns `None` if these values are equal or cannot be
    /// computed.
    pub fn grows(&self, planner: Planner<'a>) -> Option<bool> {
        let at = |estimate| {
            let value = self.applied(planner, 0, planner.constant(Value::float8(estimate)));
            number(planner.simplified(value))
        };
        let (first, last) = (at(0.0)?, at(1.0)?);
        (first != last).then_some(first < last)
    }

    /// Returns whether a COALESCE in the function replaces a NULL estimate.
    pub fn replaces_null(&self) -> bool {
        (self.steps.iter()).any(|step| matches!(step.function, Applied::Coalesce))
    }

    /// Returns true if the comparison of the function with a bound is false or NULL for a NULL
    /// estimate, so that it never selects a row without an estimate. Each COALESCE in the function
    /// replaces NULL by a constant. So this method evaluates the comparison for each of these
    /// constants. `holds(value)` returns the comparison as an expression, with `value` in place of
    /// the function.
    pub fn rejects_null(&self, planner: Planner<'a>, holds: impl Fn(Expr<'a>) -> Expr<'a>) -> bool {
        let after = (1..).zip(&self.steps);
        let mut replaced = after.filter(|(_, step)| matches!(step.function, Applied::Coalesce));
        replaced.all(|(next, step)| {
            let value = self.applied(planner, next, step.arguments[1]);
            match planner.simplified(holds(value)).kind() {
                ExprKind::Constant(answer) => !answer.is_some_and(Value::as_bool),
                _ => false,
            }
        })
    }

    /// Returns the estimates for which `function comparison bound` is true; `None` if the bound
    /// cannot be converted. First inverts the steps of the function. If that is impossible and the
    /// bound is a constant, searches by bisection. Only the bisection uses `holds`. `holds(value)`
    /// returns the comparison of `value` with the bound as an expression that the server can
    /// evaluate.
    pub fn solved(
        &self,
        catalog: &Catalog,
        planner: Planner<'a>,
        comparison: Comparison,
        bound: Expr<'a>,
        holds: impl Fn(Expr<'a>) -> Expr<'a>,
    ) -> Option<Admitted<'a>> {
        self.inverted(catalog, planner, comparison, bound)
            .or_else(|| bound.is_constant().then(|| self.bisected(planner, holds))?)
    }

    /// Converts the condition `function comparison bound` to a bound of the estimate, by inverting
    /// the steps from the outermost to the innermost. Skips COALESCE, which does not change an
    /// estimate that is not NULL. Returns `None` if another step is not arithmetic on float8, if
    /// the bound cannot be converted to float8, or if the comparison is an equality.
    fn inverted(
        &self,
        catalog: &Catalog,
        planner: Planner<'a>,
        mut comparison: Comparison,
        bound: Expr<'a>,
    ) -> Option<Admitted<'a>> {
        let mut bound = as_float8(planner, bound)?;
        for step in self.steps.iter().rev() {
            if matches!(step.function, Applied::Coalesce) {
                continue;
            }
            let (float, number) = step.float?;
            let code = [
                Comparison::Less,
                Comparison::LessOrEqual,
                Comparison::GreaterOrEqual,
                Comparison::Greater,
            ]
            .into_iter()
            .position(|known| known == comparison)?;
            let (step, code) = (planner.int4(float as i32), planner.int4(code as i32));
            let constant = planner.constant(Value::float8(number));
            let call = planner.call(catalog.inverse, &[step, constant, code, bound]);
            bound = if bound.is_constant() {
                planner.simplified(call)
            } else {
                call
            };
            let upper = matches!(comparison, Comparison::Less | Comparison::LessOrEqual);
            comparison = match upper == float.grows(number) {
                true => Comparison::LessOrEqual,
                false => Comparison::GreaterOrEqual,
            };
        }
        match comparison {
            Comparison::LessOrEqual => Some(Admitted::AtMost(bound)),
            Comparison::GreaterOrEqual => Some(Admitted::AtLeast(bound)),
            _ => None,
        }
    }

    /// Finds the estimates from 0 to 1 for which the comparison of the function with its bound is
    /// true, by bisection. `holds(value)` returns this comparison as an expression, with `value` in
    /// place of the function. The server evaluates the expression for each `value`. Returns `None`
    /// if the server cannot reduce it to true or false.
    fn bisected(
        &self,
        planner: Planner<'a>,
        holds: impl Fn(Expr<'a>) -> Expr<'a>,
    ) -> Option<Admitted<'a>> {
        let admits = |estimate: f64| {
            let value = self.applied(planner, 0, planner.constant(Value::float8(estimate)));
            match planner.simplified(holds(value)).kind() {
                ExprKind::Constant(Some(answer)) => Some(answer.as_bool()),
                _ => None,
            }
        };
        let constant = |bound| planner.constant(Value::float8(bound));
        let least = admits(0.0)?;
        Some(match (least, admits(SMALLEST)?, admits(1.0)?) {
            (true, true, true) => Admitted::AtLeast(constant(f64::NEG_INFINITY)),
            (false, false, false) => Admitted::AtLeast(constant(f64::INFINITY)),
            (true, false, _) => Admitted::AtMost(constant(0.0)),
            (false, true, _) => Admitted::AtLeast(constant(SMALLEST)),
            _ => {
                let (last, next) = bisect([SMALLEST, 1.0], |at| admits(at) == Some(least));
                match least {
                    true => Admitted::AtMost(constant(last)),
                    false => Admitted::AtLeast(constant(next)),
                }
            }
        })
    }

    /// Returns the expression that applies step number `first` and all later steps to `value`,
    /// which must not be NULL.
    fn applied(&self, planner: Planner<'a>, first: usize, value: Expr<'a>) -> Expr<'a> {
        self.steps[first..].iter().fold(value, |value, step| {
            let mut arguments = step.arguments.clone();
            arguments[step.position] = value;
            match step.function {
                Applied::Operator(operator) if arguments.len() == 1 => {
                    planner.prefix_operator(operator, value)
                }
                Applied::Operator(operator) => {
                    planner.operator(operator, arguments[0], arguments[1])
                }
                Applied::Function(function) => planner.call(function, &arguments),
                // COALESCE returns its first argument, because the value is not NULL.
                Applied::Coalesce => value,
            }
        })
    }
}

impl<'a> Step<'a> {
    /// Returns the outermost operation of an expression as a step; `None` if it is not a known kind
    /// of step.
    fn read(expression: Expr<'a>) -> Option<Self> {
        match expression.kind() {
            ExprKind::Coalesce(list) => {
                let arguments: Vec<Expr> = list.iter().collect();
                let of_null = arguments.get(1)?.value();
                (arguments.len() == 2 && of_null.is_some()).then_some(Step {
                    function: Applied::Coalesce,
                    arguments,
                    position: 0,
                    float: None,
                })
            }
            ExprKind::Operator(oid, list) => {
                Self::from_operator(oid, list.iter().collect(), operator(oid)?.oprcode.to_u32())
            }
            ExprKind::Call(oid, list) => {
                let arguments: Vec<Expr> = list.iter().collect();
                let (_, others) = arguments.split_first()?;
                let is_known = ROUNDINGS.contains(&oid.to_u32()) || to_integer(oid);
                (is_known && others.iter().all(|it| it.value().is_some())).then_some(Step {
                    function: Applied::Function(oid),
                    float: None,
                    arguments,
                    position: 0,
                })
            }
            _ => None,
        }
    }

    /// Returns the step that applies the operator `oid` to `arguments`. `function` is the OID of
    /// the operator's function. Returns `None` unless the operator is monotone arithmetic with one
    /// constant operand within [`MAX_CONSTANT`], or a negation.
    fn from_operator(oid: Oid, arguments: Vec<Expr<'a>>, function: u32) -> Option<Self> {
        use pg_sys as pg;
        let negates = matches!(function, pg::F_FLOAT8UM | pg::F_NUMERIC_UMINUS);
        if arguments.len() == 1 {
            return negates.then_some(Step {
                function: Applied::Operator(oid),
                arguments,
                position: 0,
                float: (function == pg::F_FLOAT8UM).then_some((FloatStep::SubtractFrom, 0.0)),
            });
        }
        let position = match (arguments[0].is_constant(), arguments[1].is_constant()) {
            (false, true) => 0,
            (true, false) => 1,
            _ => return None,
        };
        let constant = number(arguments[1 - position])?;
        let (step, is_float) = match (function, position) {
            (pg::F_FLOAT8PL, _) => (FloatStep::Add, true),
            (pg::F_NUMERIC_ADD, _) => (FloatStep::Add, false),
            (pg::F_FLOAT8MI, 0) => (FloatStep::Subtract, true),
            (pg::F_NUMERIC_SUB, 0) => (FloatStep::Subtract, false),
            (pg::F_FLOAT8MI, _) => (FloatStep::SubtractFrom, true),
            (pg::F_NUMERIC_SUB, _) => (FloatStep::SubtractFrom, false),
            (pg::F_FLOAT8MUL, _) => (FloatStep::Multiply, true),
            (pg::F_NUMERIC_MUL, _) => (FloatStep::Multiply, false),
            (pg::F_FLOAT8DIV, 0) => (FloatStep::Divide, true),
            (pg::F_NUMERIC_DIV, 0) => (FloatStep::Divide, false),
            _ => return None,
        };
        let scales = matches!(step, FloatStep::Multiply | FloatStep::Divide);
        let smallest = if scales { 1.0 / MAX_CONSTANT } else { 0.0 };
        (smallest..=MAX_CONSTANT)
            .contains(&constant.abs())
            .then(|| Step {
                function: Applied::Operator(oid),
                arguments,
                position,
                float: is_float.then_some((step, constant)),
            })
    }
}

/// OIDs of casts and rounding functions that are monotone and raise no error for small numbers.
const ROUNDINGS: [u32; 16] = [
    pg_sys::F_FLOAT4_FLOAT8,
    pg_sys::F_FLOAT8_FLOAT4,
    pg_sys::F_NUMERIC_FLOAT8,
    pg_sys::F_NUMERIC_FLOAT4,
    pg_sys::F_FLOAT8_NUMERIC,
    pg_sys::F_FLOAT4_NUMERIC,
    pg_sys::F_ROUND_NUMERIC,
    pg_sys::F_ROUND_NUMERIC_INT4,
    pg_sys::F_TRUNC_NUMERIC_INT4,
    pg_sys::F_ROUND_FLOAT8,
    pg_sys::F_FLOOR_FLOAT8,
    pg_sys::F_CEIL_FLOAT8,
    pg_sys::F_FLOOR_NUMERIC,
    pg_sys::F_CEIL_NUMERIC,
    pg_sys::F_TRUNC_FLOAT8,
    pg_sys::F_TRUNC_NUMERIC,
];

/// Returns whether a function is a cast from another numeric type to int4.
fn to_integer(function: Oid) -> bool {
    matches!(
        function.to_u32(),
        pg_sys::F_INT4_FLOAT8 | pg_sys::F_INT4_FLOAT4 | pg_sys::F_INT4_NUMERIC
    )
}

/// Returns the approximate value of a constant of a numeric type; `None` for other expressions.
fn number(expression: Expr) -> Option<f64> {
    let value = expression.value()?;
    let integer = || value.integer().map(|integer| integer as f64);
    let numeric = || {
        let is_numeric = expression.base_type() == pg_sys::NUMERICOID;
        is_numeric.then(|| value.output().parse().ok())?
    };
    value.float().or_else(integer).or_else(numeric)
}
