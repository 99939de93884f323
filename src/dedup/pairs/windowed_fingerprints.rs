//! Pairs of rows with near fingerprints and near times, in an index without scope columns. Rows
//! with equal fingerprints form a group, and one of them is the representative of the group. The
//! time of a row is stored as a span. Two times are near each other if their spans overlap.
//!
//! In a group, rows are in the order of the low ends of their spans. The search for near
//! fingerprints compares only the representatives. Then a sweep over the spans finds the pairs of
//! rows within a group, and of rows in two near groups. So many copies of one text need no
//! comparison of all their pairs.
use core::ops::Range;

use neardup_blocktree::key::Tid;
use neardup_blocktree::paged::Paged;
use neardup_blocktree::pairs::{KeyOrderScan, PairPlan};
use neardup_blocktree::sort::ExternalSort;

use super::fingerprint_pairs::FingerprintPairs;
use super::{PairArguments, PairSearch};
use crate::am::index::{Index, words_of};
use crate::am::keys::with_words;
use crate::dedup::limits::share;
use crate::dedup::row_filter::Wanted;
use crate::dedup::row_times::{RowNumbers, RowTimes, Spans};
use crate::dedup::tid_set::TidList;
use crate::dedup::time_sweep::Sweep;
use crate::dedup::window::WindowOfTable;
use crate::dedup::work_limit::check_fingerprints;
use neardup_pg::locked_index::LockedIndex;
use neardup_pg::storage::heap_fetch::HeapFetch;
use neardup_pg::storage::temp::TempSpace;
use neardup_pg::time_span::Span;

/// Groups of rows with equal fingerprints. Rows without a time are in no group.
struct Groups {
    /// Spans of the rows' times, group by group. Within a group, the spans are in the order of
    /// their low ends. The position of a row's span is the number of the row.
    spans: Spans,
    /// Addresses of the rows, in the order of `spans`. An address takes two elements: the number of
    /// the block, and the offset in the block.
    addresses: Paged<TempSpace>,
    /// Number of the first row of each group, indexed by group. One more element at the end has the
    /// number of all rows.
    first: Paged<TempSpace>,
    /// Number of groups.
    count: u32,
    /// Addresses of the representatives.
    representatives: RowNumbers,
    /// Group of each representative, indexed by its number in `representatives`.
    group_of: Paged<TempSpace>,
}

impl Groups {
    fn new(files: &mut TempSpace) -> Self {
        Groups {
            spans: Spans::new(files, share()),
            addresses: Paged::new(files, 0, share() / 4, |_| 0),
            first: Paged::new(files, 1, share() / 8, |_| 0),
            count: 0,
            representatives: RowNumbers::new(files, share() / 4),
            group_of: Paged::new(files, 0, share() / 8, |_| 0),
        }
    }

    /// Returns the numbers of the rows of a group.
    fn rows(&mut self, files: &mut TempSpace, group: u32) -> Range<u32> {
        self.first.get(files, group)..self.first.get(files, group + 1)
    }

    /// Returns the addresses of two rows, which are given by their numbers. The lower address is
    /// first.
    fn pair(&mut self, files: &mut TempSpace, rows: [u32; 2]) -> [Tid; 2] {
        let [a, b] = rows.map(|row| {
            let [block, offset] = [2 * row, 2 * row + 1].map(|at| self.addresses.get(files, at));
            Tid::new(block, offset as u16)
        });
        [a.min(b), a.max(b)]
    }

    /// Begins the sweep that finds the pairs of rows in two groups. Each group is given by the
    /// address of its representative. `None` if one of the addresses is not of a representative.
    fn sweep(&mut self, files: &mut TempSpace, representatives: [Tid; 2]) -> Option<Sweep> {
        let [a, b] = representatives.map(|row| {
            let number = self.representatives.find(files, row)?;
            let group = self.group_of.get(files, number);
            Some(self.rows(files, group))
        });
        Some(Sweep::new([a?, b?]))
    }

    /// Passes the remaining pairs of a sweep to `give`, each with `distance`, a number of bits.
    fn give_all(
        &mut self,
        files: &mut TempSpace,
        sweep: &mut Sweep,
        distance: u32,
        give: &mut dyn FnMut([Tid; 2], u32),
    ) {
        while let Some(rows) = sweep.next(files, &mut self.spans) {
            give(self.pair(files, rows), distance);
        }
    }

    /// Reads the groups of an index. Also returns the index entries of the representatives, for the
    /// search for near fingerprints.
    fn read<const N: usize>(
        files: &mut TempSpace,
        index: &Index<N>,
        relations: &LockedIndex,
        mut times: RowTimes,
    ) -> (Self, Wanted) {
        let mut by_group = rows_by_group(files, index, relations, &mut times);
        let mut groups = Groups::new(files);
        let mut entries = TidList::new();
        let mut representatives = ExternalSort::<TempSpace, 1>::new(share() / 2);
        let mut last = None;
        by_group.in_order(files, None, |files, row| {
            let [group, span @ .., address] = row.key;
            let address = Tid::from_packed(address);
            if last.replace(group) != Some(group) {
                entries.push(files, Tid::from_packed(row.tid));
                let number = Tid::from_packed(groups.count.into());
                representatives.push(files, [address.packed()], number);
                groups.count += 1;
                groups.first.grow(files, groups.count as usize + 1);
            }
            let number = groups.spans.count();
            groups.spans.push(files, Span::from_words(span));
            groups.addresses.grow(files, 2 * number as usize + 2);
            groups.addresses.set(files, 2 * number, address.block);
            groups
                .addresses
                .set(files, 2 * number + 1, address.offset.into());
            groups.first.set(files, groups.count, number + 1);
        });
        let mut number = 0;
        representatives.in_order(files, None, |files, row| {
            groups
                .representatives
                .push(files, Tid::from_packed(row.key[0]));
            groups.group_of.grow(files, number as usize + 1);
            groups.group_of.set(files, number, row.tid as u32);
            number += 1;
        });
        (groups, Wanted::from_list(&mut entries, files))
    }
}

/// Returns a list with one entry for each visible row of an index that has a time. The key of an
/// entry has the number of the row's group, the four words of its span, and the address at which
/// the snapshot sees the row. The value is the row address in the index entry.
fn rows_by_group<const N: usize>(
    files: &mut TempSpace,
    index: &Index<N>,
    relations: &LockedIndex,
    times: &mut RowTimes,
) -> ExternalSort<TempSpace, 6> {
    // Addresses in index entries, with the numbers of their groups. They are sorted, so that rows
    // are read in the order of the table.
    let mut entries = ExternalSort::<TempSpace, 1>::new(share());
    let mut scan = KeyOrderScan::new(index.block_layout.clone());
    let (tree, mut group, mut last) = (index.tree(), 0u64, None);
    let mut add = |files: &mut TempSpace, key, entry: Tid| {
        group += u64::from(last.replace(key).is_some_and(|last| last != key));
        entries.push(files, [entry.packed()], Tid::from_packed(group));
    };
    while index.or_corrupt(scan.step(&tree, &mut |key, entry| add(files, key, entry))) {
        pgrx::check_for_interrupts!();
    }
    let mut rows = HeapFetch::new(relations.table());
    let mut by_group = ExternalSort::new(share());
    entries.in_order(files, None, |files, entry| {
        pgrx::check_for_interrupts!();
        let [address] = entry.key.map(Tid::from_packed);
        let Some(row) = rows.find(address) else {
            return;
        };
        if let Some(span) = times.get(files, row) {
            let [a, b, c, d] = span.to_words();
            by_group.push(files, [entry.tid, a, b, c, d, row.packed()], address);
        }
    });
    by_group
}

/// Search for the pairs of rows with near fingerprints and near times.
pub struct WindowedFingerprints {
    /// Search for pairs of near representatives.
    search: FingerprintPairs,
    groups: Groups,
    /// Number of the next group whose own pairs have not been returned.
    next_group: u32,
    /// Sweep whose pairs are being returned, and the distance of these pairs in bits.
    sweep: Option<(Sweep, u32)>,
}

impl WindowedFingerprints {
    /// Creates the search for the arguments of `neardup_pairs`. `radius` is in bits. Raises an
    /// error if the search would take too much work, unless `arguments.exhaustive` is true.
    pub fn new(
        relations: &LockedIndex,
        radius: u32,
        arguments: &PairArguments,
        window: &WindowOfTable,
    ) -> Self {
        let files = &mut TempSpace;
        let (groups, wanted) = with_words!(words_of(relations.index()), N => {
            let index = Index::<N>::open(relations.index());
            if !arguments.exhaustive {
                let plan = PairPlan::new(&index.block_layout, radius, index.rows());
                check_fingerprints(relations, &index, &plan);
            }
            let filter = arguments.filter.as_ref();
            let times = RowTimes::read(files, relations.table(), window, filter);
            Groups::read(files, &index, relations, times)
        });
        WindowedFingerprints {
            search: FingerprintPairs::new(relations, radius, wanted),
            groups,
            next_group: 0,
            sweep: None,
        }
    }

    /// Begins the sweep for the pairs within the next group. Returns false after the last group.
    fn begin_group(&mut self) -> bool {
        if self.next_group == self.groups.count {
            return false;
        }
        let rows = self.groups.rows(&mut TempSpace, self.next_group);
        self.next_group += 1;
        self.sweep = Some((Sweep::new([rows.clone(), rows]), 0));
        true
    }
}

impl PairSearch for WindowedFingerprints {
    fn next_pair(&mut self) -> Option<([Tid; 2], u32)> {
        let files = &mut TempSpace;
        loop {
            if let Some((sweep, distance)) = &mut self.sweep
                && let Some(rows) = sweep.next(files, &mut self.groups.spans)
            {
                return Some((self.groups.pair(files, rows), *distance));
            }
            if !self.begin_group() {
                let (representatives, distance) = self.search.next()?;
                let sweep = self.groups.sweep(files, representatives);
                self.sweep = sweep.map(|sweep| (sweep, distance));
            }
        }
    }

    fn for_each_pair(&mut self, give: &mut dyn FnMut([Tid; 2], u32)) {
        let files = &mut TempSpace;
        while self.begin_group() {
            if let Some((mut sweep, distance)) = self.sweep.take() {
                self.groups.give_all(files, &mut sweep, distance, give);
            }
        }
        let groups = &mut self.groups;
        self.search.for_each_pair(&mut |representatives, distance| {
            if let Some(mut sweep) = groups.sweep(&mut TempSpace, representatives) {
                groups.give_all(&mut TempSpace, &mut sweep, distance, give);
            }
        });
    }
}
