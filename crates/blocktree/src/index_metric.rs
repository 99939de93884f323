//! Operations of an index that depend on its metric: fingerprints, signatures or sets (SQL arrays).
//! The metric decides the permutations (ordered copies of all keys) and their layout, the keys of a
//! row, and how rows are inserted and trees are built.

use std::rc::Rc;

use crate::bands::Bands;
use crate::block_layout::BlockLayout;
use crate::build::{BuildHost, Fill, build, build_bands, build_sets};
use crate::key::{EntryKey, Key, Tid};
use crate::metric::{Metric, UsualBound};
use crate::page::Result;
use crate::sets;
use crate::sort::ExternalSort;
use crate::store::{PrefetchPages, WritePages};
use crate::tree::Tree;

/// Metric of an open index. For signatures it includes the bands.
pub type IndexMetric = Metric<Rc<Bands>>;

impl IndexMetric {
    /// Returns the bands of an index on signatures. `None` for other metrics.
    pub fn bands(&self) -> Option<&Rc<Bands>> {
        match self {
            Metric::Jaccard(bands) => Some(bands),
            Metric::Hamming { .. } | Metric::Overlap => None,
        }
    }

    /// Returns the metric as the meta page stores it. For signatures, it has the number of hashes
    /// instead of the bands.
    pub fn with_hashes(&self) -> Metric<usize> {
        match self {
            Metric::Hamming { bits } => Metric::Hamming { bits: *bits },
            Metric::Jaccard(bands) => Metric::Jaccard(bands.hashes()),
            Metric::Overlap => Metric::Overlap,
        }
    }

    /// Returns whether searches find all rows within `radius` (in bits or mismatches) without
    /// reading the whole index. Must not be called for [`Metric::Overlap`], which has no radius.
    pub fn finds_all_within(&self, radius: u32) -> bool {
        (self.bands()).is_none_or(|bands| radius as usize <= bands.guaranteed())
    }

    /// Returns whether searches can return rows in the order of their distance. Must not be called
    /// for [`Metric::Overlap`], which has no distance.
    pub fn can_order(&self) -> bool {
        self.bands().is_none()
    }

    /// Makes the block layout of an index with this metric. `scope` is true if keys start with a
    /// scope's hash. `from_parameters` makes the layout if the index is on fingerprints.
    pub fn block_layout<E, const N: usize>(
        &self,
        scope: bool,
        from_parameters: impl FnOnce() -> core::result::Result<BlockLayout<N>, E>,
    ) -> core::result::Result<BlockLayout<N>, E> {
        match self {
            Metric::Hamming { .. } => from_parameters(),
            Metric::Jaccard(bands) => Ok(bands.layout(scope)),
            Metric::Overlap => Ok(BlockLayout::with_sets(scope)),
        }
    }

    /// Returns the number of external sorts that a build needs. The first key of a row goes to the
    /// first sort, the second key to the second sort, and so on. The last sort also takes all
    /// further keys of the row.
    pub fn sorts(&self) -> usize {
        match self {
            Metric::Hamming { .. } => 1,
            Metric::Jaccard(bands) => bands.count(),
            Metric::Overlap => sets::PERMUTATIONS,
        }
    }

    /// Returns the number of bytes of memory for the sort with number `sort`. All sorts together
    /// may use `memory` bytes.
    pub fn sort_memory(&self, sort: usize, memory: usize) -> usize {
        match self {
            Metric::Hamming { .. } | Metric::Jaccard(_) => memory / self.sorts(),
            // Most memory is for the other sort, because each row has several elements.
            Metric::Overlap if sort == usize::from(sets::ROW_PERMUTATION) => memory / 8,
            Metric::Overlap => memory - memory / 8,
        }
    }

    /// Returns the key of a row's entry in a permutation. `keys` depends on the metric: it has the
    /// row's unpermuted fingerprint, the key of each band, or the sum and the elements of the row's
    /// set.
    #[inline]
    pub fn entry_key<const N: usize>(
        &self,
        layout: &BlockLayout<N>,
        keys: &[Key<N>],
        permutation: u16,
    ) -> Key<N> {
        match self {
            Metric::Hamming { .. } => {
                layout.permutations()[usize::from(permutation)].permute(&keys[0])
            }
            Metric::Jaccard(_) | Metric::Overlap => keys[usize::from(permutation)],
        }
    }

    /// Adds the entries of a row to a tree. `keys` depends on the metric: it has the row's
    /// unpermuted fingerprint, the key of each band, or the sum and the elements of the row's set.
    pub fn insert<S: WritePages + PrefetchPages, const N: usize>(
        &self,
        tree: &Tree<S, N>,
        layout: &BlockLayout<N>,
        keys: &[Key<N>],
        tid: Tid,
    ) -> Result<()> {
        if let (Metric::Overlap, [sum, elements @ ..]) = (self, keys) {
            tree.insert(&EntryKey::new(sets::ROW_PERMUTATION, *sum, tid))?;
            let entry_key = |&key: &Key<N>| EntryKey::new(sets::ELEMENT_PERMUTATION, key, tid);
            return tree.insert_all(elements.iter().map(entry_key));
        }
        let entries = (0..layout.null_permutation()).map(|permutation| EntryKey {
            permutation,
            key: self.entry_key(layout, keys, permutation),
            tid,
        });
        tree.insert_row(entries)
    }

    /// Writes the tree of a new index. `rows` has the keys of the rows, in as many external sorts
    /// as [`IndexMetric::sorts`] returns. `nulls` has the rows without a value. The meta page
    /// stores `bound`, the bound of searches that do not state one. It must be a radius for
    /// fingerprints, a similarity for signatures, and `None` for sets.
    pub fn write_tree<H: BuildHost, const N: usize>(
        &self,
        host: &mut H,
        layout: &BlockLayout<N>,
        bound: Option<UsualBound>,
        rows: &mut [ExternalSort<H, N>],
        nulls: &mut ExternalSort<H, N>,
        fill: Fill,
    ) {
        match (self, bound) {
            (Metric::Hamming { .. }, Some(UsualBound::Radius(radius))) => {
                build(host, layout, radius, &mut rows[0], nulls, fill)
            }
            (Metric::Jaccard(bands), Some(UsualBound::Similarity(similarity))) => {
                build_bands(host, bands, similarity, rows, nulls, fill)
            }
            (Metric::Overlap, None) => build_sets(host, rows, nulls, fill),
            (metric, bound) => unreachable!("a bound {bound:?} of metric {metric:?}"),
        };
    }
}
