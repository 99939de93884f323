//! Fewer pairs, for whoever makes clusters of them: as many as there are fingerprints, times a
//! constant, however many are near each other.

use super::chunk::SortedChunk;
use super::compare::{Compare, GroupPair, JoinInputs};
use super::{Pair, Tid};
use crate::filter;
use crate::key::Key;
use crate::store::PageStore;

/// Which pairs of fingerprints may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thinning {
    /// Those of two fingerprints that both are in more than so many other pairs. Whatever is in no
    /// more pairs than that is in all that it has.
    Degree(u32),
    /// Those of two fingerprints that other pairs connect. Only where no fingerprint is in several
    /// scopes with one hash: what connects two of one scope might be of another.
    Forest,
}

/// Keys that are compared at once.
const PIECE: usize = 4096;
/// Entries found by one comparison that make it worth to note which of the group are left.
const MANY: usize = 32;

/// Comparisons with a whole group that cost as much as going through a list of it, or more.
const WAIT: usize = 32;

/// The entries of a group that may still bring pairs for entries that have brought enough.
#[derive(Debug, Default)]
pub(super) struct Open {
    /// `None`: all of them.
    entries: Option<Vec<u32>>,
    /// Comparisons with the whole group before the list is tried again, since it was too long.
    wait: usize,
    /// With [`Thinning::Forest`], an entry of the component whose entries are left out.
    base: usize,
}

/// The marks of two chunks, one after the other: pairs that an entry is in, or its parent.
struct Marks<'a, const N: usize> {
    left: &'a SortedChunk<N>,
    right: &'a SortedChunk<N>,
    /// Offset that is added to positions in the right chunk.
    shift: usize,
}

impl<const N: usize> Marks<'_, N> {
    fn get(&self, entry: usize) -> u32 {
        match entry.checked_sub(self.left.len()) {
            None => self.left.mark(entry),
            Some(other) => self.right.mark(other),
        }
    }

    fn set(&self, entry: usize, mark: u32) {
        match entry.checked_sub(self.left.len()) {
            None => self.left.set_mark(entry, mark),
            Some(other) => self.right.set_mark(other, mark),
        }
    }

    fn root(&self, mut entry: usize) -> usize {
        loop {
            let parent = self.get(entry) as usize;
            let above = self.get(parent) as usize;
            if parent == above {
                return parent;
            }
            // Path halving (van Leeuwen and van der Weide, 1977).
            self.set(entry, above as u32);
            entry = above;
        }
    }
}

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
                self.work(task.right.len());
                task.right.clone().map(|other| other as u32).collect()
            });
            self.work(open.len());
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
            self.work(end - start);
            found.clear();
            let keys = &sides.right.keys()[start..end];
            filter::within_keys(keys, key, self.skipped(), self.radius(), &mut found);
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
        let (key, other_key) = (&sides.left.keys()[entry], &sides.right.keys()[other]);
        let mut difference: Key<N> = [0; N];
        let mut distance = 0;
        for word in self.skipped()..N {
            difference[word] = key[word] ^ other_key[word];
            distance += difference[word].count_ones();
        }
        if distance == 0 || distance > self.radius() {
            return;
        }
        let (probe, earlier) = (sides.probe(), &sides.probes[..sides.probes.len() - 1]);
        let table = &sides.layout.tables()[usize::from(probe.table)];
        let difference = table.restore(&difference);
        if !probe.finds(&difference) || earlier.iter().any(|p| p.finds(&difference)) {
            return;
        }
        match roots {
            None => {
                marks.set(a, marks.get(a).saturating_add(1));
                marks.set(b, marks.get(b).saturating_add(1));
            }
            // The left chunk stays when the right one is read anew: nothing in it points out of it.
            Some((a, b)) => marks.set(a.max(b), a.min(b) as u32),
        }
        self.count();
        emit(Pair {
            rows: [Tid::MIN; 2],
            fingerprints: [table.restore(key), table.restore(other_key)],
            distance,
        });
    }
}
