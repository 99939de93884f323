//! Comparing the groups of two chunks, or of one with itself, a piece at a time.

use super::Pair;
use super::chunk::{ScopeRun, SortedChunk};
use super::plan::{self, PassOverlap};
use super::thinning::{Open, Thinning};
use crate::block_layout::BlockLayout;
use crate::filter;
use crate::key::{Key, Tid, difference};
use crate::plan::{Probe, last_finds};
use crate::store::ReadPages;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

/// Pairs after which a step ends; it may give a few more.
const BATCH: usize = 1024;
/// Keys that are compared at once. What they bring at most is added to a batch.
const PIECE: usize = 4096;
/// Comparisons between two checks for interrupts.
const PAUSE: usize = 1 << 18;
/// Comparisons after which a step ends without a full batch: some tenths of a second.
const MAX_STEP_COMPARISONS: u64 = 1 << 26;

/// Both inputs of the join.
pub(super) struct JoinInputs<'a, const N: usize> {
    /// The passes up to this one, which is the last.
    pub probes: &'a [Probe<N>],
    pub overlap: PassOverlap,
    pub layout: &'a BlockLayout<N>,
    pub left: &'a SortedChunk<N>,
    pub right: &'a SortedChunk<N>,
    /// Both sides are the same chunk: then each pair of entries is met once.
    pub within: bool,
}

impl<const N: usize> JoinInputs<'_, N> {
    fn probe(&self) -> &Probe<N> {
        &self.probes[self.probes.len() - 1]
    }

    pub fn pass(&self) -> usize {
        self.probes.len() - 1
    }

    /// The start of those of some entries of the right side, in order and none below an entry of
    /// the left, with which this pass compares it. Pairs of equal keys are the first pass's: there
    /// may be the square of the rows that have them, or of the versions that a row has had.
    #[inline]
    fn behind_equals(&self, entry: usize, others: Range<usize>) -> usize {
        let key = &self.left.keys()[entry];
        let right = &self.right.keys()[others.clone()];
        let skips_equals = self.overlap == PassOverlap::FirstReports && self.probes.len() > 1;
        match skips_equals && right.first() == Some(key) {
            true => others.start + right.partition_point(|other| other == key),
            false => others.start,
        }
    }

    /// Returns the fingerprints of two entries, by their positions, whose keys have this
    /// difference. Returns `None` if this pass does not report the pair.
    #[inline]
    pub fn pair(&self, entries: [usize; 2], difference: &Key<N>) -> Option<[Key<N>; 2]> {
        let permutation = &self.layout.permutations()[usize::from(self.probe().permutation)];
        let fingerprints = [self.left.keys()[entries[0]], self.right.keys()[entries[1]]];
        let is_reported = match self.overlap {
            PassOverlap::FirstReports => last_finds(self.probes, &permutation.restore(difference)),
            PassOverlap::EachReports => true,
        };
        is_reported.then(|| fingerprints.map(|key| permutation.restore(&key)))
    }
}

/// Progress of a comparison of two chunks.
#[derive(Debug)]
pub(super) struct JoinCursor {
    run: usize,
    /// The group of the left side, within its run.
    group: usize,
    /// The next of its neighbours.
    neighbour: usize,
    /// Neighbours of a group of the run; `None` before its first group.
    neighbours: Option<Neighbours>,
    task: Option<GroupPair>,
}

impl JoinCursor {
    /// Starts at the first group of a run.
    pub fn from_run(run: usize) -> Self {
        JoinCursor {
            run,
            group: 0,
            neighbour: 0,
            neighbours: None,
            task: None,
        }
    }
}

/// The groups that a group is compared with.
#[derive(Clone, Debug)]
enum Neighbours {
    /// Groups whose prefixes differ from its own by one of these values.
    Differences(Rc<Vec<u64>>),
    /// All groups, whose prefixes are compared: they are fewer.
    All,
}

/// Two groups that are compared.
#[derive(Debug)]
pub(super) struct GroupPair {
    pub left: Range<usize>,
    pub right: Range<usize>,
    pub same: bool,
    /// In a thinned search, the entries of `right` that can still produce pairs.
    pub open: Open,
    /// Progress of the entry at the start of `left`.
    at: usize,
}

/// Compares groups of entries.
#[derive(Debug)]
pub(super) struct Compare<const N: usize> {
    pub radius: u32,
    /// Words of keys that are not compared.
    pub skipped: usize,
    pub distinct: bool,
    pub thinning: Option<Thinning>,
    /// By the number of bits of a prefix and in how many of them others may differ, the differences
    /// to its neighbours.
    masks: HashMap<(u32, u32), Option<Rc<Vec<u64>>>>,
    pub found: Vec<u16>,
    /// Pairs that the current step has given.
    pub emitted: usize,
    /// Comparisons since the last pause.
    since_pause: usize,
    /// Comparisons of keys, and their number at the start of the current step.
    comparisons: u64,
    step_start: u64,
}

impl<const N: usize> Compare<N> {
    /// Comparisons of all but the first words of keys, for pairs within a radius. With `distinct`
    /// equal keys are no pair.
    pub fn new(radius: u32, skipped: usize, distinct: bool) -> Self {
        Compare {
            radius,
            skipped,
            distinct,
            thinning: None,
            masks: HashMap::new(),
            found: Vec::new(),
            emitted: 0,
            since_pause: 0,
            comparisons: 0,
            step_start: 0,
        }
    }

    pub fn begin_step(&mut self) {
        self.emitted = 0;
        self.step_start = self.comparisons;
    }

    /// Number of comparisons of two keys.
    pub fn comparisons(&self) -> u64 {
        self.comparisons
    }

    /// Counts comparisons of keys.
    #[inline]
    pub(super) fn count(&mut self, comparisons: usize) {
        self.since_pause += comparisons;
        self.comparisons += comparisons as u64;
    }

    /// Counts work that takes about as long as some comparisons.
    #[inline]
    pub(super) fn count_other(&mut self, work: usize) {
        self.since_pause += work;
    }

    /// Prepares a chunk for thinning, if there is any: entries are in no pairs, and each is its own
    /// parent, by a number from `first` on. False: there is no memory.
    pub fn mark(&self, chunk: &mut SortedChunk<N>, first: usize) -> bool {
        match self.thinning {
            None => true,
            Some(Thinning::Degree(_)) => chunk.mark_all(|_| 0),
            Some(Thinning::Forest) => chunk.mark_all(|entry| (first + entry) as u32),
        }
    }

    /// Compares until everything is compared. Returns false if the step ends before.
    pub fn resume<S: ReadPages>(
        &mut self,
        join: &mut JoinCursor,
        sides: &JoinInputs<'_, N>,
        store: &S,
        resolve: &mut impl FnMut(Tid) -> Option<Tid>,
        emit: &mut impl FnMut(Pair<N>),
    ) -> bool {
        loop {
            let Some(task) = &mut join.task else {
                join.task = self.next_task(join, sides, store);
                if join.task.is_none() {
                    return true;
                }
                continue;
            };
            while !task.left.is_empty() {
                match self.thinning {
                    None => self.compare_entry(task, sides, resolve, emit),
                    Some(thinning) => self.compare_thinned(thinning, task, sides, store, emit),
                }
                self.check_interrupts(store);
                let comparisons = self.comparisons - self.step_start;
                if self.emitted >= BATCH || comparisons >= MAX_STEP_COMPARISONS {
                    return false;
                }
            }
            join.task = None;
        }
    }

    /// Lets the store pause from time to time.
    #[inline]
    pub(super) fn check_interrupts<S: ReadPages>(&mut self, store: &S) {
        if self.since_pause >= PAUSE {
            self.since_pause = 0;
            store.check_interrupts();
        }
    }

    /// The next two groups to be compared.
    fn next_task<S: ReadPages>(
        &mut self,
        join: &mut JoinCursor,
        sides: &JoinInputs<'_, N>,
        store: &S,
    ) -> Option<GroupPair> {
        loop {
            let run = sides.left.runs().get(join.run)?;
            if sides.within && sides.probe().threshold == 0 {
                // A group meets only itself, and most groups of long prefixes have one entry.
                let groups = run.groups.clone().skip(join.group);
                let lone = groups.take_while(|&group| sides.left.entries(group).len() == 1);
                let lone = lone.count();
                join.group += lone;
                self.count_other(lone);
            }
            if join.group == run.groups.len() {
                if !sides.within {
                    return None;
                }
                *join = JoinCursor::from_run(join.run + 1);
                continue;
            }
            let right_run = match sides.within {
                true => run,
                false => &sides.right.runs()[0],
            };
            let neighbours = join.neighbours.get_or_insert_with(|| {
                let threshold = sides.probe().threshold;
                self.neighbours(run.bits, threshold, right_run.groups.len())
            });
            let group = run.groups.start + join.group;
            loop {
                self.check_interrupts(store);
                let before = join.neighbour;
                let found =
                    next_neighbour(neighbours, &mut join.neighbour, group, sides, right_run);
                self.count_other(1 + join.neighbour - before);
                let Some(other) = found else {
                    (join.group, join.neighbour) = (join.group + 1, 0);
                    break;
                };
                let (left, right) = (sides.left.entries(group), sides.right.entries(other));
                let same = sides.within && other == group;
                // Most groups of long prefixes have one entry.
                if same && left.len() == 1 {
                    continue;
                }
                return Some(GroupPair {
                    left,
                    at: right.start,
                    right,
                    open: Open::default(),
                    same,
                });
            }
        }
    }

    /// The neighbours of groups of this number of bits, if there are `groups` that may be some.
    fn neighbours(&mut self, bits: u32, threshold: u32, groups: usize) -> Neighbours {
        let masks = self.masks.entry((bits, threshold)).or_insert_with(|| {
            // More than a chunk has groups are of no use.
            plan::masks(bits, threshold, 1 << 16).map(Rc::new)
        });
        match masks {
            Some(masks) if masks.len() <= groups => Neighbours::Differences(Rc::clone(masks)),
            _ => Neighbours::All,
        }
    }

    /// Compares the first entry left in a task with a piece of the other group, and strikes it off
    /// when it has met all.
    #[inline]
    fn compare_entry(
        &mut self,
        task: &mut GroupPair,
        sides: &JoinInputs<'_, N>,
        resolve: &mut impl FnMut(Tid) -> Option<Tid>,
        emit: &mut impl FnMut(Pair<N>),
    ) {
        let entry = task.left.start;
        let from = match task.same {
            true => task.at.max(entry + 1),
            false => task.at,
        };
        let from = sides.behind_equals(entry, from..task.right.end);
        let to = task.right.end.min(from + PIECE);
        let mut wanted = !sides.left.is_unwanted(entry);
        self.count_other(1);
        if wanted && from < to {
            self.count(to - from);
            self.found.clear();
            let key = &sides.left.keys()[entry];
            filter::within_keys(
                &sides.right.keys()[from..to],
                key,
                self.skipped,
                self.radius,
                &mut self.found,
            );
            for &i in &self.found {
                let other = from + usize::from(i);
                let (difference, distance) =
                    difference(key, &sides.right.keys()[other], self.skipped);
                if self.distinct && distance == 0 {
                    continue;
                }
                let Some(fingerprints) = sides.pair([entry, other], &difference) else {
                    continue;
                };
                let Some(row) = sides.left.row(entry, resolve) else {
                    wanted = false;
                    break;
                };
                if let Some(other_row) = sides.right.row(other, resolve) {
                    self.emitted += 1;
                    emit(Pair {
                        rows: [row, other_row],
                        fingerprints,
                        distance,
                        pass: sides.pass(),
                    });
                }
            }
        }
        if !wanted || to >= task.right.end {
            task.left.start += 1;
            task.at = task.right.start;
        } else {
            task.at = to;
        }
    }
}

/// The next group, from a neighbour's number on, that a group of the left side is compared with;
/// `None` after the last. Of two groups of one chunk the lower one meets the other.
#[inline]
fn next_neighbour<const N: usize>(
    neighbours: &Neighbours,
    next: &mut usize,
    group: usize,
    sides: &JoinInputs<'_, N>,
    right_run: &ScopeRun,
) -> Option<usize> {
    let prefix = sides.left.prefix(group);
    match neighbours {
        Neighbours::Differences(masks) => {
            while let Some(mask) = masks.get(*next) {
                *next += 1;
                let found = match prefix ^ mask {
                    other if sides.within && other < prefix => None,
                    other if sides.within && other == prefix => Some(group),
                    other => sides.right.group(right_run, other),
                };
                if found.is_some() {
                    return found;
                }
            }
        }
        Neighbours::All => {
            let first = match sides.within {
                true => group,
                false => right_run.groups.start,
            };
            let threshold = sides.probe().threshold;
            while first + *next < right_run.groups.end {
                let other = first + *next;
                *next += 1;
                if (sides.right.prefix(other) ^ prefix).count_ones() <= threshold {
                    return Some(other);
                }
            }
        }
    }
    None
}
