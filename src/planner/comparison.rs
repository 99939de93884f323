//! Comparison operators between a distance or similarity and a number.
use pgrx::pg_sys::{self, Oid};

use neardup_pg::catalog;

/// Comparison of a distance or similarity with a number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
    GreaterOrEqual,
    Greater,
}

impl Comparison {
    /// Returns the comparison with exchanged operands, such as `>` for `<`: it holds for `(b, a)`
    /// if and only if `self` holds for `(a, b)`.
    pub fn commuted(self) -> Self {
        match self {
            Comparison::Less => Comparison::Greater,
            Comparison::LessOrEqual => Comparison::GreaterOrEqual,
            Comparison::GreaterOrEqual => Comparison::LessOrEqual,
            Comparison::Greater => Comparison::Less,
            symmetric => symmetric,
        }
    }

    /// Returns whether `a` compares with `b` in this way.
    pub fn holds(self, a: i64, b: i64) -> bool {
        match self {
            Comparison::Less => a < b,
            Comparison::LessOrEqual => a <= b,
            Comparison::Equal => a == b,
            Comparison::NotEqual => a != b,
            Comparison::GreaterOrEqual => a >= b,
            Comparison::Greater => a > b,
        }
    }
}

/// Returns the comparison that `operator` makes on the type `number`; both are OIDs. It is the
/// strategy of the operator in the btree operator family of the type, for example `<=`. `<>` has no
/// strategy there, so it is recognized by its negator `=`. Returns `None` for operators that are
/// not comparisons of this type.
pub fn comparison_of(operator: Oid, number: Oid) -> Option<Comparison> {
    let family = catalog::btree_family(number);
    let strategy = |operator| catalog::strategy_in_family(operator, family) as u32;
    match strategy(operator) {
        pg_sys::BTLessStrategyNumber => Some(Comparison::Less),
        pg_sys::BTLessEqualStrategyNumber => Some(Comparison::LessOrEqual),
        pg_sys::BTEqualStrategyNumber => Some(Comparison::Equal),
        pg_sys::BTGreaterEqualStrategyNumber => Some(Comparison::GreaterOrEqual),
        pg_sys::BTGreaterStrategyNumber => Some(Comparison::Greater),
        _ => {
            let negator = catalog::operator(operator)?.oprnegate;
            (strategy(negator) == pg_sys::BTEqualStrategyNumber).then_some(Comparison::NotEqual)
        }
    }
}
