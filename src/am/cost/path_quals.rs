//! Conditions and order of an index scan that the planner considers, as far as they are known
//! during planning. A condition on the searched column may have a ball: all values within a radius
//! of a centre. The columns before the searched column are scope columns. Rows with equal values in
//! them form a scope, and a search usually reads one scope.
use pgrx::pg_sys::Oid;

use crate::am::strategies;
use crate::planner::planned_ball::{BallRadius, PlannedBall, SignatureRadius};
use neardup_pg::catalog;
use neardup_pg::expr::{Expr, ExprKind};
use neardup_pg::scan_path::{ScanPath, ScanQual};

/// Radius of the searches of an index scan, as far as the planner knows it.
#[derive(Clone, Copy)]
pub enum Radius {
    /// The scan has no condition with a radius.
    None,
    /// The scan searches for rows whose value is NULL.
    Null,
    /// The radius is known only when the query runs.
    Unknown,
    /// Conventional radius of near-duplicates (`~=`). It depends on the length of the values.
    NearDuplicate,
    /// Radius in bits or, for signatures, in mismatches.
    Known(u32),
    /// Radius of a ball of signatures: a similarity or a number of mismatches. The length of the
    /// signatures is needed to convert a similarity to mismatches. The index knows this length.
    Signatures(SignatureRadius),
}

/// Order in which an index scan must return rows.
#[derive(Clone, Copy, PartialEq)]
pub enum Order {
    /// Any order.
    None,
    /// By distance from a value. Either the value is the centre of the condition's ball, or no
    /// condition has a ball. The search reads rings of increasing radius around the value. It can
    /// return the nearest rows before it reads the next ring.
    ByCenter,
    /// By distance from a value that is not the centre of the condition's ball. The search reads
    /// all rows in the ball and sorts them before it returns the first one.
    ByAnother,
}

/// Scopes that an index scan searches.
#[derive(Clone, Copy, PartialEq)]
pub enum Scope {
    /// The index has no scope columns.
    Without,
    /// All scopes, because the conditions do not give a value for each scope column.
    All,
    /// One scope. The number is its share of the table's rows.
    One(f64),
}

/// Conditions and order of an index scan, as far as the planner knows them.
pub struct PathQuals<'a> {
    /// Radius with which the scan searches: the smallest radius of all its conditions.
    pub radius: Radius,
    /// Centre of the ball whose radius is `radius`; `None` if the centre is not known or there is
    /// no ball.
    center: Option<Expr<'a>>,
    /// Order in which the scan must return rows.
    pub order: Order,
    /// Scopes that the scan searches.
    pub scope: Scope,
    /// Number of searches that the scan makes: 1, or the number of elements of the array in a
    /// condition `= ANY (array)`.
    pub times: f64,
    /// True if the search may use bands (groups of a signature's hashes) even if it can then miss
    /// rows.
    pub approximate: bool,
    /// Number of elements of the query array in the condition `&&`. The smallest number if there
    /// are several such conditions, and `None` if there are none.
    pub elements: Option<f64>,
    /// Number of elements of the query array in the condition `@>`. The smallest number if there
    /// are several such conditions, and `None` if there are none.
    pub contained: Option<f64>,
}

impl<'a> PathQuals<'a> {
    /// Reads the conditions and the order of a scan of a neardup index.
    pub fn from_path(path: &ScanPath<'a>) -> Self {
        let searched = path.searched_column;
        let mut quals = PathQuals {
            radius: Radius::None,
            center: None,
            order: Order::None,
            scope: Scope::Without,
            times: 1.0,
            approximate: false,
            elements: None,
            contained: None,
        };
        for qual in path.quals.iter().filter(|qual| qual.column == searched) {
            quals.take(path, qual.condition);
        }
        if searched > 0 {
            let on_scope = || path.quals.iter().filter(|qual| qual.column < searched);
            // IS NOT NULL and overlap on a scope column do not select one scope.
            let selects = |qual: &ScanQual| match qual.condition.kind() {
                ExprKind::IsNotNull => false,
                ExprKind::Operator(operator, _) => {
                    let family = path.families[qual.column];
                    catalog::strategy_in_family(operator, family) == i32::from(strategies::EQUAL)
                }
                _ => true,
            };
            let is_given = |column| on_scope().any(|it| it.column == column && selects(it));
            quals.scope = match (0..searched).all(is_given) {
                true => Scope::One(path.selectivity_of(on_scope().copied())),
                false => Scope::All,
            };
        }
        if let Some(from) = path.order_bys.iter().next().and_then(right_operand) {
            let has_radius = matches!(
                quals.radius,
                Radius::Unknown | Radius::NearDuplicate | Radius::Known(_)
            );
            let same = quals.center.is_some_and(|center| center.equals(from));
            quals.order = match has_radius && !same {
                true => Order::ByAnother,
                false => Order::ByCenter,
            };
        }
        quals
    }

    /// Changes `self` to take into account `condition`, a condition on the index's searched column.
    fn take(&mut self, path: &ScanPath<'a>, condition: Expr<'a>) {
        match condition.kind() {
            ExprKind::Any(_, operands) => {
                let [_, array] = operands.elements().expect("two operands");
                self.times *= path.planner.array_length(array).max(1.0);
                self.radius = Radius::Known(0);
            }
            ExprKind::IsNull => self.radius = Radius::Null,
            ExprKind::Operator(operator, operands) => {
                let [_, operand] = operands.elements().expect("two operands");
                self.take_operator(path, operator, operand);
            }
            _ => {}
        }
    }

    /// Changes `self` to take into account the condition `column operator operand`, where `column`
    /// is the index's searched column.
    fn take_operator(&mut self, path: &ScanPath<'a>, operator: Oid, operand: Expr<'a>) {
        let family = path.families[path.searched_column];
        let strategy = catalog::strategy_in_family(operator, family) as u16;
        let elements = match strategy {
            strategies::OVERLAP => Some(&mut self.elements),
            strategies::CONTAINS => Some(&mut self.contained),
            _ => None,
        };
        if let Some(fewest) = elements {
            let count = path.planner.array_length(operand);
            *fewest = Some(fewest.map_or(count, |fewest| count.min(fewest)));
            return;
        }
        let ball = PlannedBall::from_operand(path.planner, operator, operand);
        self.approximate |= ball.as_ref().is_some_and(|ball| ball.approximate);
        let radius = match (strategy, ball.as_ref().and_then(|ball| ball.radius)) {
            (strategies::EQUAL, _) => Radius::Known(0),
            // A ball with a negative radius is empty. Its cost is estimated as for radius 0.
            (_, Some(BallRadius::Bits(radius))) => Radius::Known(radius.max(0) as u32),
            (_, Some(BallRadius::Signatures(radius))) => Radius::Signatures(radius),
            (strategies::NEAR, None) => Radius::NearDuplicate,
            (_, None) => Radius::Unknown,
        };
        let is_narrower = match (self.radius, radius) {
            (Radius::Known(a), Radius::Known(b)) => b < a,
            (Radius::Known(_), _) | (Radius::Signatures(_), Radius::Unknown) => false,
            (_, _) => true,
        };
        if is_narrower {
            self.radius = radius;
            self.center = match ball {
                Some(ball) if strategy == strategies::WITHIN => ball.center,
                _ => Some(operand),
            };
        }
    }
}

/// Right operand of an operator expression; `None` for another expression.
fn right_operand(expression: Expr) -> Option<Expr> {
    match expression.kind() {
        ExprKind::Operator(_, operands) => operands.elements().map(|[_, right]| right),
        _ => None,
    }
}
