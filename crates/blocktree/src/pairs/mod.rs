//! All pairs of rows within a radius, a permutation at a time.
//!
//! A pass reads a permutation from left to right, once, a chunk at a time: as many leaves as memory
//! is given for. Rows whose leading bits agree, or nearly, are compared with each other (see
//! [`plan`]). A pair that reaches over a chunk's end is found by reading on, from the end, those
//! leaves to the right that hold groups near one of the chunk; at the guaranteed radius that is the
//! rest of its last group, seldom more than one leaf.
//!
//! Each pair is returned once, even if entries are inserted or leaves are split meanwhile. Entries
//! of a permutation have a fixed order, and chunks end where leaves ended when they were read.
//! The lower entry of a pair is in one chunk, the upper entry in the same chunk or to its right. If
//! several passes find a pair, the difference of its keys decides which pass returns it: the first.
//!
//! This is the batch form of Manku, Jain, Das Sarma (WWW 2007, section 4) with the permutation
//! itself as the set of queries.
//!
//! The search serves two kinds of index. In an index on fingerprints a distance of keys is the
//! distance of the rows. In an index on signatures ([`crate::bands`]) it is a lower bound, and each
//! pass reports its pairs, because the number of bands that two rows share raises that bound.

mod buckets;
mod chunk;
mod compare;
mod plan;
mod range;
mod thin;
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
pub use plan::PairPlan;
pub(crate) use plan::PassOverlap;
pub use range::PairRange;
use std::rc::Rc;
pub use thinning::Thinning;

/// Two rows within the radius.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair<const N: usize> {
    /// Their addresses, as the caller sees them, in no particular order.
    pub rows: [Tid; 2],
    /// Their fingerprints, behind their scope.
    pub fingerprints: [Key<N>; 2],
    /// Their distance in bits.
    pub distance: u32,
    /// Position, in the plan, of the pass that found them.
    pub pass: usize,
}

/// Next step of a search.
#[derive(Debug)]
enum Phase {
    /// Read the next chunk.
    Read,
    /// Read more leaves to the right of it.
    ReadOn,
    /// Compare the chunk with itself (true) or with those leaves.
    Compare(JoinCursor, bool),
    /// Nothing: all pairs are given.
    Done,
}

/// Search for all pairs in progress. Between its steps it holds no page.
#[derive(Debug)]
pub struct Pairs<const N: usize> {
    layout: Rc<BlockLayout<N>>,
    plan: PairPlan<N>,
    /// The current pass.
    probe: usize,
    /// The range that is searched, instead of all permutations.
    range: Option<PairRange<N>>,
    phase: Phase,
    /// Cursor that reads the chunk.
    cursor: LevelCursor<N>,
    /// End of the part read so far; `None` at the permutation's end.
    end: Option<EntryKey<N>>,
    chunk: SortedChunk<N>,
    /// Cursor that reads the entries to the right of the chunk, which are compared with it.
    beyond: LevelCursor<N>,
    beyond_end: Option<EntryKey<N>>,
    other: SortedChunk<N>,
    /// The prefixes of the chunk's last run: ranges of them that share their high bits, and the
    /// number of these bits.
    cover: Vec<(u64, u32)>,
    /// Maximum number of entries of a chunk.
    capacity: usize,
    compare: Compare<N>,
    /// State of a search that reports crowded buckets.
    buckets: Option<Buckets>,
    /// Number of entries whose chunk has been compared with itself.
    entries_done: u64,
}

impl<const N: usize> Pairs<N> {
    /// A search that follows a plan within `memory` bytes, or as many as two leaves take.
    /// With `distinct`, returns pairs of fingerprints, each with one row that has it. A pair may
    /// be returned twice.
    pub fn new(
        layout: Rc<BlockLayout<N>>,
        plan: PairPlan<N>,
        memory: usize,
        distinct: bool,
    ) -> Self {
        let scope_words = layout.scope_words();
        let leaves = 2 * leaf::most_entries::<N>();
        Pairs {
            cursor: LevelCursor::new(plan.probes[0].permutation),
            beyond: LevelCursor::new(0),
            end: Some(EntryKey::start_of(0)),
            beyond_end: None,
            probe: 0,
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

    /// Returns the first `pairs` pairs of an entry in each chunk without resolving its row, by the
    /// entry's own address, so that the caller can look up many rows together. Resolves entries in
    /// more pairs: invisible entries can be as many as a row has versions, and their pairs grow
    /// with the square.
    #[must_use]
    pub fn trusting(mut self, pairs: u32) -> Self {
        self.chunk.trust(pairs);
        self.other.trust(pairs);
        self
    }

    /// Search for pairs of distinct fingerprints that skips the pairs named by `thinning`. It may
    /// report a pair twice. The rows of a pair are any rows with its fingerprints.
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

    /// Search for pairs that skips pairs of two rows that both have more than `max_pairs` pairs in
    /// the same bucket. [`Pairs::step_with_crowds`] reports these rows instead. So the number of
    /// results is a multiple of the rows, however many rows are near each other. A bucket consists
    /// of the rows whose leading bits are equal.
    pub fn crowding(
        layout: Rc<BlockLayout<N>>,
        plan: PairPlan<N>,
        memory: usize,
        max_pairs: u32,
    ) -> Self {
        assert!(plan.probes.iter().all(|probe| probe.threshold == 0));
        // A chunk takes all the memory, because it is compared with itself only.
        let mut search = Self::new(layout, plan, 2 * memory, false);
        search.compare.thinning = Some(Thinning::Degree(max_pairs));
        search.buckets = Some(Buckets::new(max_pairs));
        search
    }

    /// Continues with another range of the same plan. Drops the work in progress.
    pub fn begin_range(&mut self, range: PairRange<N>) {
        assert_eq!(
            self.plan.probes[range.pass].permutation,
            range.from.permutation
        );
        self.probe = range.pass;
        self.cursor = LevelCursor::at(range.from);
        self.end = Some(range.from);
        self.range = Some(range);
        self.phase = Phase::Read;
    }

    /// The plan.
    pub fn plan(&self) -> &PairPlan<N> {
        &self.plan
    }

    /// Searches on until it has given some pairs. False: these were the last, if there were any.
    ///
    /// The search skips entries that are not `wanted`. It calls `resolve` for an entry of a pair at
    /// most once. `resolve` returns the address under which the caller knows the row, or `None` if
    /// the row must not be in a pair. A [trusting](Pairs::trusting) search may not call it. A
    /// thinned search never does, so a row that must not connect others must not be `wanted`.
    pub fn step<S: ReadPages>(
        &mut self,
        tree: &Tree<'_, S, N>,
        wanted: &mut impl FnMut(Tid) -> bool,
        resolve: &mut impl FnMut(Tid) -> Option<Tid>,
        emit: &mut impl FnMut(Pair<N>),
    ) -> Result<bool> {
        self.advance(tree, wanted, resolve, emit, &mut |_| ())
    }

    /// Like [`Pairs::step`], for a [crowding](Pairs::crowding) search. `emit_crowded` gets the rows
    /// of crowded buckets. Any two rows of one bucket may be a pair.
    pub fn step_with_crowds<S: ReadPages>(
        &mut self,
        tree: &Tree<'_, S, N>,
        wanted: &mut impl FnMut(Tid) -> bool,
        emit: &mut impl FnMut(Pair<N>),
        emit_crowded: &mut impl FnMut(CrowdedRow<N>),
    ) -> Result<bool> {
        self.advance(tree, wanted, &mut Some, emit, emit_crowded)
    }

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
                        probes: &self.plan.probes[..=self.probe],
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

    /// Number of passes of the plan that are done.
    pub fn passes_done(&self) -> usize {
        self.probe
    }

    /// Number of entries, summed over all passes, that have been compared with the entries of the
    /// same chunk.
    pub fn entries_done(&self) -> u64 {
        self.entries_done
    }

    /// Number of comparisons of two keys.
    pub fn comparisons_done(&self) -> u64 {
        self.compare.comparisons()
    }

    /// Number of crowded buckets that have been reported.
    pub fn crowded_buckets(&self) -> u32 {
        self.buckets.as_ref().map_or(0, Buckets::count)
    }

    fn next_pass(&mut self) -> Phase {
        if self.range.is_some() {
            return Phase::Done;
        }
        self.probe += 1;
        let Some(probe) = self.plan.probes.get(self.probe) else {
            return Phase::Done;
        };
        self.cursor = LevelCursor::new(probe.permutation);
        self.end = Some(EntryKey::start_of(probe.permutation));
        self.buckets.as_mut().map(Buckets::begin_permutation);
        Phase::Read
    }

    /// Reads leaves into the chunk until it is full or the permutation ends. Returns whether the
    /// chunk may be empty although the permutation goes on.
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
            // A leaf may reach over the range's end.
            if let Some(to) = to
                && self.end.is_none_or(|end| end > to)
            {
                self.cursor = LevelCursor::at(to);
                self.end = Some(to);
            }
        }
        self.keep_whole_buckets(emit_crowded);
        let probe = &self.plan.probes[self.probe];
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

    /// Reads leaves, right of the chunk, with entries that may be near its last run's.
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
            let permutation = self.plan.probes[self.probe].permutation;
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

    /// The first position, from one on, where an entry near the chunk's last run may stand.
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
        let threshold = self.plan.probes[self.probe].threshold;
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

    /// Cuts the prefixes of the chunk's last run into parts that share their high bits.
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

/// Appends the wanted entries of a cursor's next leaf, of one scope if one is given, and before an
/// entry key likewise. Returns the leaf's end; `None` if the permutation
/// ends there.
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
    // The caller, who may read other pages, is asked when the leaf is no longer locked.
    drop(leaf);
    chunk.accept(wanted);
    Ok(end)
}

/// All entries of an index's first permutation in the order of their keys there: rows with equal
/// fingerprints follow each other.
#[derive(Debug)]
pub struct KeyOrderScan<const N: usize> {
    layout: Rc<BlockLayout<N>>,
    cursor: LevelCursor<N>,
    leaf: SortedChunk<N>,
}

impl<const N: usize> KeyOrderScan<N> {
    /// Starts at the first range.
    pub fn new(layout: Rc<BlockLayout<N>>) -> Self {
        KeyOrderScan {
            cursor: LevelCursor::new(0),
            leaf: SortedChunk::new(layout.scope_words(), false),
            layout,
        }
    }

    /// Gives the entries of one more leaf, with their fingerprints behind their scope. False: these
    /// were the last.
    pub fn step<S: ReadPages>(
        &mut self,
        tree: &Tree<'_, S, N>,
        emit: &mut impl FnMut(Key<N>, Tid),
    ) -> Result<bool> {
        self.leaf.clear();
        let end = read_leaf(
            tree,
            &mut self.cursor,
            &mut self.leaf,
            (None, None),
            &mut |_| true,
        )?;
        let permutation = &self.layout.permutations()[0];
        for (entry, key) in self.leaf.keys().iter().enumerate() {
            if let Some(row) = self.leaf.row(entry, &mut Some) {
                emit(permutation.restore(key), row);
            }
        }
        Ok(end.is_some())
    }
}
