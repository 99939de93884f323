//! Removal of dead rows' entries from all leaves, and merging of leaves that are left nearly empty.

use crate::build::Fill;
use crate::key::Tid;
use crate::leaf::LeafMut;
use crate::level_cursor::LevelCursor;
use crate::merge::{MergeCandidate, Passed};
use crate::page::Result;
use crate::store::WritePages;
use crate::tree::Tree;

/// Share of a leaf's entries, as its inverse, with which so many go that the others are written in
/// order even if the log then takes most of the page: a search for one prefix reads less of it.
/// Automatic vacuums come, by default, when a sixth of the rows are dead.
const FEW_REMOVED: usize = 8;

/// Outcome of a vacuum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VacuumStats {
    /// Removed entries, in all permutations.
    pub removed: u64,
    /// Removed rows: entries of the first permutation and of the NULLs.
    pub removed_rows: u64,
    /// Remaining rows: entries of the first permutation and of the NULLs.
    pub rows: u64,
    /// Pages removed from the tree, which splits can reuse.
    pub freed_pages: u64,
}

impl<S: WritePages, const N: usize> Tree<'_, S, N> {
    /// Removes the entries of all dead rows, in all permutations up to `null_permutation`.
    ///
    /// Follows the right links of the leaves. Other processes move entries only to the right, so it
    /// misses none. Takes a cleanup lock on each leaf, even if it removes nothing: an index-only
    /// scan that pins a leaf relies on its rows not being removed, including rows that a split has
    /// moved since. Calls `is_dead` once for each entry.
    ///
    /// Merges neighbours that together are at most as full as pages of a new tree with this `fill`.
    /// So a vacuumed tree has less than twice as many leaves as a new one, except for leaves that
    /// could not be merged. Only one vacuum may run at a time.
    pub fn vacuum(
        &self,
        null_permutation: u16,
        fill: Fill,
        mut is_dead: impl FnMut(Tid) -> bool,
    ) -> Result<VacuumStats> {
        let mut stats = VacuumStats::default();
        // One for each entry of a leaf.
        let mut dead = Vec::new();
        for permutation in 0..=null_permutation {
            let mut cursor = LevelCursor::<N>::new(permutation);
            let mut candidate = MergeCandidate::new(0, fill);
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
                if removed > 0 {
                    let in_order =
                        removed * FEW_REMOVED >= count || self.store.logs_whole(&leaf.page);
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
                let passed = Passed {
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

    /// Calls a function once for each row: entries of the first permutation and of the NULLs.
    /// Rows that others add meanwhile may be among them or not.
    pub fn each_row(&self, null_permutation: u16, mut each: impl FnMut(Tid)) -> Result<()> {
        for permutation in [0, null_permutation] {
            let mut cursor = LevelCursor::<N>::new(permutation);
            loop {
                self.store.vacuum_delay();
                let Some((leaf, from)) = cursor.step(self, |block| self.store.read(block))? else {
                    break;
                };
                let tids: Vec<Tid> = leaf.entries_from(from).map(|entry| entry.tid).collect();
                // The function may take its time, and raise an error.
                drop(leaf);
                tids.into_iter().for_each(&mut each);
            }
        }
        Ok(())
    }
}
