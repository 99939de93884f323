//! Rewrites comparisons of estimated Jaccard distances and similarities to operators that indexes
//! support. Most become `value <@ ball`, where a ball contains all values within a radius of its
//! centre. MinHash signatures and fingerprints both have such estimates.
//!
//! | written | planned |
//! |---|---|
//! | `sig <%> q <= r`, `r >= q <%> sig` | `sig <@ minhash_ball(q, r)` |
//! | `sig <%> q < r` | `sig <@ _neardup_ball(q, r, 1)` |
//! | `minhash_similarity(sig, q) >= s` | `sig <@ _neardup_ball(q, s, 2)` |
//! | `minhash_similarity(sig, q) > s` | `sig <@ _neardup_ball(q, s, 3)` |
//! | the opposite of these | `NOT sig <@ ...` |
//! | `sig <%> q = 0`, `minhash_similarity(sig, q) = 1` | `sig <@ ...` |
//! | `minhash_similarity(sig, q) = s` | `sig <@ ... AND NOT sig <@ ...` |
//! | `fingerprint_similarity(sig, q)` | the same as `minhash_similarity(sig, q)` |
//! | `fingerprint_similarity(fp, q) >= s` | `fp <@ ball(q, radius)` |
//! | `fingerprint_similarity(fp, q) > s` | `fp <@ ball(q, radius)`, with the radius above `s` |
//! | `fingerprint_similarity(fp, q) = 1` | `fp <@ ball(q, 0)` |
//! | `fingerprint_similarity(fp, q) = s` | `_neardup_at_distance(fp, q, distance)` |
//! | `fingerprint_similarity(fp, q) IN (s, t)` | one equality OR the other |
//! | `1 - s <= 0.2`, `100 * s >= 80`, `s::numeric >= 0.8`, ... | the same as `s >= bound` |
//! | `coalesce(s, 0) >= 0.8` | `s >= 0.8`, where NULL counts as false |
//! | the same with columns on both sides | `_neardup_within(a, b, bound...)` |
//!
//! The radius of fingerprints is a constant if `s` is one. Otherwise it is a call of
//! `_neardup_similarity_radius(s, bits)` or `_neardup_similarity_radius_above(s, bits)`.
//!
//! [`super::monotone`] converts a bound of `1 - s` to a bound of `s`. If the bound is not known
//! while planning, `_neardup_inverse` converts it when the query runs.
//!
//! The comparisons are the server's own operators on float8. The parser converts bounds of all
//! other numeric types except float4 to float8. [`super::conditions`] finds the comparisons.
use neardup_blocktree::metric::Metric;
use neardup_sketch::minhash_fingerprint;
use pgrx::pg_sys::{self, Datum, Oid};

use super::catalog::{Catalog, SearchedType, catalog};
use super::comparison::{Comparison, comparison_of};
use super::monotone::{Admitted, Monotone};
use super::radius::as_float8;
use super::rewrite::is_trivial;
use super::within::within;
use crate::types::signature::Bound;
use neardup_pg::catalog::{btree_family, family_member, operator};
use neardup_pg::errors::UserError;
use neardup_pg::expr::{Expr, ExprKind, List};
use neardup_pg::fmgr::{Call, export};
use neardup_pg::planned_conditions::ConditionContext;
use neardup_pg::planner::Planner;
use neardup_pg::planner_request::UNHANDLED;
use neardup_pg::value::Value;

/// Estimate in a condition or in ORDER BY: the Jaccard distance `left <%> right`, or a call of a
/// similarity function, such as `minhash_similarity(left, right)`.
pub struct JaccardEstimate<'c, 'a> {
    /// Type of both operands.
    pub searched: &'c SearchedType,
    /// Left and right operand, or the two arguments of the function.
    pub values: [Expr<'a>; 2],
    /// True for a similarity, false for a distance.
    is_similarity: bool,
}

impl JaccardEstimate<'_, '_> {
    /// Returns whether evaluating both values twice costs nothing.
    fn is_trivial(&self) -> bool {
        self.values.into_iter().all(is_trivial)
    }
}

/// Maximum number of elements of an IN list that is rewritten. A condition with a longer list stays
/// as it is, because each element may become an index search.
const LONGEST_LIST: usize = 64;
/// Largest bound of a similarity that raises no error. A larger bound is a mistake, often a
/// percentage. The limit is slightly above 1, because a bound of 1 that is computed as a sum of
/// fractions has a rounding error.
const LARGEST_BOUND: f64 = 1.0 + 1e-9;

/// Support function of `<%>`, `minhash_similarity` and `fingerprint_similarity`. It leaves the call
/// unchanged. The planner calls it while it simplifies the query. The first call loads the library,
/// which installs the hook that rewrites conditions. Each call looks up the objects of the
/// extension, so that the hook can use them.
fn estimate_support(call: &mut Call) -> Datum {
    catalog(call.function_oid());
    UNHANDLED
}

/// Rewrites a condition on an estimated distance or similarity to a form that indexes support. The
/// planner has already simplified the condition. Returns `None` if the condition has none of the
/// forms in the table at the top of this file. `context` describes the position of the condition in
/// the query or index.
///
/// Raises an error if a condition of the query requires a similarity above 1, because it can never
/// be true.
pub fn rewritten<'a>(
    catalog: &Catalog,
    planner: Planner<'a>,
    condition: Expr<'a>,
    context: ConditionContext,
) -> Option<Expr<'a>> {
    let (operator, operands) = match condition.kind() {
        ExprKind::Any(equality, operands) => {
            return one_of(catalog, planner, equality, operands, context);
        }
        ExprKind::Operator(operator, operands) => (operator, operands),
        _ => return None,
    };
    let operands @ [left, right] = operands.elements()?;
    let (side, position) = match EstimateSide::read(catalog, left) {
        Some(side) => (side, 0),
        None => (EstimateSide::read(catalog, right)?, 1),
    };
    let comparison = [pg_sys::FLOAT8OID, pg_sys::NUMERICOID, pg_sys::INT4OID]
        .into_iter()
        .find_map(|number| comparison_of(operator, number))?;
    let compared = ComparedEstimate {
        side,
        operator,
        operands,
        position,
    };
    let comparison = match position {
        0 => comparison,
        _ => comparison.commuted(),
    };
    compared.rewritten(catalog, planner, comparison, context)
}

/// One side of a comparison, or an ORDER BY item, that is a monotone function of an estimated
/// distance or similarity.
pub struct EstimateSide<'c, 'a> {
    /// The estimated distance or similarity.
    pub estimate: JaccardEstimate<'c, 'a>,
    /// Monotone function of the estimate; the identity if the side is the estimate itself.
    pub function: Monotone<'a>,
}

impl<'c, 'a> EstimateSide<'c, 'a> {
    /// Parses an expression that is a monotone function of an estimate; `None` for other
    /// expressions.
    pub fn read(catalog: &'c Catalog, expression: Expr<'a>) -> Option<Self> {
        let leaf = |expression| estimate_below(catalog, expression);
        let (estimate, function) = Monotone::read(expression, leaf)?;
        Some(EstimateSide { estimate, function })
    }
}

/// Comparison of a bound with an estimate, or with a monotone function of an estimate.
struct ComparedEstimate<'c, 'a> {
    /// Parsed form of the operand that contains the estimate.
    side: EstimateSide<'c, 'a>,
    /// Comparison operator as written.
    operator: Oid,
    /// Both operands as written.
    operands: [Expr<'a>; 2],
    /// Index in `operands` of the operand that contains the estimate: 0 for left, 1 for right.
    position: usize,
}

impl<'a> ComparedEstimate<'_, 'a> {
    /// Rewrites the comparison to conditions with balls; `None` if that is impossible. `comparison`
    /// is the meaning of the operator if the operand with the estimate is on the left. For example,
    /// it is `>=` for `bound <= estimate`.
    fn rewritten(
        &self,
        catalog: &Catalog,
        planner: Planner<'a>,
        comparison: Comparison,
        context: ConditionContext,
    ) -> Option<Expr<'a>> {
        let EstimateSide { estimate, function } = &self.side;
        let bound = self.operands[1 - self.position];
        if context.in_query && estimate.is_similarity && function.is_identity() {
            reject_percent(comparison, bound);
        }
        if function.is_identity() {
            return rewrite(catalog, planner, estimate, comparison, bound);
        }
        let holds = |operator, value| {
            let mut operands = self.operands;
            operands[self.position] = value;
            planner.operator(operator, operands[0], operands[1])
        };
        if function.replaces_null() {
            let rejects = || function.rejects_null(planner, |value| holds(self.operator, value));
            if !context.truth_only || !bound.is_constant() || !rejects() {
                return None;
            }
        }
        let solved = |operator, comparison| {
            let holds = |value| holds(operator, value);
            let admitted = function.solved(catalog, planner, comparison, bound, holds)?;
            let (comparison, bound) = match admitted {
                Admitted::AtMost(bound) => (Comparison::LessOrEqual, bound),
                Admitted::AtLeast(bound) => (Comparison::GreaterOrEqual, bound),
            };
            rewrite(catalog, planner, estimate, comparison, bound)
        };
        match comparison {
            Comparison::NotEqual => None,
            Comparison::Equal if bound.has_columns() || !estimate.is_trivial() => None,
            Comparison::Equal => {
                let [least, most] = self.bounds_of_equality()?;
                Some(planner.and(
                    solved(least, Comparison::GreaterOrEqual)?,
                    solved(most, Comparison::LessOrEqual)?,
                ))
            }
            _ => solved(self.operator, comparison),
        }
    }

    /// Returns the operators of the two comparisons that replace an equality. The first comparison
    /// is true if the estimate is at least the bound, the second if it is at most the bound. The
    /// operators are `>=` and `<=` if the estimate is on the left, and `<=` and `>=` if it is on
    /// the right. `None` if the btree operator family of the operands lacks them.
    fn bounds_of_equality(&self) -> Option<[Oid; 2]> {
        let [left, right] = self.operands.map(Expr::base_type);
        let family = btree_family(left);
        let member = |strategy| family_member(family, left, right, strategy);
        let [less, greater] = [
            pg_sys::BTLessEqualStrategyNumber,
            pg_sys::BTGreaterEqualStrategyNumber,
        ];
        match self.position {
            0 => Some([member(greater)?, member(less)?]),
            _ => Some([member(less)?, member(greater)?]),
        }
    }
}

/// Rewrites `side = ANY (list)` to one equality for each element of the list, joined by OR.
/// `equality` is the operator `=`, and `operands` are the side and the list. `None` if the list is
/// too long or not constant, or an equality cannot be rewritten.
fn one_of<'a>(
    catalog: &Catalog,
    planner: Planner<'a>,
    equality: Oid,
    operands: List<'a>,
    context: ConditionContext,
) -> Option<Expr<'a>> {
    let [left, array] = operands.elements()?;
    if comparison_of(equality, pg_sys::FLOAT8OID) != Some(Comparison::Equal) {
        return None;
    }
    let is_long = |numbers: &Vec<f64>| numbers.len() > LONGEST_LIST;
    let mut wanted = array
        .value()?
        .floats()
        .filter(|numbers| !is_long(numbers))?;
    wanted.sort_by(f64::total_cmp);
    wanted.dedup();
    // The right operand must have the type of the list's elements.
    let element = operator(equality)?.oprright;
    let conditions: Option<Vec<Expr>> = (wanted.into_iter())
        .map(|number| {
            let bound = match element {
                pg_sys::FLOAT4OID => planner.constant(Value::float4(number as f32)),
                _ => planner.constant(Value::float8(number)),
            };
            let compared = ComparedEstimate {
                side: EstimateSide::read(catalog, left)?,
                operator: equality,
                operands: [left, bound],
                position: 0,
            };
            compared.rewritten(catalog, planner, Comparison::Equal, context)
        })
        .collect();
    let conditions = conditions?;
    let (first, others) = conditions.split_first()?;
    Some(planner.or(*first, others))
}

/// Raises an error if the condition `similarity comparison bound` requires a similarity above 1,
/// for example because the bound is a percentage.
fn reject_percent(comparison: Comparison, bound: Expr) {
    let reaches = matches!(
        comparison,
        Comparison::GreaterOrEqual | Comparison::Greater | Comparison::Equal
    );
    let Some(number) = bound
        .float()
        .filter(|number| reaches && *number > LARGEST_BOUND)
    else {
        return;
    };
    let error = UserError::invalid_parameter(format!("similarity {number} is out of range"))
        .detail("A similarity is a number from 0 to 1, so the condition is never true.");
    match number <= 100.0 {
        true => error.hint(format!(
            "Divide a percentage by 100: write {} for {number} percent.",
            number / 100.0
        )),
        false => error.hint("Compare the similarity with a number from 0 to 1."),
    }
    .raise()
}

/// Parses an expression that is an estimated distance or similarity; `None` for other expressions.
/// Ignores type relabelling (RelabelType) around the estimate.
fn estimate_below<'c, 'a>(
    catalog: &'c Catalog,
    expression: Expr<'a>,
) -> Option<JaccardEstimate<'c, 'a>> {
    let (searched, arguments, is_similarity) = match expression.strip_relabel().kind() {
        ExprKind::Operator(operator, arguments) => {
            let searched = catalog.by_distance(operator)?;
            if !searched.metric.is_jaccard() {
                return None;
            }
            (searched, arguments, false)
        }
        ExprKind::Call(function, arguments) => {
            let is_similarity =
                |searched: &&SearchedType| searched.similarity_functions.contains(&function);
            let searched = catalog.types.iter().find(is_similarity)?;
            (searched, arguments, true)
        }
        _ => return None,
    };
    Some(JaccardEstimate {
        searched,
        values: arguments.elements()?,
        is_similarity,
    })
}

/// Rewrites the condition `estimate comparison bound` to a condition with a ball, or to its
/// negation; `None` if that is impossible.
fn rewrite<'a>(
    catalog: &Catalog,
    planner: Planner<'a>,
    estimate: &JaccardEstimate<'_, 'a>,
    comparison: Comparison,
    bound: Expr<'a>,
) -> Option<Expr<'a>> {
    let bound = as_float8(planner, bound)?;
    if comparison == Comparison::Equal {
        return equal(catalog, planner, estimate, bound);
    }
    let exact = if estimate.is_similarity { 1.0 } else { 0.0 };
    let (kind, negated) = match (comparison, estimate.is_similarity) {
        (Comparison::LessOrEqual, false) => (Bound::Distance, false),
        (Comparison::Less, false) => (Bound::DistanceBelow, false),
        (Comparison::Greater, false) => (Bound::Distance, true),
        (Comparison::GreaterOrEqual, false) => (Bound::DistanceBelow, true),
        (Comparison::GreaterOrEqual, true) => (Bound::Similarity, false),
        (Comparison::Greater, true) => (Bound::SimilarityAbove, false),
        (Comparison::Less, true) => (Bound::Similarity, true),
        (Comparison::LessOrEqual, true) => (Bound::SimilarityAbove, true),
        (Comparison::NotEqual, _) if bound.float() != Some(exact) => return None,
        (Comparison::Equal | Comparison::NotEqual, true) => (Bound::Similarity, true),
        (Comparison::Equal | Comparison::NotEqual, false) => (Bound::Distance, true),
    };
    let condition = within_bound(catalog, planner, estimate, kind, bound)?;
    Some(match negated {
        true => planner.not(condition),
        false => condition,
    })
}

/// Rewrites `estimate = bound` to a condition that indexes support; `None` if that is impossible.
/// The result depends on the bound and the type:
///
/// - If the bound is that of equal values (distance 0 or similarity 1), the result is a condition
///   with one ball.
/// - For fingerprints and another constant bound, the result is a call of `_neardup_at_distance`.
/// - Otherwise two balls are used. The values must be in the ball of `bound`, but not in the
///   smaller ball of the values that are strictly nearer.
fn equal<'a>(
    catalog: &Catalog,
    planner: Planner<'a>,
    estimate: &JaccardEstimate<'_, 'a>,
    bound: Expr<'a>,
) -> Option<Expr<'a>> {
    // Keep an equality with a column, because the planner can join tables by it.
    if bound.has_columns() {
        return None;
    }
    let (kind, beyond) = match estimate.is_similarity {
        true => (Bound::Similarity, Bound::SimilarityAbove),
        false => (Bound::Distance, Bound::DistanceBelow),
    };
    let part = |kind| within_bound(catalog, planner, estimate, kind, bound);
    let exact = if estimate.is_similarity { 1.0 } else { 0.0 };
    if bound.float() == Some(exact) {
        return part(kind);
    }
    if let Metric::Hamming { bits } = estimate.searched.metric
        && let Some(number) = bound.float()
    {
        let radius = minhash_fingerprint::radius(number, bits);
        let above = minhash_fingerprint::radius_above(number, bits);
        // Similarity 0 is the estimate for many distances. Each other similarity belongs to one
        // distance or none.
        if radius - above > 1 {
            return None;
        }
        let distance = planner.int4(if radius > above { radius } else { -1 });
        let [left, right] = estimate.values;
        let function = estimate.searched.at_distance_function?;
        return Some(planner.call(function, &[left, right, distance]));
    }
    // The replacement evaluates the arguments twice, so they must cost nothing.
    (estimate.is_trivial() && is_trivial(bound))
        .then(|| Some(planner.and(part(kind)?, planner.not(part(beyond)?))))?
}

/// Returns the condition that the two values of `estimate` are within `bound`. `kind` says how
/// `bound` limits the estimate, for example as a minimum similarity. Fingerprints have only an
/// estimated similarity, no estimated distance. So the function returns `None` for fingerprints if
/// `kind` limits a distance.
fn within_bound<'a>(
    catalog: &Catalog,
    planner: Planner<'a>,
    estimate: &JaccardEstimate<'_, 'a>,
    kind: Bound,
    bound: Expr<'a>,
) -> Option<Expr<'a>> {
    let bound = match estimate.searched.metric {
        Metric::Hamming { bits } => vec![radius(catalog, planner, bits, kind, bound)?],
        Metric::Jaccard(()) | Metric::Overlap => vec![bound, planner.int4(kind as i32)],
    };
    Some(within(planner, estimate.searched, estimate.values, &bound))
}

/// Converts a bound of the similarity of fingerprints to a radius, as an expression of type int4.
/// `bits` is the width of the fingerprints. Returns `None` if `kind` says that `bound` limits a
/// distance instead.
fn radius<'a>(
    catalog: &Catalog,
    planner: Planner<'a>,
    bits: u32,
    kind: Bound,
    bound: Expr<'a>,
) -> Option<Expr<'a>> {
    let [least, above] = catalog.similarity_radii;
    let (function, of_constant): (Oid, fn(f64, u32) -> i32) = match kind {
        Bound::Similarity => (least, minhash_fingerprint::radius),
        Bound::SimilarityAbove => (above, minhash_fingerprint::radius_above),
        Bound::Distance | Bound::DistanceBelow => return None,
    };
    Some(match bound.float() {
        Some(constant) => planner.int4(of_constant(constant, bits)),
        None => planner.call(function, &[bound, planner.int4(bits as i32)]),
    })
}

export! {
    guarded "_neardup_estimate_support" => estimate_support;
}
