//! Rewrites comparisons of a Hamming distance that contain a cast, an offset, COALESCE or an IN
//! list to conditions that indexes support, such as `fp <@ ball(q, radius)`. These comparisons use
//! only the server's own operators, which have no support function of the extension.
//!
//! | written | planned as |
//! |---|---|
//! | `(fp <~> q)::int <= r`, `::bigint`, `::numeric`, `::float8` | `fp <~> q <= r` |
//! | `fp <~> q <= 2.5` | `fp <~> q <= 2`; the number may be a parameter |
//! | `(fp <~> q) + 1 <= 4`, `64 - (fp <~> q) >= 61` | `fp <~> q <= 3` |
//! | `coalesce(fp <~> q, 64) <= 3` | `fp <~> q <= 3`, where NULL counts as false |
//! | `fp <~> q IN (0, 1, 2, 5)` | `fp <~> q <= 2 OR fp <~> q = 5` |
//!
//! [`super::conditions`] calls this module after the planner has simplified a query's conditions.
use pgrx::pg_sys::{self, Oid};

use super::catalog::Catalog;
use super::comparison::{Comparison, comparison_of};
use super::rewrite::{Distance, distance_below, rewrite};
use super::within::within;
use neardup_pg::catalog::operator;
use neardup_pg::expr::{Expr, ExprKind, List};
use neardup_pg::planner::Planner;

/// Maximum number of elements of an IN list that is rewritten. A condition with a longer list stays
/// as it is, because each element may become an index search.
const LONGEST_LIST: usize = 64;

/// One side of a comparison, parsed. The side contains a distance: it is `distance + offset`, or
/// `offset - distance` if `negated` is true.
struct DistanceSide<'c, 'a> {
    distance: Distance<'c, 'a>,
    /// True for `offset - distance`.
    negated: bool,
    offset: i64,
    /// Number by which COALESCE replaces a NULL distance; `None` if there is no COALESCE.
    of_null: Option<i64>,
}

/// Rewrites a condition on a Hamming distance to a form that indexes support. The planner has
/// already simplified the condition. Returns `None` if the condition has none of the forms in the
/// table at the top of this file. `truth_only` is true if the query treats a NULL result of the
/// condition like false, for example at the top level of WHERE.
pub fn rewritten<'a>(
    catalog: &Catalog,
    planner: Planner<'a>,
    condition: Expr<'a>,
    truth_only: bool,
) -> Option<Expr<'a>> {
    let (operator, operands) = match condition.kind() {
        ExprKind::Any(operator, operands) => return one_of(catalog, planner, operator, operands),
        ExprKind::Operator(operator, operands) => (operator, operands),
        _ => return None,
    };
    let [left, right] = operands.elements()?;
    let comparison = || {
        [pg_sys::INT4OID, pg_sys::NUMERICOID, pg_sys::FLOAT8OID]
            .into_iter()
            .find_map(|number| comparison_of(operator, number))
    };
    if let Some(side) = side(catalog, left) {
        compared(catalog, planner, &side, comparison()?, right, truth_only)
    } else {
        let side = side(catalog, right)?;
        let comparison = comparison()?.commuted();
        compared(catalog, planner, &side, comparison, left, truth_only)
    }
}

/// Parses one side of a comparison. Returns `None` unless the expression is a Hamming distance,
/// alone, with a constant offset, or in COALESCE with a constant.
fn side<'c, 'a>(catalog: &'c Catalog, expression: Expr<'a>) -> Option<DistanceSide<'c, 'a>> {
    let expression = without_casts(expression);
    let plain = |distance| DistanceSide {
        distance,
        negated: false,
        offset: 0,
        of_null: None,
    };
    if let Some(distance) = distance_below(catalog, expression) {
        return Some(plain(distance));
    }
    let (function, operands) = match expression.kind() {
        ExprKind::Coalesce(arguments) => {
            let [first, second] = arguments.elements()?;
            return Some(DistanceSide {
                of_null: Some(second.integer()?),
                ..plain(distance_below(catalog, without_casts(first))?)
            });
        }
        ExprKind::Operator(oid, operands) => (operator(oid)?.oprcode.to_u32(), operands),
        _ => return None,
    };
    let [left, right] = operands.elements()?;
    let (distance, number, negated, sign) = match function {
        pg_sys::F_INT4PL => match right.integer() {
            Some(number) => (left, number, false, 1),
            None => (right, left.integer()?, false, 1),
        },
        pg_sys::F_INT4MI => match right.integer() {
            Some(number) => (left, number, false, -1),
            None => (right, left.integer()?, true, 1),
        },
        _ => return None,
    };
    // Do not rewrite larger numbers: their sum with a distance may overflow, and the error must not
    // disappear.
    if number.abs() > i64::from(i32::MAX) / 2 {
        return None;
    }
    Some(DistanceSide {
        negated,
        offset: sign * number,
        ..plain(distance_below(catalog, distance)?)
    })
}

/// Removes a cast from an integer to a wider numeric type, which does not change the value. Also
/// removes type relabelling (RelabelType). Returns any other expression unchanged.
fn without_casts(expression: Expr) -> Expr {
    let expression = expression.strip_relabel();
    let ExprKind::Call(function, arguments) = expression.kind() else {
        return expression;
    };
    let keeps = matches!(
        function.to_u32(),
        pg_sys::F_INT8_INT4 | pg_sys::F_NUMERIC_INT4 | pg_sys::F_FLOAT8_INT4
    );
    match arguments.elements() {
        Some([argument]) if keeps => argument.strip_relabel(),
        _ => expression,
    }
}

/// Rewrites the condition `side comparison number` to a form that indexes support; `None` if that
/// is impossible. `truth_only` is explained at [`rewritten`].
fn compared<'a>(
    catalog: &Catalog,
    planner: Planner<'a>,
    side: &DistanceSide<'_, 'a>,
    comparison: Comparison,
    number: Expr<'a>,
    truth_only: bool,
) -> Option<Expr<'a>> {
    let is_equality = matches!(comparison, Comparison::Equal | Comparison::NotEqual);
    // Keep an equality with a column, because the planner can join tables by it.
    if is_equality && number.has_columns() {
        return None;
    }
    if let Some(of_null) = side.of_null
        && (!truth_only || comparison.holds(of_null, number.integer()?))
    {
        return None;
    }
    if !side.negated && side.offset == 0 {
        return rewrite(catalog, planner, &side.distance, comparison, number);
    }
    let number = number.integer()?;
    let (comparison, number) = if side.negated {
        (comparison.commuted(), side.offset.checked_sub(number)?)
    } else {
        (comparison, number.checked_sub(side.offset)?)
    };
    let number = planner.int4(i32::try_from(number).ok()?);
    rewrite(catalog, planner, &side.distance, comparison, number)
}

/// Rewrites `distance = ANY (list)` to conditions joined by OR. `equality` is the operator, and
/// `operands` are the distance and the list. If the list has all numbers from 0 to some `n`, these
/// numbers become one condition `distance <= n`. Each further number becomes an equality. Returns
/// `None` if the left operand is not a distance, the operator is not an equality, or the list is
/// not constant or has more than [`LONGEST_LIST`] elements.
fn one_of<'a>(
    catalog: &Catalog,
    planner: Planner<'a>,
    equality: Oid,
    operands: List<'a>,
) -> Option<Expr<'a>> {
    let [left, array] = operands.elements()?;
    let distance = distance_below(catalog, without_casts(left))?;
    if operator(equality)?.oprrest.to_u32() != pg_sys::F_EQSEL {
        return None;
    }
    let mut wanted = array.value()?.integers()?;
    if wanted.len() > LONGEST_LIST {
        return None;
    }
    wanted.retain(|number| (0..=i64::from(distance.bits)).contains(number));
    wanted.sort_unstable();
    wanted.dedup();
    let ball = (0..)
        .zip(&wanted)
        .take_while(|(n, wanted)| n == *wanted)
        .count();
    let values = distance.values;
    let exactly = |number| distance.equals(planner, planner.int4(number as i32));
    let mut parts: Vec<Expr> = wanted[ball..]
        .iter()
        .map(|number| exactly(*number))
        .collect();
    if ball > 0 {
        let radius = planner.int4(ball as i32 - 1);
        parts.insert(0, within(planner, distance.searched, values, &[radius]));
    }
    Some(match parts.split_first() {
        None => exactly(-1),
        Some((first, others)) => planner.or(*first, others),
    })
}
