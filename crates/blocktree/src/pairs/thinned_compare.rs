//! Comparison of groups in a thinned search for pairs, which skips pairs by a rule ([`Thinning`]).
//! The number of reported pairs is at most a constant times the number of entries, however many
//! entries are near each other. Entries of a left group are compared with entries of a right group.
//! An entry of the right group is open if it can still form a pair to report. A list of the open
//! entries saves comparisons with the other ones.

use super::Pair;
use super::compare::{Compare, GroupPair, JoinInputs};
use super::thinning::{Marks, Thinning};
use crate::filter;
use crate::key::difference;
use crate::store::ReadPages;

/// Maximum number of keys that an entry is compared with at once, before the next check for
/// interrupts.
const PIECE_KEYS: usize = 4096;
/// Minimum number of entries of the right group within the radius of a left entry for which the
/// search, with [`Thinning::Forest`], makes a list of the group's open entries. After the
/// comparison, all entries within the radius are in the connected component of the left entry. They
/// form no further pairs with this component, so the list is often much shorter than the group.
const MIN_FOUND_FOR_LIST: usize = 32;
/// Number of entries of the left group that the search compares with the whole right group after
/// the list of open entries was too long to be useful. For the next entry, it updates the list
/// again, because fewer entries may be open then.
const LIST_WAIT: usize = 32;
/// The list of open entries is used only if the right group has at least this many times as many
/// entries as the list. A longer list would save too few comparisons.
const MIN_GROUP_PER_LIST: usize = 8;

/// Two chunks that are compared, the rule that decides which of their pairs are skipped, and the
/// marks of their entries.
struct ThinnedJoin<'a, const N: usize> {
    thinning: Thinning,
    sides: &'a JoinInputs<'a, N>,
    marks: Marks<'a, N>,
}

impl<const N: usize> ThinnedJoin<'_, N> {
    /// Returns whether `entry`, an entry of the left chunk, can form pairs to report only with the
    /// open entries of the right group of `task`. With [`Thinning::Degree`], this is true for an
    /// entry that has more reported pairs than the limit. With [`Thinning::Forest`], it is true for
    /// an entry in the connected component for which the list of open entries was made.
    #[inline]
    fn has_enough(&self, entry: usize, task: &GroupPair) -> bool {
        match self.thinning {
            Thinning::Degree(most) => self.marks.get(entry) > most,
            Thinning::Forest => {
                task.open.entries.is_some()
                    && self.marks.root(entry) == self.marks.root(task.open.base)
            }
        }
    }

    /// Returns whether `other`, an entry of the right chunk, is open, so that it may form a pair to
    /// report with `entry`, an entry of the left chunk for which [`ThinnedJoin::has_enough`] is
    /// true. With [`Thinning::Degree`], `other` is open if it does not have more reported pairs
    /// than the limit. With [`Thinning::Forest`], it is open if it is not in the connected
    /// component of `entry`.
    #[inline]
    fn is_left(&self, other: usize, entry: usize) -> bool {
        let other = other + self.marks.shift;
        match self.thinning {
            Thinning::Degree(most) => self.marks.get(other) <= most,
            Thinning::Forest => self.marks.root(other) != self.marks.root(entry),
        }
    }
}

impl<const N: usize> Compare<N> {
    /// Removes the first entry from `task.left` and reports its pairs with entries of `task.right`.
    /// Skips comparisons that cannot produce a pair to report.
    pub(super) fn compare_thinned<S: ReadPages>(
        &mut self,
        thinning: Thinning,
        task: &mut GroupPair,
        sides: &JoinInputs<'_, N>,
        store: &S,
        emit: &mut impl FnMut(Pair<N>),
    ) {
        let entry = task.left.start;
        task.left.start += 1;
        let marks = Marks {
            left: sides.left,
            right: sides.right,
            shift: if sides.within { 0 } else { sides.left.len() },
        };
        let join = ThinnedJoin {
            thinning,
            sides,
            marks,
        };
        let has_enough = join.has_enough(entry, task);
        if has_enough && task.open.wait > 0 {
            task.open.wait -= 1;
        } else if has_enough && self.compare_with_list(&join, entry, task, emit) {
            self.check_interrupts(store);
            return;
        }
        let found = self.compare_with_group(&join, entry, task, store, emit);
        if thinning == Thinning::Forest && !has_enough && found >= MIN_FOUND_FOR_LIST {
            // Many entries of the group are in this entry's component now. The others are open.
            let others = task.right.clone();
            let open = others.filter(|&other| join.is_left(other, entry));
            task.open.entries = Some(open.map(|other| other as u32).collect());
            task.open.base = entry;
        }
    }

    /// Compares `entry` with the open entries of the right group of `task`, and passes the pairs to
    /// `emit`. `entry` is an entry of the left chunk for which [`ThinnedJoin::has_enough`] is true.
    /// Returns false, without a comparison, if the list of open entries is too long to be useful
    /// ([`MIN_GROUP_PER_LIST`]).
    fn compare_with_list(
        &mut self,
        join: &ThinnedJoin<'_, N>,
        entry: usize,
        task: &mut GroupPair,
        emit: &mut impl FnMut(Pair<N>),
    ) -> bool {
        let mut open = task.open.entries.take().unwrap_or_else(|| {
            self.count_other(task.right.len());
            task.right.clone().map(|other| other as u32).collect()
        });
        self.count_other(open.len());
        open.retain(|&other| join.is_left(other as usize, entry));
        let is_short = open.len() <= task.right.len() / MIN_GROUP_PER_LIST;
        if is_short {
            let start = first_other(entry, task);
            for &other in open.iter().filter(|&&other| other as usize >= start) {
                self.report_pair(join, entry, other as usize, emit);
            }
        } else {
            task.open.wait = LIST_WAIT;
        }
        task.open.entries = Some(open);
        is_short
    }

    /// Compares an entry of the left chunk with all entries of the right group of `task`, and
    /// passes the pairs to `emit`. Returns the number of entries within the radius, including
    /// entries whose pairs are skipped.
    fn compare_with_group<S: ReadPages>(
        &mut self,
        join: &ThinnedJoin<'_, N>,
        entry: usize,
        task: &GroupPair,
        store: &S,
        emit: &mut impl FnMut(Pair<N>),
    ) -> usize {
        let mut found = std::mem::take(&mut self.found);
        let (key, mut found_count) = (&join.sides.left.keys()[entry], 0);
        let mut start = first_other(entry, task);
        while start < task.right.end {
            let end = task.right.end.min(start + PIECE_KEYS);
            self.count(end - start);
            found.clear();
            let keys = &join.sides.right.keys()[start..end];
            filter::within_keys(keys, key, self.skipped, self.radius, &mut found);
            found_count += found.len();
            for &i in &found {
                self.report_pair(join, entry, start + usize::from(i), emit);
            }
            start = end;
            self.check_interrupts(store);
        }
        self.found = found;
        found_count
    }

    /// Reports the pair of `entry` of the left chunk and `other` of the right chunk, and updates
    /// their marks. Does nothing if the distance exceeds the radius, another pass reports the pair,
    /// or the thinning skips it.
    #[inline]
    fn report_pair(
        &mut self,
        join: &ThinnedJoin<'_, N>,
        entry: usize,
        other: usize,
        emit: &mut impl FnMut(Pair<N>),
    ) {
        let (sides, marks) = (join.sides, &join.marks);
        let (a, b) = (entry, other + marks.shift);
        let roots = match join.thinning {
            Thinning::Degree(most) if marks.get(a) > most && marks.get(b) > most => return,
            Thinning::Degree(_) => None,
            Thinning::Forest => {
                let roots = (marks.root(a), marks.root(b));
                if roots.0 == roots.1 {
                    return;
                }
                Some(roots)
            }
        };
        let keys = (&sides.left.keys()[entry], &sides.right.keys()[other]);
        let (difference, distance) = difference(keys.0, keys.1, self.skipped);
        if self.distinct && distance == 0 || distance > self.radius {
            return;
        }
        let Some(fingerprints) = sides.pair([entry, other], &difference) else {
            return;
        };
        match roots {
            None => {
                marks.set(a, marks.get(a).saturating_add(1));
                marks.set(b, marks.get(b).saturating_add(1));
            }
            // The right chunk is replaced while the left chunk stays. So the parent of an entry of
            // the left chunk must be in the left chunk, whose numbers are lower.
            Some((a, b)) => marks.set(a.max(b), a.min(b) as u32),
        }
        self.emitted += 1;
        emit(Pair {
            rows: [sides.left.entry_tid(entry), sides.right.entry_tid(other)],
            fingerprints,
            distance,
            pass: join.sides.pass(),
        });
    }
}

/// Returns the index of the first entry of the right chunk that `entry` is compared with. If the
/// two groups of `task` are the same group, it is the entry behind `entry`, so that each pair is
/// compared once. Otherwise it is the first entry of `task.right`.
#[inline]
fn first_other(entry: usize, task: &GroupPair) -> usize {
    match task.same {
        true => entry + 1,
        false => task.right.start,
    }
}
