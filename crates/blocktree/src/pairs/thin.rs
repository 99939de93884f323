//! Comparison of groups in a thinned search. The number of its pairs is at most a constant times
//! the number of entries, however many entries are near each other.

use super::Pair;
use super::compare::{Compare, GroupPair, JoinInputs};
use super::thinning::{Marks, Thinning};
use crate::filter;
use crate::key::difference;
use crate::store::ReadPages;

/// Maximum number of keys that are compared at once.
const PIECE_KEYS: usize = 4096;
/// Minimum number of entries near another one that justifies a list of the entries left.
const MIN_FOUND_FOR_LIST: usize = 32;
/// Comparisons with a whole group before the list of entries left, which was too long, is updated
/// again.
const LIST_WAIT: usize = 32;
/// A list of entries left is used if the group has at least this many times as many entries.
const MIN_GROUP_PER_LIST: usize = 8;

/// Two groups and the rule that decides which of their pairs are skipped.
struct ThinnedJoin<'a, const N: usize> {
    thinning: Thinning,
    sides: &'a JoinInputs<'a, N>,
    marks: Marks<'a, N>,
}

impl<const N: usize> ThinnedJoin<'_, N> {
    /// Returns whether an entry of the left side has enough pairs, so that many entries of the
    /// other group need no comparison with it.
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

    /// Returns whether an entry of the right side needs a comparison with an entry that has enough.
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
    /// Removes the first entry from the left group of a task and compares it with the other group.
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
            // Most entries of the group are in this entry's component now.
            let others = task.right.clone();
            let open = others.filter(|&other| join.is_left(other, entry));
            task.open.entries = Some(open.map(|other| other as u32).collect());
            task.open.base = entry;
        }
    }

    /// Compares an entry that has enough pairs with the entries left in the other group. Returns
    /// false, without a comparison, if too many are left.
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

    /// Compares an entry with the other group. Returns the number of entries near it.
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

    /// Reports two entries, unless they are not near each other, another pass reports them, or the
    /// thinning skips them.
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
            // The left chunk stays when the right one is replaced. So no parent of an entry in the
            // left chunk may be in the right one.
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

/// Returns the first entry of the other group that an entry is compared with.
#[inline]
fn first_other(entry: usize, task: &GroupPair) -> usize {
    match task.same {
        true => entry + 1,
        false => task.right.start,
    }
}
