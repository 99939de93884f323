//! Leaves of a search that are found and fetched from memory before the search reads them.

use crate::key::{Block, EntryKey};
use crate::leaf_prefetch::{MOST_WORDS, prefetch_between, prefetch_first};
use crate::leaf_queue::LeafQueue;
use crate::level_cursor::NextPage;
use crate::page::Result;
use crate::probes::{ProbeStart, Probes};
use crate::store::{PrefetchPages, ReadPages};
use crate::tree::Tree;
use std::ops::Range;

/// Probes whose leaves are found together, before the first is read, so that the machine fetches
/// all of them from memory at the same time. An index has four permutations by default. More leaves
/// of long keys, which are fetched whole, would push each other out of a cache of 32 kB.
const PREFETCH_DEPTH: usize = 4;

/// Leaves of neighbouring prefixes that are fetched from memory ahead of the leaf that is read.
const LEAVES_AHEAD: usize = 2;

/// Leaves that a search will read, found before their turn, and the hints to fetch them. Leaves may
/// be split, merged or reused before the search reads them: [`Tree::find`] notices that.
#[derive(Debug)]
pub(crate) struct LookAhead<const N: usize> {
    /// Probes whose first leaves have been found.
    probes: Range<usize>,
    /// The first leaf of each of these probes and its start, at the probe's number modulo the
    /// length.
    first_leaves: [(Block, ProbeStart<N>); PREFETCH_DEPTH],
    /// The next leaves of the current probe, if it searches neighbouring prefixes.
    queue: LeafQueue<N>,
}

impl<const N: usize> Default for LookAhead<N> {
    fn default() -> Self {
        LookAhead {
            probes: 0..0,
            first_leaves: [(0, (EntryKey::start_of(0), [0; N])); PREFETCH_DEPTH],
            queue: LeafQueue::default(),
        }
    }
}

impl<const N: usize> LookAhead<N> {
    /// Drops all leaves.
    pub(crate) fn clear(&mut self) {
        self.probes = 0..0;
        self.queue.clear();
    }

    /// Returns whether the first leaf of a probe has been found.
    pub(crate) fn has_found(&self, probe: usize) -> bool {
        self.probes.contains(&probe)
    }

    /// Turns to a probe. Returns its start and its first leaf, if the leaf has been found.
    pub(crate) fn turn_to(&mut self, probe: usize) -> Option<(Block, ProbeStart<N>)> {
        self.queue.clear();
        (self.has_found(probe)).then(|| self.first_leaves[probe % PREFETCH_DEPTH])
    }

    /// Finds and prefetches the first leaves of a probe and of the probes after it, up to the first
    /// probe for more than one prefix. Does nothing for a single probe.
    pub(crate) fn find_probes<S: ReadPages + PrefetchPages>(
        &mut self,
        tree: &Tree<'_, S, N>,
        probes: &Probes<N>,
        first: usize,
    ) -> Result<()> {
        let with_one_prefix = (probes.plan.probes[first..].iter().take(PREFETCH_DEPTH))
            .take_while(|probe| probe.threshold == 0 && probe.bits > 0);
        let numbers = first..first + with_one_prefix.count();
        if numbers.len() < 2 {
            return Ok(());
        }
        let mut wanted = [None; PREFETCH_DEPTH];
        for probe in numbers.clone() {
            wanted[probe % PREFETCH_DEPTH] = probes.start(probe);
        }
        let leaves = tree.leaves_of(&wanted, |leaf| {
            tree.store.read_ahead(leaf);
            prefetch_first::<_, N>(tree.store, leaf);
        })?;
        for probe in numbers.clone() {
            let slot = probe % PREFETCH_DEPTH;
            if let (Some(leaf), Some((_, permuted))) = (leaves[slot], &wanted[slot]) {
                let (first, last) = probes.ends(&probes.plan.probes[probe], permuted);
                prefetch_between(tree.store, leaf, &first, &last);
            }
        }
        for (slot, found) in leaves.into_iter().zip(wanted).enumerate() {
            if let (Some(leaf), Some(start)) = found {
                self.first_leaves[slot] = (leaf, start);
            }
        }
        self.probes = numbers;
        Ok(())
    }

    /// Fills the queue with the leaves of a probe for neighbouring prefixes, if it is empty.
    /// Returns the leaf of `from`, if it was found.
    pub(crate) fn find_neighbours<S: ReadPages + PrefetchPages>(
        &mut self,
        tree: &Tree<'_, S, N>,
        probes: &Probes<N>,
        probe: usize,
        (from, permuted): &ProbeStart<N>,
    ) -> Result<Option<Block>> {
        if probes.plan.probes[probe].threshold == 0 || !self.queue.is_empty() {
            return Ok(None);
        }
        tree.find_ahead(&mut self.queue, *from, |end| {
            probes.next_position(probe, permuted, end)
        })?;
        let first = self.queue.take(from);
        for (index, leaf) in self.queue.rest().enumerate() {
            tree.store.read_ahead(leaf);
            if index < LEAVES_AHEAD {
                tree.store.prefetch(leaf);
            }
        }
        Ok(first)
    }

    /// Takes the leaf of an entry key from the queue.
    #[inline]
    pub(crate) fn take(&mut self, position: &EntryKey<N>) -> Option<Block> {
        self.queue.take(position)
    }

    /// Returns whether the leaf to which a link led has been prefetched.
    #[inline]
    pub(crate) fn has_prefetched(
        &self,
        probes: &Probes<N>,
        probe: usize,
        leaf: Option<Block>,
    ) -> bool {
        let is_whole = probes.plan.probes[probe].bits == 0;
        N <= MOST_WORDS && leaf.is_some() && (is_whole || self.has_found(probe))
    }

    /// Prefetches a leaf that the search will read after the current one, which continues at
    /// `next`.
    #[inline]
    pub(crate) fn prefetch_next<S: PrefetchPages>(
        &self,
        store: &S,
        probes: &Probes<N>,
        probe: usize,
        next: &NextPage<N>,
    ) {
        let probe = &probes.plan.probes[probe];
        if probe.threshold > 0 {
            if let Some(queued) = self.queue.rest().nth(LEAVES_AHEAD - 1) {
                store.prefetch(queued);
            }
        } else if N <= MOST_WORDS
            && let Some((_, Some(next))) = *next
        {
            let leaves_of_prefix = probes.plan.permutation_leaves / 2f64.powi(probe.bits as i32);
            match probe.bits == 0 || leaves_of_prefix < 1.0 {
                true => store.prefetch_next(next),
                false => store.prefetch(next),
            }
        }
    }
}
