//! Changes that a REINDEX would make to an index: its radius or similarity, and its layout. The
//! layout determines the permutations (ordered copies of all keys). For fingerprints it divides the
//! bits into blocks, and for signatures the hashes into groups, the bands.
use core::fmt::{self, Display, Formatter};

use neardup_blocktree::block_layout::BlockLayout;
use neardup_blocktree::index_metric::IndexMetric;
use neardup_blocktree::metric::UsualBound;

use super::index::Index;
use super::options::BuildOptions;
use super::usual_bound::usual_bound;
use neardup_pg::rel::Rel;

/// Description of an index for users: its radius or similarity, and its layout.
#[derive(PartialEq)]
pub struct Description {
    /// Radius or similarity for which the index is built, because most searches use it; `None` for
    /// arrays.
    bound: Option<UsualBound>,
    /// Maximum radius, in bits, of searches that read at most one range of each permutation.
    guaranteed_radius: u32,
    /// Number of blocks into which the bits of a fingerprint are divided.
    blocks: usize,
    /// Number of permutations. For signatures this is the number of bands.
    permutations: usize,
    /// Number of hashes in a signature, and number of hashes in a band. `None` for fingerprints and
    /// arrays.
    signature: Option<(usize, usize)>,
}

impl Description {
    fn new<const N: usize>(
        bound: Option<UsualBound>,
        metric: &IndexMetric,
        layout: &BlockLayout<N>,
    ) -> Self {
        Description {
            bound,
            guaranteed_radius: layout.radius(),
            blocks: layout.blocks().len(),
            permutations: layout.permutations().len(),
            signature: metric
                .bands()
                .map(|bands| (bands.hashes(), bands.band_width())),
        }
    }

    /// Describes an index as it is now.
    pub fn from_index<const N: usize>(index: &Index<N>) -> Self {
        Self::new(index.meta.bound, &index.metric, &index.block_layout)
    }
}

impl Display for Description {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let permutations = self.permutations;
        match self.bound {
            Some(UsualBound::Radius(radius)) => write!(
                f,
                "radius {radius}, guaranteed radius {}, {}, {}",
                self.guaranteed_radius,
                counted(self.blocks, "block"),
                counted(permutations, "permutation")
            ),
            Some(UsualBound::Similarity(similarity)) => {
                let (hashes, _) = self.signature.unwrap_or_default();
                let bands = counted(permutations, "band");
                write!(f, "similarity {similarity}, {hashes} hashes, {bands}")
            }
            None => write!(f, "{}", counted(permutations, "permutation")),
        }
    }
}

fn counted(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

/// Describes the index that a REINDEX of `index` with `options` would make if `table` has `rows`
/// rows. `None` if the REINDEX would not change the description. Raises an error if no layout fits
/// the options.
pub fn next_layout<const N: usize>(
    table: Rel,
    index: &Index<N>,
    options: &BuildOptions,
    rows: f64,
) -> Option<Description> {
    let metric = options.metric(&index.layout);
    let bound = usual_bound(table, index.relation(), &index.layout, options);
    let layout = options.block_layout::<N>(&index.layout, &metric, bound, rows);
    let next = Description::new(bound, &metric, &layout);
    (next != Description::from_index(index)).then_some(next)
}
