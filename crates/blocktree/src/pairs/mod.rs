//! Search for all pairs of rows within a radius. It reads one permutation (ordered copy of all keys
//! in the index) after the other. The search of one permutation is a pass. A pass reads index
//! entries in chunks, divides each chunk into groups with equal leading bits, and compares groups.
//! A plan ([`PairPlan`]) states the passes. If keys have a scope (columns that must be equal in two
//! near-duplicates), their first word is a hash of the scope. In an index on MinHash signatures, a
//! key has a sketch (bits of the signature) instead of a fingerprint.
//!
//! A pass reads the permutation once, from left to right, in chunks of as many leaves as fit into
//! memory. It compares entries whose leading bits are equal or differ in few bits (see `plan`). A
//! chunk is first compared with itself. To find pairs across the chunk's end, the pass then reads
//! the leaves to the right that have entries near those of the chunk. At the guaranteed radius
//! these entries are the rest of the chunk's last group, seldom more than one leaf.
//!
//! Each pair is returned once, even if entries are inserted or leaves are split during the search:
//! entries of a permutation have a fixed order, and a chunk ends where its last leaf ended when it
//! was read. The lower entry of a pair is in some chunk. The upper entry is in the same chunk or to
//! its right. If several passes find a pair, only the first of them returns it. The bits in which
//! the two fingerprints differ show which passes find the pair.
//!
//! This is the batch form of Manku, Jain, Das Sarma (WWW 2007, section 4) with the permutation
//! itself as the set of queries.
//!
//! The search serves two kinds of index. In an index on fingerprints, the distance of two keys is
//! the distance of the fingerprints. In an index on signatures ([`crate::bands`]), it is the number
//! of different sketch bits. Then each pass returns the pairs that it finds, because the caller
//! needs the number of bands that two rows share.

mod buckets;
mod chunk;
mod compare;
mod key_order_scan;
mod plan;
mod range;
mod thinned_compare;
mod thinning;

pub use buckets::CrowdedRow;

use crate::block_layout::BlockLayout;
use crate::key::{EntryKey, Key, Tid};
use crate::leaf;
use crate::level_cursor::LevelCursor;
use crate::page::Result;
use crate::plan::next_within;
use crate::probes::prefix;
use crate::store::ReadPages;
use crate::tree::Tree;
use buckets::Buckets;
use chunk::SortedChunk;
use compare::{Compare, JoinCursor, JoinInputs};
pub use key_order_scan::KeyOrderScan;
pub use plan::PairPlan;
pub(crate) use plan::PassOverlap;
pub use range::PairRange;
use std::rc::Rc;
pub use thinning::Thinning;

/// Pair of rows within the radius, as a search for pairs returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair<const N: usize> {
    /// Addresses of the two rows, in no particular order. Each is the address that the caller's
    /// `resolve` returned. If `resolve` was not called for an entry, it is the address in the entry
    /// ([`Pairs::step`]).
    pub rows: [Tid; 2],
    /// Keys of the two rows, in the same order as `rows`: the scope's word if keys have one, then
    /// the fingerprint, or the sketch in an index on signatures.
    pub fingerprints: [Key<N>; 2],
    /// Number of bits in which the two fingerprints or sketches differ.
    pub distance: u32,
    /// Position in the plan of the pass that found the pair, from 0.
    pub pass: usize,
}

/// Next action of a search for pairs.
#[derive(Debug)]
enum Phase {
    /// Read the next chunk.
    Read,
    /// Read the entries to the right of the chunk that may be near entries of the chunk.
    ReadOn,
    /// Compare the chunk with itself (true), or with the entries to its right (false).
    Compare(JoinCursor, bool),
    /// Nothing. All pairs have been returned.
    Done,
}

/// Search for all pairs within a radius, in progress. Holds no page between steps.
#[derive(Debug)]
pub struct Pairs<const N: usize> {
    layout: Rc<BlockLayout<N>>,
    plan: PairPlan<N>,
    /// Position of the current pass in the plan.
    pass: usize,
    /// Range of a permutation to which the search is limited. `None` for a search of all
    /// permutations of the plan.
    range: Option<PairRange<N>>,
    phase: Phase,
    /// Cursor that reads the leaves of the chunk.
    cursor: LevelCursor<N>,
    /// End (exclusive) of the entries that the pass has read into chunks. `None` at the end of the
    /// permutation.
    end: Option<EntryKey<N>>,
    /// Entries that are compared with each other and with `other`.
    chunk: SortedChunk<N>,
    /// Cursor that reads leaves to the right of the chunk.
    beyond: LevelCursor<N>,
    /// Where `beyond` continues to read: the end (exclusive) of the entries that it has read for
    /// the current chunk. `None` if it need not read further, because no entry further right can be
    /// near an entry of the chunk.
    beyond_end: Option<EntryKey<N>>,
    /// Entries to the right of the chunk that are compared with the chunk.
    other: SortedChunk<N>,
    /// Ranges of prefixes that together contain the prefix of each group in the chunk's last run. A
    /// run has the chunk's entries in one scope. A range consists of all prefixes that start with
    /// the same bits. Each element has these bits as a number, then the number of these bits. An
    /// entry to the right of the chunk can be near an entry of the run only if its prefix differs
    /// in few bits from a prefix in a range. So the search reads only leaves that may have such
    /// entries.
    cover: Vec<(u64, u32)>,
    /// Maximum number of entries in `chunk`, and in `other`.
    capacity: usize,
    compare: Compare<N>,
    /// State of a search that reports crowded buckets. `None` in other searches.
    buckets: Option<Buckets>,
    /// Number of entries that have been compared with the other entries of their chunk, summed over
    /// all passes.
    entries_done: u64,
}

impl<const N: usize> Pairs<N> {
    /// Creates a search that follows `plan`. It keeps two chunks in memory, which take `memory`
    /// bytes. If that is too little, each chunk has room for two leaves. With `distinct`, the
    /// search returns pairs of distinct fingerprints instead of all pairs of rows. Then the two
    /// rows of a pair are examples: any rows with the pair's fingerprints. A pair may be returned
    /// twice.
    pub fn new(
        layout: Rc<BlockLayout<N>>,
        plan: PairPlan<N>,
        memory: usize,
        distinct: bool,
    ) -> Self {
        let scope_words = layout.scope_words();
        let leaves = 2 * leaf::most_entries::<N>();
        Pairs {
            cursor: LevelCursor::new(plan.passes[0].permutation),
            beyond: LevelCursor::new(0),
            end: Some(EntryKey::start_of(0)),
            beyond_end: None,
            pass: 0,
            range: None,
            phase: Phase::Read,
            chunk: SortedChunk::new(scope_words, distinct),
            other: SortedChunk::new(scope_words, distinct),
            cover: Vec::new(),
            capacity: (memory / 2 / chunk::entry_size::<N>()).clamp(leaves, 1 << 31),
            compare: Compare::new(plan.radius, scope_words, distinct),
            buckets: None,
            entries_done: 0,
            layout,
            plan,
        }
    }

    /// Sets how many pairs of each entry the search returns without calling `resolve`. These pairs
    /// have the row address in the index entry, so the caller can look up many rows together. For
    /// further pairs of the entry, the search calls `resolve`, and the caller can reject the entry.
    /// So a row with many invisible versions cannot cause too many pairs: without `resolve`, each
    /// version would be in a pair with each other version. The pairs of an entry are counted
    /// separately in each chunk.
    #[must_use]
    pub fn with_unresolved_pairs(mut self, pairs: u32) -> Self {
        self.chunk.trust(pairs);
        self.other.trust(pairs);
        self
    }

    /// Creates a search for pairs of distinct fingerprints that may skip the pairs described by
    /// `thinning`. `memory` is in bytes. The two rows of a pair are examples: any rows with the
    /// pair's fingerprints. A pair may be returned twice.
    pub fn thinned(
        layout: Rc<BlockLayout<N>>,
        plan: PairPlan<N>,
        memory: usize,
        thinning: Thinning,
    ) -> Self {
        let mut search = Self::new(layout, plan, memory, true);
        search.compare.thinning = Some(thinning);
        search
    }

    /// Creates a search for pairs that skips a pair if both rows have more than `max_pairs` pairs
    /// in one bucket. [`Pairs::step_with_crowds`] reports these rows as crowded instead. So the
    /// number of results is at most proportional to the number of rows, even if many rows are near
    /// each other. A bucket consists of the entries of a permutation whose scope and leading bits
    /// are equal. `memory` is in bytes.
    ///
    /// # Panics
    /// If the plan compares groups whose leading bits differ.
    pub fn with_crowded_buckets(
        layout: Rc<BlockLayout<N>>,
        plan: PairPlan<N>,
        memory: usize,
        max_pairs: u32,
    ) -> Self {
        assert!(plan.passes.iter().all(|probe| probe.threshold == 0));
        // Each chunk is compared only with itself, so it may take the memory of two chunks.
        let mut search = Self::new(layout, plan, 2 * memory, false);
        search.compare.thinning = Some(Thinning::Degree(max_pairs));
        search.buckets = Some(Buckets::new(max_pairs));
        search
    }

    /// Starts a search of one range, which is a part of the entries of a pass. Drops the search in
    /// progress.
    ///
    /// # Panics
    /// If the permutation of the range is not that of its pass in the plan.
    pub fn begin_range(&mut self, range: PairRange<N>) {
        assert_eq!(
            self.plan.passes[range.pass].permutation,
            range.from.permutation
        );
        self.pass = range.pass;
        self.cursor = LevelCursor::at(range.from);
        self.end = Some(range.from);
        self.range = Some(range);
        self.phase = Phase::Read;
    }

    /// Returns the plan that the search follows.
    pub fn plan(&self) -> &PairPlan<N> {
        &self.plan
    }

    /// Continues the search until it has passed a batch of pairs to `emit`, or has made many
    /// comparisons. Returns false if the search has ended.
    ///
    /// The search skips an entry if `wanted` returns false for its address. `resolve` gets the
    /// address in an entry of a pair. `resolve` returns the address to store in [`Pair::rows`], or
    /// `None` if the row must not be in a pair. The search calls `resolve` at most once for an
    /// entry in a chunk. A search [with unresolved pairs](Pairs::with_unresolved_pairs) may report
    /// pairs of an entry without that call. A [thinned](Pairs::thinned) search never calls
    /// `resolve`, so `wanted` must reject each row that must not be in a pair.
    pub fn step<S: ReadPages>(
        &mut self,
        tree: &Tree<'_, S, N>,
        wanted: &mut impl FnMut(Tid) -> bool,
        resolve: &mut impl FnMut(Tid) -> Option<Tid>,
        emit: &mut impl FnMut(Pair<N>),
    ) -> Result<bool> {
        self.advance(tree, wanted, resolve, emit, &mut |_| ())
    }

    /// Like [`Pairs::step`], for a search [with crowded buckets](Pairs::with_crowded_buckets).
    /// `emit_crowded` gets the crowded rows. Two crowded rows of the same bucket may be a pair that
    /// is not passed to `emit`.
    pub fn step_with_crowds<S: ReadPages>(
        &mut self,
        tree: &Tree<'_, S, N>,
        wanted: &mut impl FnMut(Tid) -> bool,
        emit: &mut impl FnMut(Pair<N>),
        emit_crowded: &mut impl FnMut(CrowdedRow<N>),
    ) -> Result<bool> {
        self.advance(tree, wanted, &mut Some, emit, emit_crowded)
    }

    /// Does the work of [`Pairs::step`] and [`Pairs::step_with_crowds`], and returns their result.
    fn advance<S: ReadPages>(
        &mut self,
        tree: &Tree<'_, S, N>,
        wanted: &mut impl FnMut(Tid) -> bool,
        resolve: &mut impl FnMut(Tid) -> Option<Tid>,
        emit: &mut impl FnMut(Pair<N>),
        emit_crowded: &mut impl FnMut(CrowdedRow<N>),
    ) -> Result<bool> {
        self.compare.begin_step();
        loop {
            match &mut self.phase {
                Phase::Done => return Ok(false),
                Phase::Read => {
                    let more = self.read(tree, wanted, emit_crowded)?;
                    self.phase = match self.chunk.len() {
                        0 if more => Phase::Read,
                        0 => self.next_pass(),
                        _ => Phase::Compare(JoinCursor::from_run(0), true),
                    };
                }
                Phase::Compare(join, within) => {
                    let within = *within;
                    let sides = JoinInputs {
                        passes: &self.plan.passes[..=self.pass],
                        overlap: self.plan.overlap,
                        layout: &self.layout,
                        left: &self.chunk,
                        right: if within { &self.chunk } else { &self.other },
                        within,
                    };
                    if !self.compare.resume(join, &sides, tree.store, resolve, emit) {
                        return Ok(true);
                    }
                    if within {
                        self.entries_done += self.chunk.len() as u64;
                        self.report_crowds(emit_crowded);
                    }
                    self.phase = match self.end {
                        _ if !within => Phase::ReadOn,
                        Some(_) if self.buckets.is_some() => Phase::Read,
                        Some(end) => {
                            (self.beyond, self.beyond_end) = (self.cursor, Some(end));
                            self.cover();
                            Phase::ReadOn
                        }
                        None => self.next_pass(),
                    };
                }
                Phase::ReadOn => {
                    self.read_on(tree, wanted)?;
                    self.phase = match self.other.len() {
                        0 => Phase::Read,
                        _ => {
                            Phase::Compare(JoinCursor::from_run(self.chunk.runs().len() - 1), false)
                        }
                    };
                }
            }
        }
    }

    /// Returns the number of completed passes of the plan.
    pub fn passes_done(&self) -> usize {
        self.pass
    }

    /// Returns the number of entries that have been compared with the other entries of their chunk,
    /// summed over all passes.
    pub fn entries_done(&self) -> u64 {
        self.entries_done
    }

    /// Returns the number of comparisons of two keys so far.
    pub fn comparisons_done(&self) -> u64 {
        self.compare.comparisons()
    }

    /// Returns the number of crowded buckets whose rows have been reported.
    pub fn crowded_buckets(&self) -> u32 {
        self.buckets.as_ref().map_or(0, Buckets::count)
    }

    /// Prepares the next pass of the plan and returns the pass's first phase. Returns
    /// [`Phase::Done`] after the last pass, or if the search is limited to one range.
    fn next_pass(&mut self) -> Phase {
        if self.range.is_some() {
            return Phase::Done;
        }
        self.pass += 1;
        let Some(probe) = self.plan.passes.get(self.pass) else {
            return Phase::Done;
        };
        self.cursor = LevelCursor::new(probe.permutation);
        self.end = Some(EntryKey::start_of(probe.permutation));
        self.buckets.as_mut().map(Buckets::begin_permutation);
        Phase::Read
    }

    /// Reads leaves into the chunk until it is full or the permutation (or range) ends, and forms
    /// groups. `emit_crowded` gets the rows of buckets that do not fit into a chunk.
    ///
    /// If the chunk is empty afterwards, the result states whether the pass continues. True means
    /// that the permutation has more entries: a search that reports crowded buckets may have
    /// removed all entries that it read. False means that the pass has ended. If the chunk is not
    /// empty, the result has no meaning.
    fn read<S: ReadPages>(
        &mut self,
        tree: &Tree<'_, S, N>,
        wanted: &mut impl FnMut(Tid) -> bool,
        emit_crowded: &mut impl FnMut(CrowdedRow<N>),
    ) -> Result<bool> {
        self.chunk.clear();
        let to = self.range.and_then(|range| range.to);
        let is_before = |end: &EntryKey<N>| to.is_none_or(|to| *end < to);
        while self.end.as_ref().is_some_and(is_before)
            && self.chunk.len() + leaf::most_entries::<N>() <= self.capacity
        {
            let (cursor, chunk) = (&mut self.cursor, &mut self.chunk);
            self.end = read_leaf(tree, cursor, chunk, (None, to), wanted)?;
            // The last leaf of a range may also have entries of the next range.
            if let Some(to) = to
                && self.end.is_none_or(|end| end > to)
            {
                self.cursor = LevelCursor::at(to);
                self.end = Some(to);
            }
        }
        self.keep_whole_buckets(emit_crowded);
        let probe = &self.plan.passes[self.pass];
        if self.plan.ignores_hashes {
            self.chunk
                .restore(&self.layout.permutations()[usize::from(probe.permutation)]);
        }
        if !self.chunk.form_groups(probe.bits, probe.threshold > 0)
            || !self.compare.mark(&mut self.chunk, 0)
        {
            tree.store.out_of_memory();
        }
        Ok(self.buckets.is_some() && self.end.is_some())
    }

    /// Fills `other` with entries to the right of the chunk. Reads only leaves with entries that
    /// may be near entries of the chunk's last run. `other` is empty if there are no more such
    /// leaves.
    fn read_on<S: ReadPages>(
        &mut self,
        tree: &Tree<'_, S, N>,
        wanted: &mut impl FnMut(Tid) -> bool,
    ) -> Result<()> {
        self.other.clear();
        let Some(run) = self.chunk.runs().last().cloned() else {
            return Ok(());
        };
        let scope = (self.layout.scope_words() > 0).then_some(run.scope);
        while let Some(end) = self.beyond_end
            && self.other.len() + leaf::most_entries::<N>() <= self.capacity
        {
            let Some(next) = self.next_needed(&end, run.bits, scope) else {
                self.beyond_end = None;
                break;
            };
            if next != end {
                self.beyond = LevelCursor::at(next);
            }
            let (cursor, other) = (&mut self.beyond, &mut self.other);
            self.beyond_end = read_leaf(tree, cursor, other, (scope, None), wanted)?;
        }
        if self.plan.ignores_hashes {
            let permutation = self.plan.passes[self.pass].permutation;
            self.other
                .restore(&self.layout.permutations()[usize::from(permutation)]);
        }
        if !self.other.form_groups(run.bits, false)
            || !self.compare.mark(&mut self.other, self.chunk.len())
        {
            tree.store.out_of_memory();
        }
        Ok(())
    }

    /// Returns the lowest entry key, from `from` on, at which an entry can be near an entry of the
    /// chunk's last run. A run has the chunk's entries in one scope. `scope` is the scope of the
    /// last run, or `None` if keys have no scope. `bits` is the number of bits by which the entries
    /// of the run are grouped. Returns `None` if there is no such entry key, or if `from` is in
    /// another scope.
    fn next_needed(
        &self,
        from: &EntryKey<N>,
        bits: u32,
        scope: Option<u64>,
    ) -> Option<EntryKey<N>> {
        if scope.is_some_and(|scope| scope != from.key[0]) {
            return None;
        }
        let word = self.layout.scope_words();
        let threshold = self.plan.passes[self.pass].threshold;
        let first = prefix(from.key[word], bits);
        let next = (self.cover.iter())
            .filter_map(|&(value, fixed)| {
                let free = bits - fixed;
                let first_value = first.checked_shr(free).unwrap_or(0);
                let next = next_within(value, fixed, threshold.min(fixed), first_value)?;
                Some(match next == first_value {
                    true => first,
                    false => next << free,
                })
            })
            .min()?;
        if next == first {
            return Some(*from);
        }
        let mut key = [0; N];
        key[0] = scope.unwrap_or(0);
        key[word] = next << (64 - bits);
        Some(EntryKey::before_key(from.permutation, key))
    }

    /// Sets the field `cover` to ranges that together contain all prefixes from the first to the
    /// last prefix of the chunk's last run. Each range consists of all prefixes that start with the
    /// same bits. The number of ranges is as small as possible.
    fn cover(&mut self) {
        self.cover.clear();
        let Some(run) = self.chunk.runs().last() else {
            return;
        };
        let mut low = u128::from(self.chunk.prefix(run.groups.start));
        let high = u128::from(self.chunk.prefix(run.groups.end - 1));
        while low <= high {
            let mut free = low.trailing_zeros().min(run.bits);
            while low + (1 << free) - 1 > high {
                free -= 1;
            }
            self.cover.push(((low >> free) as u64, run.bits - free));
            low += 1 << free;
        }
    }
}

/// Reads the cursor's next leaf and appends its entries to `chunk`. Skips entries outside `scope`,
/// entries from `to` on, and entries for whose address `wanted` returns false. `scope` and `to` are
/// `None` for no limit. Returns the leaf's high key, or `None` at the end of the permutation.
fn read_leaf<S: ReadPages, const N: usize>(
    tree: &Tree<'_, S, N>,
    cursor: &mut LevelCursor<N>,
    chunk: &mut SortedChunk<N>,
    (scope, to): (Option<u64>, Option<EntryKey<N>>),
    wanted: &mut impl FnMut(Tid) -> bool,
) -> Result<Option<EntryKey<N>>> {
    if !chunk.reserve() {
        tree.store.out_of_memory();
    }
    tree.store.check_interrupts();
    let Some((leaf, from)) = cursor.step(tree, |block| tree.store.read(block))? else {
        return Ok(None);
    };
    chunk.copy(&leaf, (from, to), scope);
    let end = (leaf.high_key()).filter(|high| high.permutation == leaf.permutation());
    // `wanted` may read other pages, so the leaf is unlocked before it is called.
    drop(leaf);
    chunk.accept(wanted);
    Ok(end)
}
