//! Look-ahead of a search for fingerprints: finds leaves and prefetches them from memory before the
//! search reads them. The search consists of probes. Each probe looks up one or more prefixes
//! (leading bits) in one permutation (ordered copy of all keys), or reads the whole permutation.

use crate::key::{Block, EntryKey, Key};
use crate::leaf_prefetch::{MOST_WORDS, prefetch_between, prefetch_first, prefetch_wanted};
use crate::leaf_queue::LeafQueue;
use crate::level_cursor::NextPage;
use crate::page::Result;
use crate::probes::{ProbeStart, Probes};
use crate::store::{PrefetchPages, ReadPages};
use crate::tree::Tree;
use std::ops::Range;

/// Number of probes whose first leaves are found together, before the search reads any of these
/// leaves. So the processor fetches all of them from memory at the same time. Four is the default
/// number of permutations of an index. A higher number would not help with long keys: their leaves
/// are prefetched whole, and only four leaves of 8 kB fit into a cache of 32 kB.
const PREFETCH_DEPTH: usize = 4;

/// If the keys with a prefix fill a smaller part of a leaf than this, the leaf with the lowest of
/// these keys usually also has the query's key. Then the leaf cache stores this leaf for the
/// query's key, so that a search and an insertion of the key can use each other's leaf. With a
/// quarter of a leaf, the two keys are on different leaves in one of eight cases. The search then
/// first reads the wrong leaf.
const SMALL_PART_OF_LEAF: f64 = 0.25;

/// Number of leaves that are prefetched ahead of the current leaf, for a probe that looks up
/// several prefixes.
const LEAVES_AHEAD: usize = 2;

/// Leaves that a search will read, found and prefetched in advance. Leaves may be split, merged or
/// reused before the search reads them: [`Tree::find`] notices that.
#[derive(Debug)]
pub(crate) struct LookAhead<const N: usize> {
    /// Probes whose first leaves have been found. They are consecutive probes of the plan, and this
    /// is the range of their numbers.
    probes: Range<usize>,
    /// First leaf and start of each probe in `probes`, at the index `probe % PREFETCH_DEPTH`.
    first_leaves: [(Block, ProbeStart<N>); PREFETCH_DEPTH],
    /// Next leaves of the current probe, if it looks up several prefixes.
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
    /// Drops all leaves that were found in advance.
    pub(crate) fn clear(&mut self) {
        self.probes = 0..0;
        self.queue.clear();
    }

    /// Returns whether the first leaf of the probe with number `probe` has been found in advance.
    pub(crate) fn has_found(&self, probe: usize) -> bool {
        self.probes.contains(&probe)
    }

    /// Begins the probe with number `probe`: empties the queue, which belongs to the previous
    /// probe. Returns the first leaf and the start of the new probe. `None` if the leaf has not
    /// been found in advance.
    pub(crate) fn turn_to(&mut self, probe: usize) -> Option<(Block, ProbeStart<N>)> {
        self.queue.clear();
        (self.has_found(probe)).then(|| self.first_leaves[probe % PREFETCH_DEPTH])
    }

    /// Finds and prefetches the first leaves of the probe with number `first` and of the probes
    /// after it, up to [`PREFETCH_DEPTH`] probes in all. Stops before the first probe that looks up
    /// several prefixes or reads a whole permutation. Does nothing if fewer than two probes remain.
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
        let (mut starts, mut wanted) = ([None; PREFETCH_DEPTH], [None; PREFETCH_DEPTH]);
        for probe in numbers.clone() {
            let slot = probe % PREFETCH_DEPTH;
            starts[slot] = probes.start(probe);
            wanted[slot] = starts[slot].map(|(first, permuted)| {
                let is_small = probes.leaves_of_prefix(probe) < SMALL_PART_OF_LEAF;
                (first, if is_small { permuted } else { first.key })
            });
        }
        let leaves = tree.leaves_of(&wanted, |leaf| {
            tree.store.read_ahead(leaf);
            prefetch_first::<_, N>(tree.store, leaf);
        })?;
        for probe in numbers.clone() {
            let slot = probe % PREFETCH_DEPTH;
            if let (Some(leaf), Some(start)) = (leaves[slot], starts[slot]) {
                let (_, permuted) = start;
                let (first, last) = probes.ends(&probes.plan.probes[probe], &permuted);
                prefetch_between(tree.store, leaf, &first, &last);
                self.first_leaves[slot] = (leaf, start);
            }
        }
        self.probes = numbers;
        Ok(())
    }

    /// Fills the queue of a probe that looks up several prefixes: finds the leaves that the probe
    /// reads from the entry key `from` on, and hints to the store that it will read them. Then
    /// prefetches the wanted entries of the first leaf and of the next [`LEAVES_AHEAD`] leaves.
    /// `permuted` is the query's key in the probe's permutation. Removes the leaf of `from` from
    /// the queue and returns it, or returns `None` if it was not found. Does nothing and returns
    /// `None` if the queue is not empty or the probe looks up one prefix.
    pub(crate) fn fill_queue<S: ReadPages + PrefetchPages>(
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
        for (_, leaf) in self.queue.rest() {
            tree.store.read_ahead(*leaf);
            if N <= MOST_WORDS {
                tree.store.prefetch_ends(*leaf);
            }
        }
        for index in 0..=LEAVES_AHEAD {
            self.prefetch_queued(tree.store, probes, probe, permuted, index);
        }
        Ok(self.queue.take(from))
    }

    /// Prefetches the part of a queued leaf that the probe with number `probe` will read. `index`
    /// is the position of the leaf among the leaves that have not been taken, counted from 0. Does
    /// nothing if the queue has no such leaf. `permuted` is the query's key in the probe's
    /// permutation.
    fn prefetch_queued<S: PrefetchPages>(
        &self,
        store: &S,
        probes: &Probes<N>,
        probe: usize,
        permuted: &Key<N>,
        index: usize,
    ) {
        if let Some((from, leaf)) = self.queue.rest().get(index) {
            prefetch_wanted(store, *leaf, |high| {
                probes.only_prefix(&probes.plan.probes[probe], permuted, &from.key, high)
            });
        }
    }

    /// Removes the leaf of the entry key `position` from the queue and returns it. `None` if the
    /// queue does not have this leaf.
    #[inline]
    pub(crate) fn take(&mut self, position: &EntryKey<N>) -> Option<Block> {
        self.queue.take(position)
    }

    /// Returns whether the next leaf of a probe has been prefetched. `leaf` is that leaf, or `None`
    /// if it must be found by a descent. A leaf that must be found has not been prefetched. Always
    /// returns false if keys have more than [`MOST_WORDS`] words.
    #[inline]
    pub(crate) fn has_prefetched(
        &self,
        probes: &Probes<N>,
        probe: usize,
        leaf: Option<Block>,
    ) -> bool {
        let plan = &probes.plan.probes[probe];
        let is_ahead = plan.bits == 0 || plan.threshold > 0 || self.has_found(probe);
        N <= MOST_WORDS && leaf.is_some() && is_ahead
    }

    /// Prefetches a leaf that the probe with number `probe` will read after the current leaf.
    /// `permuted` is the query's key in the probe's permutation, and `next` is the position at
    /// which the probe continues. If the probe looks up several prefixes, prefetches the wanted
    /// part of the leaf that is [`LEAVES_AHEAD`] leaves ahead in the queue, if the queue has it.
    /// Otherwise prefetches the leaf in `next`, unless keys have more than [`MOST_WORDS`] words.
    #[inline]
    pub(crate) fn prefetch_next<S: PrefetchPages>(
        &self,
        store: &S,
        probes: &Probes<N>,
        probe: usize,
        permuted: &Key<N>,
        next: &NextPage<N>,
    ) {
        let plan = &probes.plan.probes[probe];
        if plan.threshold > 0 {
            self.prefetch_queued(store, probes, probe, permuted, LEAVES_AHEAD - 1);
        } else if N <= MOST_WORDS
            && let Some((_, Some(next))) = *next
        {
            match plan.bits == 0 || probes.leaves_of_prefix(probe) < 1.0 {
                true => store.prefetch_next(next),
                false => store.prefetch(next),
            }
        }
    }
}
