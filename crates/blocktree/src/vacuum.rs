//! VACUUM of an index: removes the entries of dead rows from all leaves, and merges leaves that
//! have few entries left. A row whose key is not NULL has entries in the permutations, which are
//! ordered copies of all keys. A row whose key is NULL has one entry, in the permutation for NULL,
//! which has the highest number.

use crate::build::Fill;
use crate::key::Tid;
use crate::leaf::LeafMut;
use crate::level_cursor::LevelCursor;
use crate::merge::{NeighbourMerger, VisitedPage};
use crate::page::Result;
use crate::store::WritePages;
use crate::tree::Tree;

/// A vacuum that removes at least 1/32 of a leaf's entries rewrites the leaf in key order. Then
/// later searches for one prefix read less of the leaf, but the log record of the rewrite contains
/// most of the leaf's bytes. A vacuum that removes fewer entries moves the leaf's last entries into
/// the gaps, which changes fewer bytes.
const REWRITE_SHARE_INVERSE: usize = 32;

/// A vacuum also rewrites a leaf in key order if at least 1/4 of its entries are unsorted, even if
/// it removes no entry. The log record of the rewrite has about as many bytes as the log records of
/// the insertions that added the unsorted entries.
const UNSORTED_SHARE_INVERSE: usize = 4;

/// Numbers of entries, rows and pages that a vacuum of one index has removed or left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VacuumStats {
    /// Number of removed entries in all permutations (ordered copies of all keys).
    pub removed: u64,
    /// Number of removed rows: removed entries of the first permutation and of the permutation for
    /// NULL, which together have one entry for each row.
    pub removed_rows: u64,
    /// Number of remaining rows: remaining entries of the first permutation and of the permutation
    /// for NULL.
    pub rows: u64,
    /// Number of pages that the vacuum removed from the tree. Splits can reuse them.
    pub freed_pages: u64,
}

impl<S: WritePages, const N: usize> Tree<'_, S, N> {
    /// Removes the entries of all dead rows from the permutations 0 to `null_permutation`, which is
    /// the permutation for NULL. Calls `is_dead` once for each entry, with the address of its row.
    /// `is_dead` returns true if VACUUM removes the row.
    ///
    /// Visits the leaves of a permutation from left to right, by their links to right siblings.
    /// Other processes move entries only to the right, so the vacuum misses none. It takes a
    /// cleanup lock on each leaf, which waits until no index-only scan has the leaf pinned. Such a
    /// scan may return the rows of the leaf without reading the table, so VACUUM must not remove
    /// these rows from the table while the leaf is pinned. The vacuum takes the lock also if the
    /// leaf has no entry of a dead row now. A scan may have read such an entry there before a split
    /// moved the entry to another leaf.
    ///
    /// Merges neighbouring leaves, and neighbouring inner pages, whose entries fit into one page at
    /// the fill factor `fill`. So a vacuumed tree has less than twice as many leaves as a new tree,
    /// except for leaves that could not be merged. Only one vacuum may run at a time.
    pub fn vacuum(
        &self,
        null_permutation: u16,
        fill: Fill,
        mut is_dead: impl FnMut(Tid) -> bool,
    ) -> Result<VacuumStats> {
        let mut stats = VacuumStats::default();
        // For each entry of a leaf, whether its row is dead.
        let mut dead = Vec::new();
        for permutation in 0..=null_permutation {
            let mut cursor = LevelCursor::<N>::new(permutation);
            let mut candidate = NeighbourMerger::new(0, fill);
            loop {
                self.store.vacuum_delay();
                let alone = |block| self.store.cleanup_lock(block);
                let Some((mut leaf, _)) = cursor.step(self, alone)? else {
                    break;
                };
                let count = leaf.count();
                dead.clear();
                dead.extend((0..count).map(|i| is_dead(leaf.tid(i))));
                let removed = dead.iter().filter(|&&dead| dead).count();
                let is_unsorted = (count - leaf.sorted()) * UNSORTED_SHARE_INVERSE >= count.max(1);
                if removed > 0 || is_unsorted {
                    let in_order = is_unsorted
                        || removed * REWRITE_SHARE_INVERSE >= count
                        || self.store.logs_whole(&leaf.page);
                    self.store.change([&mut leaf.page], |[leaf]| {
                        let mut leaf = LeafMut::<N>::unchecked(leaf);
                        match in_order {
                            true => leaf.retain_in_order(|number| !dead[number]),
                            false => leaf.retain(|number| !dead[number]),
                        }
                    });
                }
                stats.removed += removed as u64;
                if permutation == 0 || permutation == null_permutation {
                    stats.removed_rows += removed as u64;
                    stats.rows += (count - removed) as u64;
                }
                let passed = VisitedPage {
                    block: leaf.block(),
                    count: count - removed,
                    shape: Some(leaf.shape()),
                };
                drop(leaf);
                let merged = candidate.pass(self, passed)?;
                stats.freed_pages += u64::from(merged);
            }
        }
        stats.freed_pages += self.merge_inner_pages(fill)?;
        Ok(stats)
    }

    /// Calls `each` once for each row in the index, with the row's address. Reads only the first
    /// permutation and `null_permutation`, the permutation for NULL, which together have one entry
    /// for each row. Rows that other processes add meanwhile may be missing.
    pub fn each_row(&self, null_permutation: u16, mut each: impl FnMut(Tid)) -> Result<()> {
        for permutation in [0, null_permutation] {
            let mut cursor = LevelCursor::<N>::new(permutation);
            loop {
                self.store.vacuum_delay();
                let Some((leaf, from)) = cursor.step(self, |block| self.store.read(block))? else {
                    break;
                };
                let tids: Vec<Tid> = leaf.entries_from(from).map(|entry| entry.tid).collect();
                // `each` may take long, and may raise an error.
                drop(leaf);
                tids.into_iter().for_each(&mut each);
            }
        }
        Ok(())
    }
}
