//! Finding rows by their distance from a query.

use crate::block_layout::BlockLayout;
use crate::empty_search::EmptySearch;
use crate::filter;
use crate::key::{Block, EntryKey, Key, Tid, difference};
use crate::leaf::Leaf;
use crate::leaf_prefetch::{self, prefetch_between, prefetch_first};
use crate::leaf_queue::LeafQueue;
use crate::level_cursor::{NextPage, Row};
use crate::page::{Page, Result};
use crate::plan::{Plan, Probe, last_finds, next_within};
use crate::store::PageStore;
use crate::tree::Tree;
use std::cmp::Ordering;
use std::ops::{Deref, Range};
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

/// Probes whose leaves are found together, before the first is read, so that the machine
/// fetches all of them from memory at the same time. Four is what an index has by default; of long
/// keys, whose leaves are fetched whole, more would push each other out of a cache of 32 kB.
const PREFETCH_DEPTH: usize = 4;

/// Leaves of neighbouring prefixes that are fetched from memory ahead of the one that is read.
const LEAVES_AHEAD: usize = 2;

/// The least and the greatest key with the prefix that a probe searches for.
#[inline]
fn ends_of<const N: usize>(
    probe: &Probe<N>,
    permuted: &Key<N>,
    scope_words: usize,
) -> (Key<N>, Key<N>) {
    let (mut first, mut last) = (*permuted, *permuted);
    let rest = u64::MAX.checked_shr(probe.bits).unwrap_or(0);
    first[scope_words] &= !rest;
    last[scope_words] |= rest;
    first[scope_words + 1..].fill(0);
    last[scope_words + 1..].fill(u64::MAX);
    (first, last)
}

/// Search by distance in progress. Between its steps it holds no page.
#[derive(Debug)]
pub struct Scan<const N: usize> {
    layout: Rc<BlockLayout<N>>,
    plan: Rc<Plan<N>>,
    query: Key<N>,
    /// Wanted distances: above the first, if any, and up to the second, which is the
    /// plan's radius or less.
    beyond: Option<u32>,
    radius: u32,
    /// Only rows of the query's scope are wanted, where keys have one.
    in_scope: bool,
    /// The current probe, and the query as permuted for its table.
    probe: usize,
    permuted: Key<N>,
    next: NextPage<N>,
    /// The probes whose first leaves have been found ahead of their turn, each with that leaf and
    /// its first position, at its number modulo the length.
    ahead: Range<usize>,
    leaves_ahead: [(Block, (EntryKey<N>, Key<N>)); PREFETCH_DEPTH],
    /// The next leaves of the current probe, if it is about neighbouring prefixes.
    queue: LeafQueue<N>,
    found: Vec<u16>,
    /// Leaves read so far, while nothing was found, if that is of interest.
    empty: Option<Box<EmptySearch>>,
}

/// The first bits of a word, as a number.
#[inline]
pub(crate) fn prefix(word: u64, bits: u32) -> u64 {
    if bits == 0 { 0 } else { word >> (64 - bits) }
}

impl<const N: usize> Scan<N> {
    /// A search for what lies within the plan's radius of a query, and in its scope where keys
    /// have one.
    pub fn new(layout: Rc<BlockLayout<N>>, plan: Rc<Plan<N>>, query: Key<N>) -> Self {
        let mut scan = Scan {
            layout,
            radius: plan.radius,
            plan,
            query,
            beyond: None,
            in_scope: true,
            probe: 0,
            permuted: query,
            next: None,
            ahead: 0..0,
            leaves_ahead: [(0, (EntryKey::start_of(0), query)); PREFETCH_DEPTH],
            queue: LeafQueue::default(),
            found: Vec::new(),
            empty: None,
        };
        scan.begin();
        scan
    }

    /// Restarts with another query and keeps the allocated memory.
    pub fn restart(&mut self, plan: Rc<Plan<N>>, query: Key<N>) {
        self.radius = plan.radius;
        self.plan = plan;
        self.query = query;
        self.beyond = None;
        self.begin();
    }

    /// Searches all scopes. The plan must be one that reads a table whole.
    pub fn in_all_scopes(mut self) -> Self {
        debug_assert!(self.plan.is_whole());
        self.in_scope = false;
        self.begin();
        self
    }

    /// Returns whether rows of all scopes are found.
    pub fn is_in_all_scopes(&self) -> bool {
        !self.in_scope
    }

    /// Restarts with the same query, for rows beyond a distance, if one is given.
    pub fn widen(&mut self, plan: Rc<Plan<N>>, beyond: Option<u32>) {
        self.restart(plan, self.query);
        self.beyond = beyond;
    }

    /// Limits the search to a radius from here on, which must not exceed the plan's.
    pub fn narrow(&mut self, radius: u32) {
        debug_assert!(radius <= self.plan.radius);
        self.radius = radius;
    }

    /// The block layout of the index.
    pub fn layout(&self) -> &BlockLayout<N> {
        &self.layout
    }

    /// The plan followed.
    pub fn plan(&self) -> &Rc<Plan<N>> {
        &self.plan
    }

    fn begin(&mut self) {
        self.ahead = 0..0;
        self.empty = None;
        self.start(0);
    }

    /// Turns to a probe.
    fn start(&mut self, probe: usize) {
        self.probe = probe;
        self.next = None;
        self.queue.clear();
        if self.ahead.contains(&probe) {
            let (leaf, (first, permuted)) = self.leaves_ahead[probe % PREFETCH_DEPTH];
            self.permuted = permuted;
            self.next = Some((first, Some(leaf)));
        } else if let Some((first, permuted)) = self.first_position(probe) {
            self.permuted = permuted;
            self.next = Some((first, None));
        }
    }

    /// The first entry key of a probe, and the query as permuted for its table.
    fn first_position(&self, probe: usize) -> Option<(EntryKey<N>, Key<N>)> {
        let probe = self.plan.probes.get(probe)?;
        let permuted = self.layout.tables()[usize::from(probe.table)].permute(&self.query);
        let first = self.first_key(probe, &permuted, 0)?;
        Some((EntryKey::before_key(probe.table, first), permuted))
    }

    /// Finds and prefetches the leaves of the current probe and of those after it, up to the first
    /// that is about more than one prefix. They may be split before they are read: then what has
    /// moved is found by right links.
    fn look_ahead<S: PageStore>(&mut self, tree: &Tree<'_, S, N>) -> Result<()> {
        let first = self.probe;
        let with_one_prefix = (self.plan.probes[first..].iter().take(PREFETCH_DEPTH))
            .take_while(|probe| probe.threshold == 0 && probe.bits > 0);
        let probes = first..first + with_one_prefix.count();
        if probes.len() < 2 {
            return Ok(());
        }
        let mut wanted = [None; PREFETCH_DEPTH];
        for probe in probes.clone() {
            wanted[probe % PREFETCH_DEPTH] = self.first_position(probe);
        }
        let leaves = tree.leaves_of(&wanted, |leaf| {
            tree.store.read_ahead(leaf);
            prefetch_first::<_, N>(tree.store, leaf);
        })?;
        for probe in probes.clone() {
            let place = probe % PREFETCH_DEPTH;
            if let (Some(leaf), Some((_, permuted))) = (leaves[place], &wanted[place]) {
                let scope_words = self.layout.scope_words();
                let (first, last) = ends_of(&self.plan.probes[probe], permuted, scope_words);
                prefetch_between(tree.store, leaf, &first, &last);
            }
        }
        for (place, found) in leaves.into_iter().zip(wanted).enumerate() {
            if let (Some(leaf), Some(first)) = found {
                self.leaves_ahead[place] = (leaf, first);
            }
        }
        self.ahead = probes;
        self.start(first);
        Ok(())
    }

    /// The scope that is searched; `None` if there are none, or all of them are.
    fn scope(&self) -> Option<u64> {
        (self.in_scope && self.layout.scope_words() > 0).then_some(self.query[0])
    }

    /// The lowest key whose prefix a probe searches for, from a prefix on.
    fn first_key(&self, probe: &Probe<N>, permuted: &Key<N>, from: u64) -> Option<Key<N>> {
        let word = self.layout.scope_words();
        let center = prefix(permuted[word], probe.bits);
        let found = next_within(center, probe.bits, probe.threshold, from)?;
        let mut key = [0; N];
        if probe.bits > 0 {
            key[word] = found << (64 - probe.bits);
        }
        if let Some(scope) = self.scope() {
            key[0] = scope;
        }
        Some(key)
    }

    /// Reads one more leaf and appends the rows found there. False: there was nothing left to
    /// read. Each row is returned once, in no particular order.
    pub fn step<S: PageStore>(
        &mut self,
        tree: &Tree<'_, S, N>,
        matches: &mut Vec<Match<N>>,
    ) -> Result<bool> {
        if matches!(self.next, Some((_, None))) && !self.ahead.contains(&self.probe) {
            self.look_ahead(tree)?;
        }
        let Some((entry_key, mut hint)) = self.next else {
            return Ok(false);
        };
        if self.queue.is_empty() && self.plan.probes[self.probe].threshold > 0 {
            hint = self.fill_queue(tree, entry_key)?.or(hint);
        }
        let Probe { bits, .. } = self.plan.probes[self.probe];
        let is_whole = bits == 0;
        let was_prefetched = N <= leaf_prefetch::MOST_WORDS
            && hint.is_some()
            && (is_whole || self.ahead.contains(&self.probe));
        let leaf: Leaf<_, N> = tree.find(&entry_key, 0, hint, |block| match was_prefetched {
            true => tree.store.read_prefetched(block),
            false => tree.store.read(block),
        })?;
        // The way on is read under the same lock as the entries: what a later split moves right of
        // this page has been seen, and lies before the high key read here.
        let next = self.next_page(entry_key.table, leaf.right_sibling());
        if self.plan.probes[self.probe].threshold > 0 {
            if let Some(queued) = self.queue.rest().nth(LEAVES_AHEAD - 1) {
                tree.store.prefetch(queued);
            }
        } else if N <= leaf_prefetch::MOST_WORDS
            && let Some((_, Some(next))) = next
        {
            let leaves_of_prefix = self.plan.table_leaves / 2f64.powi(bits as i32);
            match is_whole || leaves_of_prefix < 1.0 {
                true => tree.store.prefetch_next(next),
                false => tree.store.prefetch(next),
            }
        }
        self.collect(&leaf, &entry_key, matches);
        let leaves = tree.leaves.filter(|leaves| leaves.validates());
        if leaves.is_some() {
            self.note(tree, &leaf, next.is_none());
        }
        tree.store.unlock_keep_pin(leaf.page);
        match next {
            Some(_) => self.next = next,
            None => self.start(self.probe + 1),
        }
        if let Some(leaves) = leaves
            && self.probe == self.plan.probes.len()
            && let Some(search) = self.empty.take()
            && let Some(search) = search.of(&self.query, self.radius)
        {
            leaves.remember_empty(search);
        }
        Ok(true)
    }

    /// Notes that a leaf has been read, the last one or not of the current probe.
    fn note<S: PageStore>(
        &mut self,
        tree: &Tree<'_, S, N>,
        leaf: &Leaf<S::Read<'_>, N>,
        is_last: bool,
    ) {
        let empty = self.empty.get_or_insert_default();
        if is_last && self.found.is_empty() && self.beyond.is_none() {
            let version = tree.store.version(&leaf.page);
            empty.note(leaf.table(), &self.permuted, leaf.block(), version);
        } else {
            empty.spoil();
        }
    }

    /// Finds the next leaves of the current probe, the first of which is that of an entry key, and
    /// returns this one, if it was found.
    fn fill_queue<S: PageStore>(
        &mut self,
        tree: &Tree<'_, S, N>,
        entry_key: EntryKey<N>,
    ) -> Result<Option<Block>> {
        let mut queue = core::mem::take(&mut self.queue);
        tree.find_ahead(&mut queue, entry_key, |end| {
            self.next_position(entry_key.table, end)
        })?;
        self.queue = queue;
        let first = self.queue.take(&entry_key);
        for (place, leaf) in self.queue.rest().enumerate() {
            tree.store.read_ahead(leaf);
            if place < LEAVES_AHEAD {
                tree.store.prefetch(leaf);
            }
        }
        Ok(first)
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
        let probes = &self.plan.probes[..=self.probe];
        let table = &self.layout.tables()[usize::from(leaf.table())];
        let skipped = self.layout.scope_words();
        self.found.clear();
        let keys = leaf.keys();
        let probe = &probes[self.probe];
        let places = match probe.threshold == 0 && probe.bits > 0 {
            true => {
                let (first, last) = ends_of(probe, &self.permuted, skipped);
                leaf.places_between(&first, &last)
            }
            false => [0..0, 0..keys.len()],
        };
        for places in places {
            let (before, first) = (self.found.len(), places.start as u16);
            let (query, found) = (&self.permuted, &mut self.found);
            filter::within_leaf(&keys.part(places), query, skipped, self.radius, found);
            found[before..].iter_mut().for_each(|place| *place += first);
        }
        for &i in &self.found {
            let entry_key = leaf.entry_key(usize::from(i));
            if entry_key < *from {
                continue;
            }
            let fingerprint = table.restore(&entry_key.key);
            if self.scope().is_some_and(|scope| scope != fingerprint[0]) {
                continue;
            }
            let (difference, distance) = difference(&fingerprint, &self.query, skipped);
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

    /// The first entry key of the current probe, in a table, from one on; `None` if there is none.
    fn next_position(&self, table: u16, from: &EntryKey<N>) -> Option<EntryKey<N>> {
        if from.table != table {
            return None;
        }
        let probe = &self.plan.probes[self.probe];
        let word = self.layout.scope_words();
        let first_prefix = match self
            .scope()
            .map_or(Ordering::Equal, |scope| from.key[0].cmp(&scope))
        {
            Ordering::Less => 0,
            Ordering::Equal if self.in_scope => prefix(from.key[word], probe.bits),
            Ordering::Equal => 0,
            Ordering::Greater => return None,
        };
        let first = self.first_key(probe, &self.permuted, first_prefix)?;
        Some(EntryKey::before_key(table, first).max(*from))
    }

    /// The page to read after a leaf of a table with this right sibling; `None` if the current
    /// probe ends there.
    fn next_page(&mut self, table: u16, sibling: Option<(EntryKey<N>, Block)>) -> NextPage<N> {
        let (high, right) = sibling?;
        if self.plan.probes[self.probe].bits == 0 && self.scope().is_none() {
            // The table is read whole, leaf after leaf.
            return (high.table == table).then_some((high, Some(right)));
        }
        let position = self.next_position(table, &high)?;
        if let Some(leaf) = self.queue.take(&position) {
            return Some((position, Some(leaf)));
        }
        let word = self.layout.scope_words();
        // A leaf or two on: nearer by right links than from the root.
        let is_near = position == high
            || (position.key[word].wrapping_sub(high.key[word]) as f64) * self.plan.table_leaves
                < 2.0 * 2f64.powi(64);
        Some((position, is_near.then_some(right)))
    }
}
