//! Work limit of searches beyond the guarantee of an index (the bound within which the index finds
//! all pairs quickly).
//!
//! Up to the radius or similarity that an index was built for, a search compares each row only with
//! a few neighbours in each permutation. Beyond that bound, it compares more rows, at worst every
//! two rows.
use neardup_blocktree::bands::{BandPairPlan, Bands, ExhaustiveWork, exhaustive_work};
use neardup_blocktree::block_layout::max_radius;
use neardup_blocktree::key::Tid;
use neardup_blocktree::pairs::PairPlan;
use pgrx::PgSqlErrorCode;

use super::bound::SignatureBound;
use super::progress::Progress;
use crate::am::index::Index;
use crate::settings;
use crate::types::signature::similarity;
use neardup_pg::errors::{UserError, UserNotice};
use neardup_pg::locked_index::LockedIndex;
use neardup_pg::server;

/// Maximum number of comparisons of two sketches in an exhaustive search of signatures. A sketch is
/// the part of an index key that summarizes a signature. So many comparisons take about a minute. A
/// search that needs more raises an error.
const MOST_COMPARISONS: f64 = 1e10;
/// Comparisons of two sketches per second on one processor, for estimates in messages. Measured
/// (Xeon with AVX-512): 240 million by `neardup_pairs`, 80 million by `neardup_clusters`.
const COMPARISONS_PER_SECOND: f64 = 1.5e8;
/// Maximum number of candidate pairs whose rows an exhaustive search of signatures looks up in the
/// table. A search that expects more candidate pairs raises an error.
const MOST_CANDIDATES: f64 = 2e7;
/// Candidate pairs whose rows are looked up per second in a table that is in memory, for estimates
/// in messages. Measured on the same machine as [`COMPARISONS_PER_SECOND`].
const LOOK_UPS_PER_SECOND: f64 = 4e6;
/// Number of rows of an index up to which every search is allowed, regardless of its work.
const FEW_ROWS: f64 = 5000.0;
/// Minimum recall, in percent, at which the hint of an error suggests an approximate search. The
/// recall is the expected share of the wanted pairs that such a search finds.
const WORTH_OFFERING: f64 = 50.0;
/// Maximum estimated time, in nanoseconds, of a search in a fingerprint index, if its radius is
/// larger than the radius that the index was built for. A search with a longer estimate raises an
/// error.
const LONGEST: f64 = 60e9;
/// Maximum expected number of pairs of unrelated fingerprints that are within a search's radius by
/// chance. If more pairs are expected, a search with a larger radius than the index was built for
/// raises an error.
const MOST_PAIRS: f64 = 1e8;

/// First sentence of the hint for functions with a parameter `exhaustive`, which disables the work
/// limit.
pub const BY_PARAMETER: &str = "Pass exhaustive => true to search anyway.";

/// Plan of a search for all pairs of signatures.
pub struct SignaturePlan {
    /// Plan of the search in the index.
    pub pairs: BandPairPlan,
    /// Number of comparisons of two sketches in an exhaustive search. 0 for a search by bands.
    comparisons: f64,
}

impl SignaturePlan {
    /// Makes the plan for a search within `bound` in an index on signatures. `wanted` returns
    /// whether the row of an index entry takes part.
    ///
    /// A search by bands compares only rows whose signatures are equal in at least one band (a
    /// group of positions). An exhaustive search compares all wanted rows with each other. The plan
    /// is a search by bands in two cases: if such a search finds all pairs within the bound, or if
    /// `bound` or the session's settings allow it to miss pairs. Otherwise the plan is an
    /// exhaustive search.
    ///
    /// Raises an error if an exhaustive search takes too much work. The text `otherwise` is the
    /// start of that error's hint. If `otherwise` is `None`, the work is not limited.
    pub fn new<const N: usize>(
        relations: &LockedIndex,
        index: &Index<N>,
        bound: SignatureBound,
        otherwise: Option<&str>,
        wanted: &mut impl FnMut(Tid) -> bool,
    ) -> Self {
        let bands = index.metric.bands().expect("the index is on signatures");
        let mismatches = bound.mismatches;
        let by_bands = |pairs| SignaturePlan {
            pairs,
            comparisons: 0.0,
        };
        let exact = BandPairPlan::exact(bands.clone(), mismatches);
        if exact.is_by_bands() {
            return by_bands(exact);
        }
        if bound.may_miss || settings::allow_approximate() {
            if !bound.may_miss {
                tell_approximate(relations, bands, bound);
            }
            return by_bands(BandPairPlan::by_bands(bands.clone(), mismatches));
        }
        let layout = &index.block_layout;
        let work = index.or_corrupt(exhaustive_work(&index.tree(), layout, mismatches, wanted));
        if let Some(otherwise) = otherwise.filter(|_| index.rows() > FEW_ROWS)
            && (work.comparisons > MOST_COMPARISONS || work.candidates > MOST_CANDIDATES)
        {
            refuse_signatures(relations, bands, bound, &work, otherwise);
        }
        SignaturePlan {
            pairs: exact,
            comparisons: work.comparisons,
        }
    }

    /// Begins the progress report of an exhaustive search.
    pub fn exhaustive_progress(&self) -> Progress {
        Progress::new(
            "comparing all pairs of rows",
            "comparisons",
            self.comparisons,
        )
    }
}

/// Returns a sentence for messages, with the lowest similarity at which an index finds all pairs,
/// and with the wanted similarity.
fn describe_bounds(bands: &Bands, bound: SignatureBound) -> String {
    let guaranteed = similarity(bands.guaranteed(), bands.hashes());
    format!(
        "The index was built for similarities of at least {}, but the search asks for {}",
        (guaranteed * 1000.0).ceil() / 1000.0,
        bound.similarity
    )
}

/// Returns the recall of a search by bands in percent, rounded down to one decimal. The recall is
/// the expected share of found pairs among the pairs with exactly the wanted similarity.
fn recall(bands: &Bands, bound: SignatureBound) -> f64 {
    (bands.recall(bound.similarity) * 1000.0).floor() / 10.0
}

/// Sends a notice that a search by bands may miss pairs, which the session's settings allow.
fn tell_approximate(relations: &LockedIndex, bands: &Bands, bound: SignatureBound) {
    UserNotice {
        message: format!(
            "search of index \"{}\" is approximate and can miss pairs",
            relations.index().shown()
        ),
        detail: format!(
            "{}. The search finds about {} % of the pairs with exactly this similarity, and a \
             larger share of the pairs with a higher similarity.",
            describe_bounds(bands, bound),
            recall(bands, bound)
        ),
        hint: "The setting neardup.allow_approximate is on. For an exact search, set it to off."
            .to_owned(),
    }
    .report();
}

/// Raises error 54000: an exhaustive search of signatures takes too much work. `work` has the
/// numbers of rows, comparisons and candidates of the search. `otherwise` is the start of the hint.
fn refuse_signatures(
    relations: &LockedIndex,
    bands: &Bands,
    bound: SignatureBound,
    work: &ExhaustiveWork,
    otherwise: &str,
) -> ! {
    let (hashes, limit) = (bands.hashes(), bound.similarity);
    let of = if hashes == 128 {
        String::new()
    } else {
        format!(", hashes = {hashes}")
    };
    let seconds = work.comparisons / COMPARISONS_PER_SECOND + work.candidates / LOOK_UPS_PER_SECOND;
    let found = recall(bands, bound);
    let mut hint = String::new();
    if found >= WORTH_OFFERING {
        hint += &format!(
            "Or SET neardup.allow_approximate = on, to find about {found} % of the pairs with \
             exactly this similarity in this index. "
        );
    }
    hint += &make_index(relations, &format!("similarity = {limit}{of}"));
    too_much(
        relations,
        describe_bounds(bands, bound),
        format!(
            "The search compares all pairs of {} rows. It needs {:.0} comparisons, and looks up \
             about {:.0} pairs in the table. At {:.0} million comparisons and {:.0} million \
             lookups per second, the search takes about {seconds:.0} seconds.",
            work.rows,
            work.comparisons,
            work.candidates,
            COMPARISONS_PER_SECOND / 1e6,
            LOOK_UPS_PER_SECOND / 1e6
        ),
        hint,
        otherwise,
    )
}

/// Raises error 54000 if a search of a fingerprint index exceeds the radius that the index was
/// built for and takes too much work. `plan` has the radius of the search and its estimated time. A
/// search of a small index is always allowed.
pub fn check_fingerprints<const N: usize>(
    relations: &LockedIndex,
    index: &Index<N>,
    plan: &PairPlan<N>,
) {
    let (bits, made_for) = (index.block_layout.bits(), index.block_layout.radius());
    let rows = index.rows();
    if plan.radius <= made_for || rows <= FEW_ROWS {
        return;
    }
    let pairs = rows * rows / 2.0 * share_within(bits, plan.radius);
    if plan.cost <= LONGEST && pairs <= MOST_PAIRS {
        return;
    }
    // The hint suggests another index only if it helps. No index helps against pairs that are near
    // by chance.
    let hint = if plan.radius <= max_radius(bits) && pairs <= MOST_PAIRS {
        let radius = plan.radius;
        make_index(
            relations,
            &format!("radius = {radius}, blocks = {}", radius + 1),
        )
    } else {
        "Or use a smaller radius.".to_owned()
    };
    too_much(
        relations,
        format!(
            "The index was built for radius {made_for}, but the search asks for radius {}",
            plan.radius
        ),
        format!(
            "The search of {rows:.0} rows needs about {:.0} comparisons. It finds about \
             {pairs:.0} pairs of unrelated rows, which are within this radius by chance. At {:.0} \
             million comparisons per second, the search takes about {:.1} seconds, including the \
             time to read the index.",
            plan.comparisons,
            PairPlan::<N>::comparisons_per_second() / 1e6,
            plan.cost / 1e9
        ),
        hint,
        BY_PARAMETER,
    )
}

/// Returns the share of random fingerprints of `bits` bits that are within a radius of a given
/// fingerprint.
fn share_within(bits: u32, radius: u32) -> f64 {
    let n = f64::from(bits);
    let mut term = (-n).exp2();
    let mut sum = term;
    for k in 1..=radius.min(bits) {
        let k = f64::from(k);
        term *= (n - k + 1.0) / k;
        sum += term;
    }
    sum
}

/// Returns the last sentence of a hint, with the statement that creates an index with these options
/// on the columns of the searched index.
fn make_index(relations: &LockedIndex, options: &str) -> String {
    let table = relations.table().qualified_name();
    let columns = server::pg_get_indexdef_columns(relations.index().oid(), false);
    let predicate = if relations.index().is_partial() {
        " WHERE ..."
    } else {
        ""
    };
    format!(
        "Or create an index for this search: CREATE INDEX ON {} USING neardup ({}) WITH \
         ({options}){predicate};",
        String::from_utf8_lossy(&table),
        columns.unwrap_or_default().to_string_lossy()
    )
}

/// Raises error 54000: a search has a wider bound than the index was built for, and takes too much
/// work. The detail of the error is `limit`, which states the two bounds, then `work`, which states
/// the work. The hint is `otherwise`, then `hint`.
fn too_much(
    relations: &LockedIndex,
    limit: String,
    work: String,
    hint: String,
    otherwise: &str,
) -> ! {
    UserError::new(
        PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
        format!(
            "search of index \"{}\" would take too long",
            relations.index().shown()
        ),
    )
    .detail(format!("{limit}. {work}"))
    .hint(format!("{otherwise} {hint}"))
    .raise()
}
