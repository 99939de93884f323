//! Features that many documents share: a navigation, a disclaimer, a template.
//!
//! [`CommonFeatureCollector`] finds them in the documents of a collection; a [`FeatureSet`] has
//! them, as it is stored; the methods of [`crate::Sketcher`] that end in `_without` leave them out
//! of a text's features.

mod collector;
mod filter;
mod set;

pub use collector::CommonFeatureCollector;
pub(crate) use filter::{RareFeatures, RareMinima};
pub use set::{BadFeatureSet, FeatureSet};
