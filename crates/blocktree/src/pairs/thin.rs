//! Thinned search for the making of clusters: its pairs are at most a constant times the
//! fingerprints, however many of these are near each other.

use super::compare::{Compare, GroupPair, JoinInputs};
use super::thinning::{Marks, Thinning};
use super::{Pair, Tid};
use crate::filter;
use crate::key::difference;
use crate::store::PageStore;

/// Keys that are compared at once.
const PIECE: usize = 4096;
/// Entries found by one comparison that make it worth to note which of the group are left.
const MANY: usize = 32;

/// Comparisons with a whole group that cost as much as going through a list of it, or more.
const WAIT: usize = 32;

impl<const N: usize> Compare<N> {
    /// Compares the first entry left in a task with the other group, and strikes it off.
    pub(super) fn compare_thinned<S: PageStore>(
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
        let has_enough = match thinning {
            Thinning::Degree(most) => marks.get(entry) > most,
            Thinning::Forest => {
                task.open.entries.is_some() && marks.root(entry) == marks.root(task.open.base)
            }
        };
        let is_left = |other: usize, entry: usize| match thinning {
            Thinning::Degree(most) => marks.get(other + marks.shift) <= most,
            Thinning::Forest => marks.root(other + marks.shift) != marks.root(entry),
        };
        let from = match task.same {
            true => entry + 1,
            false => task.right.start,
        };
        if has_enough && task.open.wait > 0 {
            task.open.wait -= 1;
        } else if has_enough {
            let mut open = (task.open.entries.take()).unwrap_or_else(|| {
                self.since_pause += task.right.len();
                task.right.clone().map(|other| other as u32).collect()
            });
            self.since_pause += open.len();
            open.retain(|&other| is_left(other as usize, entry));
            if open.len() <= task.right.len() / 8 {
                for &other in &open {
                    if other as usize >= from {
                        self.meet(thinning, entry, other as usize, sides, &marks, emit);
                    }
                }
                task.open.entries = Some(open);
                self.check_interrupts(store);
                return;
            }
            task.open.entries = Some(open);
            task.open.wait = WAIT;
        }
        let mut found = std::mem::take(&mut self.found);
        let (key, mut brought) = (&sides.left.keys()[entry], 0);
        let mut start = from;
        while start < task.right.end {
            let end = task.right.end.min(start + PIECE);
            self.since_pause += end - start;
            found.clear();
            let keys = &sides.right.keys()[start..end];
            filter::within_keys(keys, key, self.skipped, self.radius, &mut found);
            brought += found.len();
            for &i in &found {
                self.meet(thinning, entry, start + usize::from(i), sides, &marks, emit);
            }
            start = end;
            self.check_interrupts(store);
        }
        self.found = found;
        if thinning == Thinning::Forest && !has_enough && brought >= MANY {
            // The others of the group are mostly in this entry's component now.
            let others = task.right.clone();
            let open = others.filter(|&other| is_left(other, entry));
            task.open.entries = Some(open.map(|other| other as u32).collect());
            task.open.base = entry;
        }
    }

    /// Gives a pair if it is one, if no earlier pass gives it, and if it may not be left out.
    #[inline]
    fn meet(
        &mut self,
        thinning: Thinning,
        entry: usize,
        other: usize,
        sides: &JoinInputs<'_, N>,
        marks: &Marks<'_, N>,
        emit: &mut impl FnMut(Pair<N>),
    ) {
        let (a, b) = (entry, other + marks.shift);
        let roots = match thinning {
            Thinning::Degree(most) => {
                if marks.get(a) > most && marks.get(b) > most {
                    return;
                }
                None
            }
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
        if distance == 0 || distance > self.radius {
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
            // The left chunk stays when the right one is read again: nothing in it points out of
            // it.
            Some((a, b)) => marks.set(a.max(b), a.min(b) as u32),
        }
        self.emitted += 1;
        emit(Pair {
            rows: [Tid::MIN; 2],
            fingerprints,
            distance,
        });
    }
}
