//! The operators that an operator class of the access method `neardup` may have, and `amvalidate`,
//! which checks them.
//!
//! There are operator classes for values of each [`Metric`], for balls of fingerprints, and for
//! scope columns, which are compared for equality. The operators of arrays are the server's own,
//! for any array. A class for arrays can also serve for a scope column, because it has an equality.
use neardup_blocktree::metric::Metric;
use pgrx::{PgSqlErrorCode, pg_sys};

use super::strategies::{
    CONTAINS, DISTANCE, DISTANCE_NULLS_FIRST, EQUAL, NEAR, OVERLAP, RANGE_OVERLAP, WITHIN,
};
use neardup_pg::catalog::{family_operators, operator_class, operator_result};
use neardup_pg::errors::UserError;
use neardup_pg::rel::Rel;
use neardup_pg::value::ValueType;

/// Number of bytes that a ball of fingerprints has after the bytes of its centre: four for the
/// radius, and four of padding.
pub const BALL_RADIUS_BYTES: i16 = 8;

/// Returns the metric of a type whose values have this length in bytes (`typlen`) and are searched
/// by distance: signatures if the length varies, otherwise fingerprints.
pub fn metric_of_length(length: i16) -> Metric {
    match length {
        -1 => Metric::Jaccard(()),
        bytes => Metric::Hamming {
            bits: 8 * u32::from(bytes.unsigned_abs()),
        },
    }
}

/// Returns the operator `<@` of an operator family for values of type `input`; InvalidOid if there
/// is none.
pub fn ball_operator(family: pg_sys::Oid, input: pg_sys::Oid) -> pg_sys::Oid {
    operator(family, input, WITHIN)
}

/// Returns the operators `=` of an operator family that take type `input` on their left, each with
/// the type on its right.
pub fn equalities(family: pg_sys::Oid, input: pg_sys::Oid) -> Vec<(pg_sys::Oid, pg_sys::Oid)> {
    (family_operators(family).iter())
        .filter(|form| form.amopstrategy == EQUAL as i16 && takes(form, input))
        .map(|form| (form.amopopr, form.amoprighttype))
        .collect()
}

/// Returns whether an operator family has the operator `~=` for values of type `input`.
pub fn compares_nearness(family: pg_sys::Oid, input: pg_sys::Oid) -> bool {
    operator(family, input, NEAR) != pg_sys::InvalidOid
}

/// Returns whether an operator family has the operator `&&` for values of type `input`.
pub fn compares_overlap(family: pg_sys::Oid, input: pg_sys::Oid) -> bool {
    operator(family, input, OVERLAP) != pg_sys::InvalidOid
}

/// Returns whether an operator takes type `input` on its left. Operators on `anyarray` take
/// `bigint[]`.
fn takes(form: &pg_sys::FormData_pg_amop, input: pg_sys::Oid) -> bool {
    form.amoplefttype == input
        || form.amoplefttype == pg_sys::ANYARRAYOID && input == pg_sys::INT8ARRAYOID
}

/// Returns the operator of an operator family that has the strategy number `strategy` and takes
/// type `input` on its left; InvalidOid if there is none.
fn operator(family: pg_sys::Oid, input: pg_sys::Oid, strategy: u16) -> pg_sys::Oid {
    family_operators(family)
        .iter()
        .find(|form| form.amopstrategy == strategy as i16 && takes(form, input))
        .map_or(pg_sys::InvalidOid, |form| form.amopopr)
}

/// Purpose of an operator class.
#[derive(Clone, Copy)]
enum ClassKind {
    /// Values that searches compare by this metric.
    Values(Metric),
    /// Balls of fingerprints whose centre has this many bytes.
    Balls(i16),
    /// Values of scope columns.
    Scope,
}

/// Checks an operator class (`amvalidate`): its type, and each operator's strategy and types.
/// Returns false and reports the defects if it has any.
pub fn validate(opclass: pg_sys::Oid) -> bool {
    let problems = problems(opclass);
    for (what, object) in &problems {
        // The level is INFO, as in the server's own access methods.
        pgrx::info!("neardup: {what} (object {})", object.to_u32());
    }
    problems.is_empty()
}

/// Raises an error unless the access method can use the operator classes of an index. With an
/// unsuitable operator class, the access method would misread values.
pub fn require_valid_classes(index: Rel) {
    for column in 0..index.index_form().key_columns {
        if let Some((what, _)) = problems(index.operator_class(column)).first() {
            UserError::new(
                PgSqlErrorCode::ERRCODE_INVALID_OBJECT_DEFINITION,
                format!("operator class of column {} is not valid", column + 1),
            )
            .detail(format!("The function amvalidate reports: {what}."))
            .hint(
                "Use an operator class of the extension neardup. To check an operator class, call \
                 amvalidate with its OID.",
            )
            .raise();
        }
    }
}

/// Length in bytes of a type's values; negative if it varies.
fn length(oid: pg_sys::Oid) -> i16 {
    ValueType::from_oid(oid).length()
}

/// Returns the defects of an operator class, each with the OID of the operator or class that has
/// it.
fn problems(opclass: pg_sys::Oid) -> Vec<(&'static str, pg_sys::Oid)> {
    let form = operator_class(opclass);
    let (input, stored) = (form.opcintype, form.opckeytype);
    let members = family_operators(form.opcfamily);
    let has = |strategy: u16| {
        let mut fitting = members.iter().filter(|form| takes(form, input));
        fitting.any(|form| form.amopstrategy == strategy as i16)
    };
    let kind = if stored != pg_sys::InvalidOid {
        ClassKind::Balls(length(stored))
    } else if has(WITHIN) {
        ClassKind::Values(metric_of_length(length(input)))
    } else if has(OVERLAP) {
        ClassKind::Values(Metric::Overlap)
    } else {
        ClassKind::Scope
    };
    let mut problems: Vec<(&'static str, pg_sys::Oid)> = members
        .iter()
        .filter_map(|form| Some((problem(form, kind)?, form.amopopr)))
        .collect();
    let defect = match kind {
        ClassKind::Values(Metric::Hamming { bits }) if !matches!(bits, 64 | 128 | 256) => {
            Some("operator class is for a type that does not have 64, 128 or 256 bits")
        }
        ClassKind::Balls(center) if length(input) != center + BALL_RADIUS_BYTES => {
            Some("operator class stores values that are not the centers of its balls")
        }
        ClassKind::Balls(_) if !has(NEAR) => {
            Some("operator class lacks the operator ~= (strategy 2)")
        }
        ClassKind::Values(Metric::Overlap) if input != pg_sys::INT8ARRAYOID => {
            Some("operator class for arrays is for a type other than bigint[]")
        }
        ClassKind::Scope if !has(EQUAL) => Some("operator class lacks the operator = (strategy 3)"),
        _ => None,
    };
    problems.extend(defect.map(|defect| (defect, opclass)));
    problems
}

/// Returns the defect of an operator in an operator class of this kind; `None` if the operator is
/// right. `form` is the operator's row in pg_amop.
fn problem(form: &pg_sys::FormData_pg_amop, kind: ClassKind) -> Option<&'static str> {
    let strategy = u16::try_from(form.amopstrategy).unwrap_or(0);
    let same = form.amoprighttype == form.amoplefttype;
    let sound = match kind {
        ClassKind::Scope => match strategy {
            // The two types may differ: equal integers of different widths have the same hash.
            EQUAL => Some(true),
            RANGE_OVERLAP => Some(same && form.amoplefttype == pg_sys::ANYRANGEOID),
            _ => None,
        },
        ClassKind::Balls(_) => (strategy == NEAR).then_some(same),
        ClassKind::Values(metric) => match (metric, strategy) {
            (Metric::Hamming { bits }, WITHIN) => {
                Some(length(form.amoprighttype) == (bits / 8) as i16 + BALL_RADIUS_BYTES)
            }
            (Metric::Jaccard(()), WITHIN) => Some(!same),
            // A bigint column can also be compared with shorter integers.
            (Metric::Hamming { bits: 64 }, EQUAL) if form.amoplefttype == pg_sys::INT8OID => {
                Some(matches!(
                    form.amoprighttype,
                    pg_sys::INT2OID | pg_sys::INT4OID | pg_sys::INT8OID
                ))
            }
            (Metric::Hamming { .. }, NEAR | EQUAL | DISTANCE | DISTANCE_NULLS_FIRST)
            | (Metric::Jaccard(()), NEAR | EQUAL)
            | (Metric::Overlap, OVERLAP | CONTAINS | EQUAL) => Some(same),
            _ => None,
        },
    };
    let Some(sound) = sound else {
        return Some("operator class has an operator with an unknown strategy number");
    };
    let (purpose, expected) = match strategy {
        DISTANCE | DISTANCE_NULLS_FIRST => (pg_sys::AMOP_ORDER, pg_sys::INT4OID),
        _ => (pg_sys::AMOP_SEARCH, pg_sys::BOOLOID),
    };
    let result = operator_result(form.amopopr);
    if !sound || result != expected || form.amoppurpose as u8 != purpose {
        return Some("operator has types or a purpose that its strategy does not allow");
    }
    None
}
