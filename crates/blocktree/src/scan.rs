//! Search of an index on fingerprints for all rows within a radius of a query. The search consists
//! of probes: each reads one permutation (ordered copy of all keys in the index), or a part of it.
//! If keys have scopes (columns that must be equal), their first word is a hash of the scope.

use crate::block_layout::BlockLayout;
use crate::empty_search::EmptySearch;
use crate::filter;
use crate::full_scan::Row;
use crate::key::{Block, EntryKey, Key, Tid, difference};
use crate::leaf::Leaf;
use crate::leaf_cache::LeafCache;
use crate::level_cursor::NextPage;
use crate::look_ahead::LookAhead;
use crate::page::{Page, Result};
use crate::plan::{Plan, last_finds};
use crate::probes::Probes;
use crate::store::{PrefetchPages, ReadPages};
use crate::tree::Tree;
use std::ops::Deref;
use std::rc::Rc;

/// Row within the radius of a search, with its distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match<const N: usize> {
    /// Address of the row.
    pub tid: Tid,
    /// The scope's word if keys have one, then the row's fingerprint.
    pub fingerprint: Key<N>,
    /// Distance of the fingerprint to the query, in bits.
    pub distance: u32,
}

impl<const N: usize> Match<N> {
    /// Returns the row without its distance.
    pub fn row(&self) -> Row<N> {
        let (tid, fingerprint) = (self.tid, Some(self.fingerprint));
        Row { tid, fingerprint }
    }
}

/// Search within a radius of a fingerprint, in progress. Holds no page between steps.
#[derive(Debug)]
pub struct Scan<const N: usize> {
    probes: Probes<N>,
    /// The search returns only rows at a greater distance than this number of bits. `None` if there
    /// is no such limit.
    beyond: Option<u32>,
    /// The search returns only rows up to this distance in bits, which is at most the plan's
    /// radius.
    radius: u32,
    /// Number of the current probe in the plan.
    probe: usize,
    /// The query's key in the permutation of the current probe.
    permuted: Key<N>,
    /// Next leaf to read for the current probe.
    next: NextPage<N>,
    /// Leaves that are found and prefetched before they are read.
    ahead: LookAhead<N>,
    /// Buffer for the indexes of matching entries on a leaf.
    found: Vec<u16>,
    /// Record of the leaves read so far. If the search finds nothing, an insertion can check by
    /// this record that there is still no row near the query. `None` if no leaf has been read, or
    /// if the leaf cache does not store such records ([`LeafCache::validates`]).
    empty: Option<Box<EmptySearch>>,
}

impl<const N: usize> Scan<N> {
    /// Creates a search for the rows whose distance from `query` is at most the radius of `plan`.
    /// If keys have scopes, only rows of the query's scope are found.
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

    /// Restarts the search with another plan and another query. Keeps the allocated memory.
    pub fn restart(&mut self, plan: Rc<Plan<N>>, query: Key<N>) {
        self.radius = plan.radius;
        self.probes.plan = plan;
        self.probes.query = query;
        self.beyond = None;
        self.begin();
    }

    /// Makes the search find rows of all scopes. The plan must read a permutation from start to
    /// end.
    pub fn in_all_scopes(mut self) -> Self {
        debug_assert!(self.probes.plan.is_whole());
        self.probes.in_scope = false;
        self.begin();
        self
    }

    /// Returns whether the search finds rows of all scopes.
    pub fn is_in_all_scopes(&self) -> bool {
        !self.probes.in_scope
    }

    /// Restarts the search with another plan and the same query. If `beyond` is given, only rows at
    /// a distance of more than `beyond` bits are found.
    pub fn widen(&mut self, plan: Rc<Plan<N>>, beyond: Option<u32>) {
        self.restart(plan, self.probes.query);
        self.beyond = beyond;
    }

    /// Reduces the radius to `radius` bits for the leaves that the search has not read yet.
    /// `radius` must not exceed the plan's radius.
    pub fn narrow(&mut self, radius: u32) {
        debug_assert!(radius <= self.probes.plan.radius);
        self.radius = radius;
    }

    /// Returns the block layout of the index.
    pub fn layout(&self) -> &BlockLayout<N> {
        &self.probes.layout
    }

    /// Returns the plan that the search follows.
    pub fn plan(&self) -> &Rc<Plan<N>> {
        &self.probes.plan
    }

    fn begin(&mut self) {
        self.ahead.clear();
        self.empty = None;
        self.turn_to(0);
    }

    /// Starts the probe with the number `probe` in the plan. After the last probe, ends the search.
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

    /// Reads one more leaf and appends the wanted rows on it to `matches`. Returns false if there
    /// was no leaf left to read. All steps together return each row once, in no particular order.
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
        let neighbour = (self.ahead).fill_queue(tree, &self.probes, self.probe, &start)?;
        let hint = neighbour.or(hint);
        let was_prefetched = self.ahead.has_prefetched(&self.probes, self.probe, hint);
        let leaf: Leaf<_, N> = tree.find(&entry_key, 0, hint, |block| match was_prefetched {
            true => tree.store.read_prefetched(block),
            false => tree.store.read(block),
        })?;
        // The right link is read under the same lock as the entries. If a later split moves entries
        // to the right, they are not read twice, because they are below the high key read here.
        let next = self.next_page(entry_key.permutation, leaf.right_sibling());
        (self.ahead).prefetch_next(tree.store, &self.probes, self.probe, &self.permuted, &next);
        self.collect(&leaf, &entry_key, matches);
        // An insertion of the query needs the leaf of the query's key. It can be another leaf than
        // the one on which the probe starts, because keys with one prefix can fill several leaves.
        tree.remember_covering(&self.permuted, &leaf);
        let keeps_empty = tree.leaves.is_some_and(LeafCache::validates);
        if keeps_empty {
            self.note(tree, &leaf);
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

    /// Stores the search in the leaf cache if it has ended and has found nothing.
    fn remember_empty(&mut self, leaves: Option<&LeafCache>) {
        if self.probe == self.probes.plan.probes.len()
            && let Some(search) = self.empty.take()
            && let Some(search) = search.ended(&self.probes.query, self.radius)
            && let Some(leaves) = leaves
        {
            leaves.remember_empty(search);
        }
    }

    /// Adds a leaf that was read to the record of the leaves read so far. If the search finds
    /// nothing, an insertion can check by this record that there is still no row near the query. If
    /// the leaf has a row within the radius, or if the search skips near rows (`beyond`), marks the
    /// record as useless.
    fn note<S: ReadPages>(&mut self, tree: &Tree<'_, S, N>, leaf: &Leaf<S::Read<'_>, N>) {
        let empty = self.empty.get_or_insert_default();
        if self.found.is_empty() && self.beyond.is_none() {
            let version = tree.store.version(&leaf.page);
            empty.note(leaf.permutation(), &self.permuted, leaf.block(), version);
        } else {
            empty.spoil();
        }
    }

    /// Appends the wanted rows of a leaf to `matches`, except rows that an earlier probe finds.
    /// Skips entries below `from`: they were read on a leaf that was then merged into this one.
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
        let high = leaf.high();
        let only = (self.probes).only_prefix(probe, &self.permuted, &from.key, high.as_ref());
        let ranges = match only {
            Some((first, last)) => leaf.ranges_between(&first, &last),
            None => [0..0, 0..keys.len()],
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

    /// Returns the leaf that the current probe reads next, or `None` if the probe ends.
    /// `permutation` and `sibling` are the permutation and the right sibling of the leaf that was
    /// just read.
    fn next_page(
        &mut self,
        permutation: u16,
        sibling: Option<(EntryKey<N>, Block)>,
    ) -> NextPage<N> {
        let (high, right) = sibling?;
        let probes = &self.probes;
        if probes.plan.probes[self.probe].bits == 0 && probes.scope().is_none() {
            // The probe reads the whole permutation, leaf after leaf.
            return (high.permutation == permutation).then_some((high, Some(right)));
        }
        let position = probes.next_position(self.probe, &self.permuted, &high)?;
        if let Some(leaf) = self.ahead.take(&position) {
            return Some((position, Some(leaf)));
        }
        let word = probes.layout.scope_words();
        // If the next leaf is at most about two leaves to the right, right links are cheaper than a
        // descent from the root.
        let is_near = position == high
            || (position.key[word].wrapping_sub(high.key[word]) as f64)
                * probes.plan.permutation_leaves
                < 2.0 * 2f64.powi(64);
        Some((position, is_near.then_some(right)))
    }
}
