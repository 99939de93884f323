//! Taking entries away.

use crate::key::Tid;
use crate::leaf;
use crate::page::Result;
use crate::scan::Walk;
use crate::store::{Held, PageStore};
use crate::tree::Tree;

/// What a vacuum found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VacuumStats {
    /// Entries taken away, in all tables.
    pub removed: u64,
    /// Rows taken away: those of the first table's entries and of that of the nulls.
    pub removed_rows: u64,
    /// Rows that remain: entries of the first table and of that of the nulls.
    pub rows: u64,
    /// Leaves without an entry. They stay where they are, for the next entries of their range.
    pub empty_leaves: u64,
}

impl<S: PageStore, const N: usize> Tree<'_, S, N> {
    /// Takes away the entries of all dead rows, in all tables up to `null_table`.
    ///
    /// It walks the leaves along their right links: entries only ever move right, so that none
    /// escapes it. Each leaf is held alone, also when nothing is to be taken away: an index-only
    /// scan that stands on a leaf relies on all its rows staying what they are, including those
    /// that a split has moved on since. `is_dead` answers the same when it is asked again.
    pub fn vacuum(
        &self,
        null_table: u16,
        mut is_dead: impl FnMut(Tid) -> bool,
    ) -> Result<VacuumStats> {
        let mut stats = VacuumStats::default();
        for table in 0..=null_table {
            let mut walk = Walk::<N>::new(table);
            while let Some(block) = walk.next(self)? {
                self.store.pause();
                let mut leaf = self.store.write_alone(block);
                self.expect(&leaf, 0)?;
                let here = leaf.block();
                if !walk.pass(&leaf, here)? {
                    continue;
                }
                let count = leaf::count::<N>(&leaf);
                let removed = (0..count)
                    .filter(|&i| is_dead(leaf::tid::<N>(&leaf, i)))
                    .count();
                if removed > 0 {
                    self.store.change([&mut leaf], |[leaf]| {
                        leaf::retain::<N>(leaf, |_, tid| !is_dead(tid));
                    });
                }
                stats.removed += removed as u64;
                if table == 0 || table == null_table {
                    stats.removed_rows += removed as u64;
                    stats.rows += (count - removed) as u64;
                }
                stats.empty_leaves += u64::from(count == removed);
            }
        }
        Ok(stats)
    }
}
