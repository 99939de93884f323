//! Comparison of groups of index entries in a search for pairs: the groups of two chunks (parts of
//! a permutation in memory), or the groups of one chunk with each other. A group has the entries
//! with the same leading bits (a prefix). The groups with which it is compared are its neighbours:
//! their prefixes are equal to its own or differ in few bits. The comparison stops after a batch of
//! pairs and can be resumed. If keys have a scope (columns that must be equal in two
//! near-duplicates), their first word is a hash of the scope.

use super::Pair;
use super::chunk::{ScopeRun, SortedChunk};
use super::plan::{self, PassOverlap};
use super::thinning::{OpenEntries, Thinning};
use crate::block_layout::BlockLayout;
use crate::filter;
use crate::key::{Key, Tid, difference};
use crate::plan::{Probe, last_finds};
use crate::store::ReadPages;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

/// Number of reported pairs after which a step of the search ends. The number is checked after each
/// comparison of an entry with many keys, so a step may report more pairs.
const BATCH: usize = 1024;
/// Maximum number of keys that an entry is compared with at once. So a step may report this number
/// of pairs more than [`BATCH`].
const MAX_KEYS_AT_ONCE: usize = 4096;
/// Number of comparisons of keys between two checks for interrupts.
const PAUSE: usize = 1 << 18;
/// Number of comparisons after which a step of the search ends, even if it has found few pairs.
/// These comparisons take some tenths of a second.
const MAX_STEP_COMPARISONS: u64 = 1 << 26;

/// Input of a comparison: two chunks, and the pass that compares them. A pass is the search of one
/// permutation.
pub(super) struct JoinInputs<'a, const N: usize> {
    /// Passes of the plan from the first to the current one.
    pub passes: &'a [Probe<N>],
    pub overlap: PassOverlap,
    pub layout: &'a BlockLayout<N>,
    pub left: &'a SortedChunk<N>,
    pub right: &'a SortedChunk<N>,
    /// True if `left` and `right` are the same chunk. Then each two entries are compared once.
    pub within: bool,
}

impl<const N: usize> JoinInputs<'_, N> {
    fn probe(&self) -> &Probe<N> {
        &self.passes[self.passes.len() - 1]
    }

    /// Returns the position of the current pass in the plan.
    pub fn pass(&self) -> usize {
        self.passes.len() - 1
    }

    /// Returns the index of the first entry of the right chunk, within the range `others`, with
    /// which this pass compares `entry` of the left chunk. The keys of `others` are in ascending
    /// order, and none is below the key of `entry`.
    ///
    /// If each pair is reported by one pass only, the first pass reports all pairs of equal keys.
    /// In the other passes, this function skips the keys in `others` that equal the key of `entry`.
    /// Comparing them again would take long: the number of pairs of equal keys may be the square of
    /// the number of equal rows or row versions.
    #[inline]
    fn behind_equals(&self, entry: usize, others: Range<usize>) -> usize {
        let key = &self.left.keys()[entry];
        let right = &self.right.keys()[others.clone()];
        let skips_equals = self.overlap == PassOverlap::FirstReports && self.passes.len() > 1;
        match skips_equals && right.first() == Some(key) {
            true => others.start + right.partition_point(|other| other == key),
            false => others.start,
        }
    }

    /// Returns the fingerprints of a pair, or `None` if another pass reports the pair. `entries`
    /// has the index of the entry in the left chunk and the index of the other entry in the right
    /// chunk. `difference` is the XOR of their keys.
    #[inline]
    pub fn pair(&self, entries: [usize; 2], difference: &Key<N>) -> Option<[Key<N>; 2]> {
        let permutation = &self.layout.permutations()[usize::from(self.probe().permutation)];
        let fingerprints = [self.left.keys()[entries[0]], self.right.keys()[entries[1]]];
        let is_reported = match self.overlap {
            PassOverlap::FirstReports => last_finds(self.passes, &permutation.restore(difference)),
            PassOverlap::EachReports => true,
        };
        is_reported.then(|| fingerprints.map(|key| permutation.restore(&key)))
    }
}

/// Position in the comparison of two chunks, by which the comparison is resumed.
#[derive(Debug)]
pub(super) struct JoinCursor {
    /// Index of the current run of the left chunk. A run has the entries of one scope.
    run: usize,
    /// Index of the current group of the left chunk, within the run.
    group: usize,
    /// Number of attempts to find a neighbour of the current group. Depending on `neighbours`, an
    /// attempt looks up the prefix for one XOR value, or compares the prefix of one group of the
    /// right chunk.
    neighbour: usize,
    /// Rule that finds the neighbours of a group of the run. `None` before the first group of the
    /// run.
    neighbours: Option<Neighbours>,
    /// The two groups that are compared now. `None` before the next two groups have been chosen.
    task: Option<GroupPair>,
}

impl JoinCursor {
    /// Creates a cursor at the first group of a run of the left chunk.
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

/// Rule that finds the groups with which a group is compared: its neighbours.
#[derive(Clone, Debug)]
enum Neighbours {
    /// Looks up the groups whose prefix is the group's prefix XOR one of these values.
    Differences(Rc<Vec<u64>>),
    /// Compares the prefixes of all groups, because there are fewer groups than XOR values.
    All,
}

/// Comparison of two groups, or of a group with itself, in progress.
#[derive(Debug)]
pub(super) struct GroupPair {
    /// Indexes of the entries of the left group that have not been compared with all entries of the
    /// right group.
    pub left: Range<usize>,
    /// Indexes of the entries of the right group.
    pub right: Range<usize>,
    /// True if the left group and the right group are the same group.
    pub same: bool,
    /// In a thinned search (a search that may skip pairs), the entries of the right group that can
    /// still produce pairs.
    pub open: OpenEntries,
    /// Index of the first entry of the right group with which the first entry of `left` has not
    /// been compared.
    at: usize,
}

/// Compares the entries of groups, reports pairs within a radius, and counts the comparisons of a
/// search.
#[derive(Debug)]
pub(super) struct Compare<const N: usize> {
    /// Maximum distance of a pair, in bits.
    pub radius: u32,
    /// Number of words at the start of a key that do not count for distances: the scope.
    pub skipped: usize,
    /// True if two equal keys are not a pair.
    pub distinct: bool,
    /// Rule that decides which pairs the search may skip. `None` if it skips no pair.
    pub thinning: Option<Thinning>,
    /// Cache of the XOR values between the prefixes of neighbouring groups. The map's key consists
    /// of the number of bits of a prefix and the number of bits that may differ. The map's value is
    /// `None` if there are too many XOR values.
    masks: HashMap<(u32, u32), Option<Rc<Vec<u64>>>>,
    /// Buffer for the keys within the radius, as indexes in the slice of keys that were compared.
    pub found: Vec<u16>,
    /// Number of pairs that the current step has reported.
    pub emitted: usize,
    /// Work since the last check for interrupts, in comparisons of two keys. Other work counts as
    /// the number of comparisons that take the same time.
    since_pause: usize,
    /// Number of comparisons of two keys in the whole search.
    comparisons: u64,
    /// Value of `comparisons` at the start of the current step.
    step_start: u64,
}

impl<const N: usize> Compare<N> {
    /// Creates a comparison for pairs within `radius` bits. It ignores the first `skipped` words of
    /// keys. With `distinct`, two equal keys are not a pair.
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

    /// Returns the number of comparisons of two keys in the whole search.
    pub fn comparisons(&self) -> u64 {
        self.comparisons
    }

    /// Adds `comparisons` to the number of comparisons of two keys, and to the counter for
    /// interrupt checks.
    #[inline]
    pub(super) fn count(&mut self, comparisons: usize) {
        self.since_pause += comparisons;
        self.comparisons += comparisons as u64;
    }

    /// Adds other work to the counter for interrupt checks. The work takes about as long as `work`
    /// comparisons.
    #[inline]
    pub(super) fn count_other(&mut self, work: usize) {
        self.since_pause += work;
    }

    /// In a thinned search, initializes the marks of the entries of `chunk`: one number for each
    /// entry. With [`Thinning::Degree`], a mark counts the entry's pairs and starts at 0. With
    /// [`Thinning::Forest`], a mark is the number of the entry's parent, and each entry starts as
    /// its own parent. The forest numbers the entries of the left chunk from 0, then the entries of
    /// the right chunk. `first` is the number of the first entry of `chunk`. Returns false if
    /// memory is exhausted.
    pub fn mark(&self, chunk: &mut SortedChunk<N>, first: usize) -> bool {
        match self.thinning {
            None => true,
            Some(Thinning::Degree(_)) => chunk.mark_all(|_| 0),
            Some(Thinning::Forest) => chunk.mark_all(|entry| (first + entry) as u32),
        }
    }

    /// Continues the comparison of two chunks at the cursor `join`. Returns true when all groups
    /// have been compared, and false if the step ends earlier, after a batch of pairs or many
    /// comparisons. `resolve` and `emit` are as for [`Pairs::step`](super::Pairs::step).
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

    /// Lets the store check for interrupts after every [`PAUSE`] comparisons.
    #[inline]
    pub(super) fn check_interrupts<S: ReadPages>(&mut self, store: &S) {
        if self.since_pause >= PAUSE {
            self.since_pause = 0;
            store.check_interrupts();
        }
    }

    /// Returns the next two groups to compare and advances the cursor. `None` if there are no more.
    fn next_task<S: ReadPages>(
        &mut self,
        join: &mut JoinCursor,
        sides: &JoinInputs<'_, N>,
        store: &S,
    ) -> Option<GroupPair> {
        loop {
            let run = sides.left.runs().get(join.run)?;
            if sides.within && sides.probe().threshold == 0 {
                // A group is compared only with itself, so groups of one entry are skipped. Most
                // groups of long prefixes are such groups.
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
                // A single entry has no pair within its own group.
                if same && left.len() == 1 {
                    continue;
                }
                return Some(GroupPair {
                    left,
                    at: right.start,
                    right,
                    open: OpenEntries::default(),
                    same,
                });
            }
        }
    }

    /// Returns the rule that finds the neighbours of a group. Prefixes have `bits` bits, and
    /// neighbouring prefixes differ in at most `threshold` bits. `groups` is the number of groups
    /// among which the neighbours of a group are found. If there are fewer groups than possible
    /// neighbouring prefixes, the rule compares the prefixes of all groups. Otherwise the rule
    /// looks up each possible prefix.
    fn neighbours(&mut self, bits: u32, threshold: u32, groups: usize) -> Neighbours {
        let masks = self.masks.entry((bits, threshold)).or_insert_with(|| {
            // If there are more XOR values than groups, all groups are compared instead.
            plan::masks(bits, threshold, 1 << 16).map(Rc::new)
        });
        match masks {
            Some(masks) if masks.len() <= groups => Neighbours::Differences(Rc::clone(masks)),
            _ => Neighbours::All,
        }
    }

    /// Compares the first entry of `task.left` with the next entries of `task.right`, at most
    /// [`MAX_KEYS_AT_ONCE`], and reports the pairs. Removes the entry from `task.left` when it has
    /// been compared with the last entry of `task.right`. `resolve` and `emit` are as for
    /// [`Pairs::step`](super::Pairs::step).
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
        let to = task.right.end.min(from + MAX_KEYS_AT_ONCE);
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

/// Returns the index of the next group of the right chunk that must be compared with `group` of the
/// left chunk. `None` after the last one. `neighbours` is the rule that finds the groups: it tries
/// a list of XOR values of prefixes, or all groups of `right_run`. `next` is the index of the next
/// XOR value or group to try, counted from the start of the list or run. The function increases
/// `next` for each one that it tries. If both chunks are the same, a group is compared only with
/// itself and with the groups behind it.
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
