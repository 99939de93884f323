//! Radius or similarity of most searches of an index. A build chooses the layout for it.
use neardup_blocktree::block_layout::default_radius;
use neardup_blocktree::metric::{Metric, NEAR_DUPLICATE_SIMILARITY, UsualBound};

use super::keys::Layout;
use super::makers::{Maker, makers_of_index};
use super::options::BuildOptions;
use crate::planner::catalog::catalog;
use neardup_pg::catalog::base_type;
use neardup_pg::errors::UserError;
use neardup_pg::expr::Form;
use neardup_pg::rel::Rel;

/// Returns the bound of an index with these options on a table, as a build stores it; `None` for
/// arrays. Raises an error for a radius that is larger than the width.
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
                .hint("Set \"radius\" to the largest distance of near-duplicates.")
                .raise()
        }
        Some(radius) => radius,
        None => (radius_of_balls(index, bits))
            .or_else(|| radius_of_makers(table, index, bits))
            .unwrap_or_else(|| default_radius(bits)),
    };
    Some(UsualBound::Radius(radius))
}

/// Returns the radius of `ball(value, radius)` with a constant radius, as the last column of an
/// index.
fn radius_of_balls(index: Rel, bits: u32) -> Option<u32> {
    let expression = index.last_expression()?.strip_relabel();
    let Form::Call(function, arguments) = expression.form() else {
        return None;
    };
    let catalog = catalog(index.handler())?;
    let searched = catalog.by_ball(base_type(expression.type_oid()))?;
    if function != searched.ball_function {
        return None;
    }
    let radius = arguments.iter().nth(1)?.integer()?;
    // A ball with a larger radius holds all values, and one with a negative radius none.
    u32::try_from(radius).ok().map(|radius| radius.min(bits))
}

/// Returns the radius of the function that made the fingerprints; `None` for several of different
/// radii, and for a function of another width than the index has.
fn radius_of_makers(table: Rel, index: Rel, bits: u32) -> Option<u32> {
    let makers = makers_of_index(index.handler(), table, index);
    let radius = makers.first()?.usual_radius();
    let is_common = |maker: &Maker| maker.bits() == bits && maker.usual_radius() == radius;
    makers.iter().all(is_common).then_some(radius)
}
