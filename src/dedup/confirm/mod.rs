//! Confirmation of candidates by the exact Jaccard similarity of their texts (the argument
//! `confirm`). Candidates are rows whose fingerprints or signatures are near each other. A text is
//! represented by its features. Only their hashes are stored.
//!
//! A fingerprint or signature only estimates the similarity of texts. The search therefore uses a
//! wider bound than the caller's ([`candidate_bound`](neardup_sketch::candidates)), and then
//! compares the features of the texts that it finds. The features are computed once for each text.
mod feature_sets;
mod features;

use neardup_blocktree::key::Tid;
use neardup_blocktree::metric::NEAR_DUPLICATE_SIMILARITY;
use pgrx::pg_sys;

use super::bound::{Bound, SearchBound};
use super::progress::Progress;
use crate::am::makers::text_calls_of_index;
pub use feature_sets::FeatureSets;
pub use features::{feature_call, feature_hashes};
use neardup_pg::caller_sql::{Expression, values_of_rows};
use neardup_pg::catalog;
use neardup_pg::fmgr::Call;
use neardup_pg::locked_index::LockedIndex;

/// Name of the SQL parameter, for error messages.
const PARAMETER: &str = "confirm";

/// Condition that the texts of two candidates must meet to be near-duplicates.
pub struct Confirmation {
    /// SQL expression for the feature hashes of a row's text, of type `bigint[]`.
    features: Vec<u8>,
    /// Minimum Jaccard similarity of the two texts.
    pub similarity: f64,
}

/// Argument `confirm` of a call, and the minimum similarity of texts, before the index is known.
pub struct ConfirmArgument {
    /// Expression for a row's text, or for an array of its feature hashes.
    text: Expression,
    /// Minimum Jaccard similarity of two texts.
    similarity: f64,
}

impl ConfirmArgument {
    /// Reads the arguments `confirm`, `radius` and `similarity` of a call. `n` is the position of
    /// `confirm`, and the array has the positions of the other two. Returns the argument `confirm`,
    /// or `None` if it is NULL, and the bound of the search.
    ///
    /// Without `confirm`, the bound is `radius` or `similarity`, or `None` if both are NULL. With
    /// `confirm`, `similarity` is the minimum similarity of the texts (0.8 if it is NULL). The
    /// bound is then the maximum distance of candidates, `radius`, if the caller passed it.
    /// Otherwise the bound is the similarity of the texts, and the caller of this function must
    /// widen it for the search for candidates.
    pub fn read(
        call: &Call,
        n: usize,
        [radius, similarity]: [usize; 2],
    ) -> (Option<Self>, Option<Bound>) {
        let Some(text) = call.text(n) else {
            return (None, Bound::read(call, [radius, similarity]));
        };
        let given = match call.is_null(similarity) {
            true => NEAR_DUPLICATE_SIMILARITY,
            false => call.float8(similarity),
        };
        let bound = match call.is_null(radius) {
            true => Bound::from_similarity(given),
            false => {
                Bound::from_similarity(given);
                Bound::from_radius(call.int4(radius))
            }
        };
        let argument = ConfirmArgument {
            text: Expression::parse(PARAMETER, &text),
            similarity: given,
        };
        (Some(argument), Some(bound))
    }

    /// Returns the condition on the texts of candidates that a search of an index finds.
    /// `relations` has the index and its table. Raises an error if the caller's expression is
    /// invalid for the table. If the expression returns a text, the features of the text are
    /// computed with the options from which the indexed values were made. `function` is the
    /// extension's function being called.
    fn confirmation(self, function: pg_sys::Oid, relations: &LockedIndex) -> Confirmation {
        let (table, index) = (relations.table(), relations.index());
        let text_type = self.text.check(PARAMETER, table);
        let is_array = catalog::base_type(text_type) == pg_sys::INT8ARRAYOID;
        let features = match is_array {
            true => self.text.sql(),
            false => {
                let calls = text_calls_of_index(function, table, index);
                let text = self.text.as_text(text_type);
                let schema = catalog::schema_of_function(function);
                feature_call(&text, &catalog::schema_name(schema), &calls, &index.shown())
            }
        };
        Confirmation {
            features: [b"(", features.as_slice(), b")"].concat(),
            similarity: self.similarity,
        }
    }
}

/// Returns the bound of a search in an index, and the condition on the texts of the rows that the
/// search finds. The condition is `None` if `confirm` is `None`. `bound` is the bound that
/// [`ConfirmArgument::read`] returned, and `function` is the extension's function being called.
pub fn search_bound(
    confirm: Option<ConfirmArgument>,
    bound: Option<Bound>,
    function: pg_sys::Oid,
    relations: &LockedIndex,
) -> (SearchBound, Option<Confirmation>) {
    let confirmation = confirm.map(|confirm| confirm.confirmation(function, relations));
    let bound = match (&confirmation, bound) {
        (Some(_), Some(bound)) => SearchBound::from_candidates(function, relations, bound),
        _ => SearchBound::new(function, relations, bound),
    };
    (bound, confirmation)
}

impl Confirmation {
    /// Reads the texts of the rows whose addresses `next` returns, until it returns `None`. Calls
    /// `each` for each row, in no particular order, with its address and the sorted hashes of its
    /// text's features. A row without a text has no features. `count` is the number of rows, for
    /// progress reports.
    pub fn for_each_text(
        &self,
        relations: &LockedIndex,
        count: u64,
        next: &mut dyn FnMut() -> Option<Tid>,
        mut each: impl FnMut(Tid, &[u64]),
    ) {
        let mut progress = Progress::new("reading texts", "rows", count as f64);
        let table = relations.table();
        values_of_rows(PARAMETER, &self.features, table, next, |row, value| {
            progress.advance(1);
            each(row, &feature_hashes(value));
        });
        progress.finish();
    }
}
