//! Changes that a REINDEX makes: radius or similarity, and layout.
use core::fmt::{self, Display, Formatter};

use neardup_blocktree::block_layout::BlockLayout;
use neardup_blocktree::index_metric::IndexMetric;
use neardup_blocktree::metric::UsualBound;

use super::index::Index;
use super::options::BuildOptions;
use super::usual_bound::usual_bound;
use neardup_pg::rel::Rel;

/// Bound and layout of an index, for users.
#[derive(PartialEq)]
pub struct Description {
    bound: Option<UsualBound>,
    guaranteed_radius: u32,
    blocks: usize,
    permutations: usize,
    /// Hashes of a signature, and the rows of its bands.
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
            signature: metric.bands().map(|bands| (bands.hashes(), bands.rows())),
        }
    }

    /// Describes an index as it is.
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

/// Bound and layout that a REINDEX with these options chooses for a number of rows; `None` if it
/// keeps both. Raises an error if the options allow no layout.
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
