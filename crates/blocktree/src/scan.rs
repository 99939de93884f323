//! Finding rows by their distance from a query.

use crate::block_layout::BlockLayout;
use crate::empty_search::EmptySearch;
use crate::filter;
use crate::key::{Block, EntryKey, Key, Tid, difference};
use crate::leaf::Leaf;
use crate::leaf_cache::LeafCache;
use crate::level_cursor::{NextPage, Row};
use crate::look_ahead::LookAhead;
use crate::page::{Page, Result};
use crate::plan::{Plan, last_finds};
use crate::probes::Probes;
use crate::store::{PrefetchPages, ReadPages};
use crate::tree::Tree;
use std::ops::Deref;
use std::rc::Rc;

/// A row within the radius.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match<const N: usize> {
    /// The row.
    pub tid: Tid,
    /// Its fingerprint.
    pub fingerprint: Key<N>,
    /// Its distance to the query, in bits.
    pub distance: u32,
}

impl<const N: usize> Match<N> {
    /// The row without its distance.
    pub fn row(&self) -> Row<N> {
        let (tid, fingerprint) = (self.tid, Some(self.fingerprint));
        Row { tid, fingerprint }
    }
}

/// Search by distance in progress. Between its steps it holds no page.
#[derive(Debug)]
pub struct Scan<const N: usize> {
    probes: Probes<N>,
    /// Wanted distances: above the first, if any, and up to the second, which is the
    /// plan's radius or less.
    beyond: Option<u32>,
    radius: u32,
    /// Number of the current probe, and the query as permuted for its permutation.
    probe: usize,
    permuted: Key<N>,
    next: NextPage<N>,
    ahead: LookAhead<N>,
    found: Vec<u16>,
    /// Leaves read so far, while nothing was found, if that is of interest.
    empty: Option<Box<EmptySearch>>,
}

impl<const N: usize> Scan<N> {
    /// A search for what lies within the plan's radius of a query, and in its scope where keys
    /// have one.
    pub fn new(layout: Rc<BlockLayout<N>>, plan: Rc<Plan<N>>, query: Key<N>) -> Self {
        let mut scan = Scan {
            radius: plan.radius,
            probes: Probes {
                layout,
                plan,
                query,
                in_scope: true,
            },
            beyond: None,
            probe: 0,
            permuted: query,
            next: None,
            ahead: LookAhead::default(),
            found: Vec::new(),
            empty: None,
        };
        scan.begin();
        scan
    }

    /// Restarts with another query and keeps the allocated memory.
    pub fn restart(&mut self, plan: Rc<Plan<N>>, query: Key<N>) {
        self.radius = plan.radius;
        self.probes.plan = plan;
        self.probes.query = query;
        self.beyond = None;
        self.begin();
    }

    /// Searches all scopes. The plan must be one that reads a permutation whole.
    pub fn in_all_scopes(mut self) -> Self {
        debug_assert!(self.probes.plan.is_whole());
        self.probes.in_scope = false;
        self.begin();
        self
    }

    /// Returns whether rows of all scopes are found.
    pub fn is_in_all_scopes(&self) -> bool {
        !self.probes.in_scope
    }

    /// Restarts with the same query, for rows beyond a distance, if one is given.
    pub fn widen(&mut self, plan: Rc<Plan<N>>, beyond: Option<u32>) {
        self.restart(plan, self.probes.query);
        self.beyond = beyond;
    }

    /// Limits the search to a radius from here on, which must not exceed the plan's.
    pub fn narrow(&mut self, radius: u32) {
        debug_assert!(radius <= self.probes.plan.radius);
        self.radius = radius;
    }

    /// The block layout of the index.
    pub fn layout(&self) -> &BlockLayout<N> {
        &self.probes.layout
    }

    /// The plan followed.
    pub fn plan(&self) -> &Rc<Plan<N>> {
        &self.probes.plan
    }

    fn begin(&mut self) {
        self.ahead.clear();
        self.empty = None;
        self.turn_to(0);
    }

    /// Turns to a probe.
    fn turn_to(&mut self, probe: usize) {
        self.probe = probe;
        self.next = None;
        if let Some((leaf, (first, permuted))) = self.ahead.turn_to(probe) {
            self.permuted = permuted;
            self.next = Some((first, Some(leaf)));
        } else if let Some((first, permuted)) = self.probes.start(probe) {
            self.permuted = permuted;
            self.next = Some((first, None));
        }
    }

    /// Reads one more leaf and appends the rows found there. False: there was nothing left to
    /// read. Each row is returned once, in no particular order.
    pub fn step<S: ReadPages + PrefetchPages>(
        &mut self,
        tree: &Tree<'_, S, N>,
        matches: &mut Vec<Match<N>>,
    ) -> Result<bool> {
        if matches!(self.next, Some((_, None))) && !self.ahead.has_found(self.probe) {
            self.ahead.find_probes(tree, &self.probes, self.probe)?;
            if self.ahead.has_found(self.probe) {
                self.turn_to(self.probe);
            }
        }
        let Some((entry_key, hint)) = self.next else {
            return Ok(false);
        };
        let start = (entry_key, self.permuted);
        let neighbour = (self.ahead).find_neighbours(tree, &self.probes, self.probe, &start)?;
        let hint = neighbour.or(hint);
        let was_prefetched = self.ahead.has_prefetched(&self.probes, self.probe, hint);
        let leaf: Leaf<_, N> = tree.find(&entry_key, 0, hint, |block| match was_prefetched {
            true => tree.store.read_prefetched(block),
            false => tree.store.read(block),
        })?;
        // The right link is read under the same lock as the entries. Entries that a later split
        // moves to the right have been read already, and are below the high key read here.
        let next = self.next_page(entry_key.permutation, leaf.right_sibling());
        (self.ahead).prefetch_next(tree.store, &self.probes, self.probe, &next);
        self.collect(&leaf, &entry_key, matches);
        let keeps_empty = tree.leaves.is_some_and(LeafCache::validates);
        if keeps_empty {
            self.note(tree, &leaf, next.is_none());
        }
        tree.store.unlock_keep_pin(leaf.page);
        match next {
            Some(_) => self.next = next,
            None => self.turn_to(self.probe + 1),
        }
        if keeps_empty {
            self.remember_empty(tree.leaves);
        }
        Ok(true)
    }

    /// Remembers the search after its last probe, if it has found nothing.
    fn remember_empty(&mut self, leaves: Option<&LeafCache>) {
        if self.probe == self.probes.plan.probes.len()
            && let Some(search) = self.empty.take()
            && let Some(search) = search.of(&self.probes.query, self.radius)
            && let Some(leaves) = leaves
        {
            leaves.remember_empty(search);
        }
    }

    /// Notes that a leaf has been read, the last one or not of the current probe.
    fn note<S: ReadPages>(
        &mut self,
        tree: &Tree<'_, S, N>,
        leaf: &Leaf<S::Read<'_>, N>,
        is_last: bool,
    ) {
        let empty = self.empty.get_or_insert_default();
        if is_last && self.found.is_empty() && self.beyond.is_none() {
            let version = tree.store.version(&leaf.page);
            empty.note(leaf.permutation(), &self.permuted, leaf.block(), version);
        } else {
            empty.spoil();
        }
    }

    /// Appends the rows found on a leaf from an entry key on. Entries before it have been read, on
    /// a leaf that has been merged into this one since. A row is returned by the first probe that
    /// finds it.
    fn collect(
        &mut self,
        leaf: &Leaf<impl Deref<Target = Page>, N>,
        from: &EntryKey<N>,
        matches: &mut Vec<Match<N>>,
    ) {
        let probes = &self.probes.plan.probes[..=self.probe];
        let permutation = &self.probes.layout.permutations()[usize::from(leaf.permutation())];
        let skipped = self.probes.layout.scope_words();
        self.found.clear();
        let keys = leaf.keys();
        let probe = &probes[self.probe];
        let ranges = match probe.threshold == 0 && probe.bits > 0 {
            true => {
                let (first, last) = self.probes.ends(probe, &self.permuted);
                leaf.ranges_between(&first, &last)
            }
            false => [0..0, 0..keys.len()],
        };
        for range in ranges {
            let (before, first) = (self.found.len(), range.start as u16);
            let (query, found) = (&self.permuted, &mut self.found);
            filter::within_leaf(&keys.part(range), query, skipped, self.radius, found);
            found[before..].iter_mut().for_each(|index| *index += first);
        }
        for &i in &self.found {
            let entry_key = leaf.entry_key(usize::from(i));
            if entry_key < *from {
                continue;
            }
            let fingerprint = permutation.restore(&entry_key.key);
            if self
                .probes
                .scope()
                .is_some_and(|scope| scope != fingerprint[0])
            {
                continue;
            }
            let (difference, distance) = difference(&fingerprint, &self.probes.query, skipped);
            if self.beyond.is_none_or(|beyond| distance > beyond) && last_finds(probes, &difference)
            {
                matches.push(Match {
                    tid: entry_key.tid,
                    fingerprint,
                    distance,
                });
            }
        }
    }

    /// The page to read after a leaf of a permutation with this right sibling; `None` if the
    /// current probe ends there.
    fn next_page(
        &mut self,
        permutation: u16,
        sibling: Option<(EntryKey<N>, Block)>,
    ) -> NextPage<N> {
        let (high, right) = sibling?;
        let probes = &self.probes;
        if probes.plan.probes[self.probe].bits == 0 && probes.scope().is_none() {
            // The permutation is read whole, leaf after leaf.
            return (high.permutation == permutation).then_some((high, Some(right)));
        }
        let position = probes.next_position(self.probe, &self.permuted, &high)?;
        if let Some(leaf) = self.ahead.take(&position) {
            return Some((position, Some(leaf)));
        }
        let word = probes.layout.scope_words();
        // A leaf or two on: nearer by right links than from the root.
        let is_near = position == high
            || (position.key[word].wrapping_sub(high.key[word]) as f64)
                * probes.plan.permutation_leaves
                < 2.0 * 2f64.powi(64);
        Some((position, is_near.then_some(right)))
    }
}
