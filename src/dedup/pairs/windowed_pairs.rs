//! Pairs of rows whose times are near each other, for the parameter `row_time` of `neardup_pairs`.
use neardup_blocktree::key::Tid;

use super::PairSearch;
use crate::dedup::row_times::RowTimes;
use neardup_pg::storage::temp::TempSpace;

/// Search for pairs that skips pairs of rows whose times are not near each other.
pub struct WindowedPairs {
    pub search: Box<dyn PairSearch>,
    pub times: RowTimes,
}

impl PairSearch for WindowedPairs {
    fn next_pair(&mut self) -> Option<([Tid; 2], u32)> {
        loop {
            pgrx::check_for_interrupts!();
            let (rows, differing) = self.search.next_pair()?;
            if self.times.are_near(&mut TempSpace, rows) {
                return Some((rows, differing));
            }
        }
    }

    fn for_each_pair(&mut self, give: &mut dyn FnMut([Tid; 2], u32)) {
        let times = &mut self.times;
        self.search.for_each_pair(&mut |rows, differing| {
            if times.are_near(&mut TempSpace, rows) {
                give(rows, differing);
            }
        });
    }
}
