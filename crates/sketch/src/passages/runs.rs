//! Finds the longest runs of symbols that two sequences share. A symbol is a number that stands for
//! a token.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::suffix_automaton::SuffixAutomaton;
use crate::memory::GrowVec;

/// Number of candidate runs processed between two calls of the cancellation check `check`.
const STEPS: usize = 1 << 16;

/// Run of consecutive symbols that both sequences contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SharedRun {
    /// Position of the first symbol of the run in the first sequence.
    pub a: usize,
    /// Position of the first symbol of the run in the second sequence.
    pub b: usize,
    /// Number of symbols of the run.
    pub length: usize,
}

/// Returns runs of at least `least` symbols of `a` that `b` contains. Longer runs precede shorter
/// ones, and runs of equal length are in the order of `a`. Runs do not overlap in `a`: each run is
/// the longest run among the symbols of `a` that are in no earlier run. The position of a run in
/// `b` is its first occurrence there, so several runs may have the same position in `b`.
///
/// The number of runs is at most the length of `a` divided by `least`. Time grows as n log n with
/// the number of symbols, for any input. Memory is the suffix automaton of `b`, and 28 bytes for
/// each symbol of `a`.
pub(super) fn shared_runs(
    a: &[u32],
    b: &[u32],
    least: usize,
    check: &mut dyn FnMut(),
) -> Vec<SharedRun> {
    let mut runs = Vec::new();
    if a.len().min(b.len()) < least {
        return runs;
    }
    let automaton = SuffixAutomaton::new(b, check);
    let mut heap = BinaryHeap::from(maximal_runs(a, &automaton, least, check));
    let mut free = FreePositions::new(a.len());
    for step in 0_usize.. {
        if step.is_multiple_of(STEPS) {
            check();
        }
        let Some((length, Reverse(start))) = heap.pop() else {
            break;
        };
        let run = start as usize..(start + length) as usize;
        let left = free.trim(run.clone());
        if left == run {
            free.take(run.clone());
            let position = automaton.first_position(&a[run.clone()]);
            runs.grow_push(SharedRun {
                a: run.start,
                b: position.expect("a run that both have"),
                length: run.len(),
            });
        } else if left.len() >= least {
            // The heap has room, because an element was removed.
            heap.push((left.len() as u32, Reverse(left.start as u32)));
        }
    }
    runs
}

/// Returns the length of each maximal run and its start in `a`. A maximal run is a run of symbols
/// of `a` that the sequence of `automaton` also contains, and that cannot be extended at either
/// end. Skips runs of fewer than `least` symbols.
fn maximal_runs(
    a: &[u32],
    automaton: &SuffixAutomaton,
    least: usize,
    check: &mut dyn FnMut(),
) -> Vec<(u32, Reverse<u32>)> {
    let mut runs = Vec::new();
    let (mut end, mut before) = (0, 0);
    let mut add = |end: usize, length: usize| {
        if length >= least {
            runs.grow_push((length as u32, Reverse((end - length) as u32)));
        }
    };
    let each = |length: usize| {
        // If the length is one more than at the previous symbol, this symbol extends the previous
        // run.
        if length != before + 1 {
            add(end, before);
        }
        (end, before) = (end + 1, length);
    };
    automaton.match_ends(a, each, check);
    add(end, before);
    runs
}

/// Positions in `a` that no chosen run contains yet.
///
/// Runs are chosen in descending order of length. So a chosen run that overlaps a shorter run
/// covers the start, the end or all of the shorter run. The positions of the shorter run that are
/// still free are therefore contiguous.
struct FreePositions {
    /// Links for finding the first free position that is not before position i. `after[i]` is i if
    /// position i is free. Otherwise it is a later position, and no position from i to `after[i]` -
    /// 1 is free.
    after: Vec<u32>,
    /// Links for finding the last free position before position i. `before[i]` is i if position i -
    /// 1 is free, or if i is 0. Otherwise it is a lower number, and no position from `before[i]` to
    /// i - 1 is free.
    before: Vec<u32>,
}

impl FreePositions {
    fn new(len: usize) -> Self {
        let each = || {
            let mut all = Vec::new();
            all.grow_all(0..=len as u32);
            all
        };
        Self {
            after: each(),
            before: each(),
        }
    }

    /// Marks the positions of a chosen run as not free.
    fn take(&mut self, run: Range<usize>) {
        self.after[run.clone()].fill(run.end as u32);
        self.before[run.start + 1..=run.end].fill(run.start as u32);
    }

    /// Returns the free positions of `run`: those that no chosen run contains. The result may be
    /// empty.
    fn trim(&mut self, run: Range<usize>) -> Range<usize> {
        let start = follow(&mut self.after, run.start);
        let end = follow(&mut self.before, run.end);
        start..end.max(start)
    }
}

/// Starts at index `from` of `next` and goes from each entry to the index that it contains, until
/// an entry contains its own index. Returns this index. Shortens the path for later calls.
fn follow(next: &mut [u32], from: usize) -> usize {
    let mut at = from;
    while next[at] as usize != at {
        let further = next[next[at] as usize];
        next[at] = further;
        at = further as usize;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reference implementation: tries all runs, from the longest to the shortest.
    fn defined(a: &[u32], b: &[u32], least: usize) -> Vec<SharedRun> {
        let position = |part: &[u32]| (0..b.len()).find(|&at| b[at..].starts_with(part));
        let mut free = vec![true; a.len()];
        let mut runs = Vec::new();
        'next: loop {
            for length in (least..=a.len()).rev() {
                for start in 0..=a.len() - length {
                    let run = start..start + length;
                    if free[run.clone()].iter().all(|free| *free)
                        && let Some(b) = position(&a[run.clone()])
                    {
                        free[run].fill(false);
                        runs.push(SharedRun {
                            a: start,
                            b,
                            length,
                        });
                        continue 'next;
                    }
                }
            }
            return runs;
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        #[test]
        fn equals_the_definition(
            (a, b) in (1_u32..6).prop_flat_map(|symbols| (
                prop::collection::vec(0..symbols, 0..40),
                prop::collection::vec(0..symbols, 0..40),
            )),
            least in 1_usize..6,
        ) {
            let runs = shared_runs(&a, &b, least, &mut || ());
            prop_assert_eq!(runs, defined(&a, &b, least));
        }
    }

    #[test]
    fn one_symbol_and_periods_take_no_longer() {
        let (a, b) = (vec![7; 1_000_000], vec![7; 300_000]);
        let runs = shared_runs(&a, &b, 24, &mut || ());
        let lengths: Vec<usize> = runs.iter().map(|run| run.length).collect();
        assert_eq!(lengths, [300_000, 300_000, 300_000, 100_000]);
        let (a, b): (Vec<u32>, Vec<u32>) = (
            (0..400_000).map(|n| n % 3).collect(),
            (0..500_000).map(|n| n % 3 + n / 77_777 % 2).collect(),
        );
        let runs = shared_runs(&a, &b, 24, &mut || ());
        assert!(runs[0].length >= 77_000, "{:?}", runs[0]);
    }
}
