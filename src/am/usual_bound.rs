//! Usual bound of an index: the radius or similarity that most searches of the index will use. A
//! build chooses the layout for it.
use neardup_blocktree::block_layout::default_radius;
use neardup_blocktree::metric::{Metric, NEAR_DUPLICATE_SIMILARITY, UsualBound};

use super::keys::Layout;
use super::makers::{Maker, makers_of_index};
use super::options::BuildOptions;
use crate::planner::catalog::catalog;
use neardup_pg::catalog::base_type;
use neardup_pg::errors::UserError;
use neardup_pg::expr::ExprKind;
use neardup_pg::rel::Rel;

/// Returns the usual bound of an index with these options: the option `radius` or `similarity`, or
/// a default if the option is not given. The default radius follows from the expression that makes
/// the fingerprints, or from their width. `None` for an index on arrays. Raises an error for a
/// radius that is larger than the fingerprints' width.
pub fn usual_bound(
    table: Rel,
    index: Rel,
    layout: &Layout,
    options: &BuildOptions,
) -> Option<UsualBound> {
    let bits = match layout.metric {
        Metric::Hamming { bits } => bits,
        Metric::Jaccard(()) => {
            let similarity = options.similarity().unwrap_or(NEAR_DUPLICATE_SIMILARITY);
            return Some(UsualBound::Similarity(similarity));
        }
        Metric::Overlap => return None,
    };
    let radius = match options.radius() {
        Some(radius) if radius > bits => {
            UserError::invalid_parameter(format!("radius {radius} is out of range"))
                .detail(format!("Fingerprints of this index have {bits} bits."))
                .hint("Set \"radius\" to the maximum distance between near-duplicates.")
                .raise()
        }
        Some(radius) => radius,
        None => (radius_of_balls(index, bits))
            .or_else(|| radius_of_makers(table, index, bits))
            .unwrap_or_else(|| default_radius(bits)),
    };
    Some(UsualBound::Radius(radius))
}

/// Returns the constant radius, in bits, of an index on `ball(value, radius)`; `None` if the index
/// is not on such an expression.
fn radius_of_balls(index: Rel, bits: u32) -> Option<u32> {
    let expression = index.searched_expression()?.strip_relabel();
    let ExprKind::Call(function, arguments) = expression.kind() else {
        return None;
    };
    let catalog = catalog(index.handler())?;
    let searched = catalog.by_ball(base_type(expression.type_oid()))?;
    if function != searched.ball_function {
        return None;
    }
    let radius = arguments.iter().nth(1)?.integer()?;
    // A ball whose radius is the width holds all values, so a larger radius is reduced to the
    // width. A ball with a negative radius is empty and gives no bound.
    u32::try_from(radius).ok().map(|radius| radius.min(bits))
}

/// Returns the conventional radius, in bits, for the functions that make the fingerprints of an
/// index. `None` if there is no such function, if the radii of the functions differ, or if a
/// function makes fingerprints of another width.
fn radius_of_makers(table: Rel, index: Rel, bits: u32) -> Option<u32> {
    let makers = makers_of_index(index.handler(), table, index);
    let radius = makers.first()?.usual_radius();
    let is_common = |maker: &Maker| maker.bits() == bits && maker.usual_radius() == radius;
    makers.iter().all(is_common).then_some(radius)
}
