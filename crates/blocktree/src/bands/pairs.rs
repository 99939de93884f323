//! Pairs of rows whose signatures may be near each other, band by band, without those of crowded
//! buckets.
//!
//! Each band's table is read once, from left to right, a part at a time. Rows with one hash stand
//! together; each two of them whose sketches do not rule it out are a candidate. A pair comes once
//! for each band that it shares: the number of these tells more about it ([`Bands`]), so the
//! caller counts them. A search beyond what the bands guarantee compares the sketches of all rows
//! instead. [`super::CandidateScan`] gives all pairs.

use super::{BandPairPlan, HASH_BITS, Sketch, WORDS};
use crate::key::{Key, Tid};
use crate::leaf;
use crate::level_cursor::LevelCursor;
use crate::page::Result;
use crate::store::PageStore;
use crate::tree::Tree;

/// Comparisons between two checks for interrupts.
pub(super) const PAUSE: usize = 1 << 18;

/// Result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Candidate {
    /// Two rows, the lower address first, and a number of mismatches that they have at least if
    /// they share no band; each shared band takes one away.
    Pair([Tid; 2], u32),
    /// A row of a crowded bucket, by its number, with its sketch. Any two rows of one bucket may be
    /// a pair, whether or not they come as one.
    Crowded(u32, Tid, Sketch),
    /// A number of comparisons that have been done since the last such result.
    Compared(u64),
}

/// An entry in memory: its key, and its row packed.
pub(super) type BandEntry<const N: usize> = (Key<N>, u64);

/// Search for candidates in progress. Between its steps it holds no page.
#[derive(Debug)]
pub struct BandPairs<const N: usize> {
    plan: BandPairPlan,
    table: u16,
    cursor: LevelCursor<N>,
    /// Entries that have been read and not yet been compared with all others, in order.
    entries: Vec<BandEntry<N>>,
    capacity: usize,
    compared: usize,
    /// The pairs in a bucket beyond which a row is crowded.
    most: u32,
    /// Crowded buckets so far.
    buckets: u32,
    /// The run that the last of them is of, while more of it may come.
    open_run: Option<Key<N>>,
}

impl<const N: usize> BandPairs<N> {
    /// A search for pairs that keeps as many entries as fit into `memory` bytes, or as two leaves
    /// hold. It leaves out pairs of two rows each of which is in more than `most` pairs of the same
    /// bucket: they come as rows of a crowded bucket. So it gives a multiple of the rows, however
    /// many are near each other. Where pairs do not come by bands, a scope is one bucket.
    pub fn thinned(plan: BandPairPlan, memory: usize, most: u32) -> Self {
        BandPairs {
            table: 0,
            cursor: LevelCursor::new(0),
            entries: Vec::new(),
            capacity: (memory / size_of::<BandEntry<N>>()).max(2 * leaf::most_entries::<N>()),
            compared: 0,
            most,
            buckets: 0,
            open_run: None,
            plan,
        }
    }

    /// Crowded buckets so far.
    pub fn buckets(&self) -> u32 {
        self.buckets
    }

    /// Number of tables that it has read.
    pub fn table(&self) -> u16 {
        self.table
    }

    /// Reads another part and gives its candidates. False: there is nothing left. Rows that are not
    /// `wanted` are left out.
    pub fn step<S: PageStore>(
        &mut self,
        tree: &Tree<'_, S, N>,
        wanted: &mut impl FnMut(Tid) -> bool,
        emit: &mut impl FnMut(Candidate),
    ) -> Result<bool> {
        if usize::from(self.table) >= self.plan.tables() {
            return Ok(false);
        }
        let mut entries = core::mem::take(&mut self.entries);
        let mut ended = false;
        while !ended && entries.len() + leaf::most_entries::<N>() <= self.capacity {
            ended = !read_leaf(tree, &mut self.cursor, &mut entries, wanted)?;
        }
        // The last run may go on.
        let whole = match ended {
            true => entries.len(),
            false => self.start_of_last_run(&entries),
        };
        if whole == 0 && !ended {
            // It takes all the memory.
            self.crowd(&entries, emit);
            entries.clear();
        }
        let mut rest = &entries[..whole];
        while let Some(&(first, _)) = rest.first() {
            let run = rest.partition_point(|(key, _)| self.run(key) <= self.run(&first));
            self.within(&rest[..run], tree.store, emit);
            rest = &rest[run..];
        }
        entries.drain(..whole);
        self.entries = entries;
        if ended {
            self.open_run = None;
            self.table += 1;
            self.cursor = LevelCursor::new(self.table);
        }
        Ok(true)
    }

    fn run(&self, key: &Key<N>) -> Key<N> {
        run_of(key, self.plan.by_bands)
    }

    fn start_of_last_run(&self, entries: &[BandEntry<N>]) -> usize {
        match entries.last() {
            Some((last, _)) => entries.partition_point(|(key, _)| self.run(key) < self.run(last)),
            None => 0,
        }
    }

    /// Compares the entries of a run, or of a part of it, with each other.
    fn within<S: PageStore>(
        &mut self,
        run: &[BandEntry<N>],
        store: &S,
        emit: &mut impl FnMut(Candidate),
    ) {
        if self.open_run == Some(self.run(&run[0].0)) {
            self.crowd(run, emit);
        } else if run.len() > self.most as usize + 1 {
            self.thin(run, self.most, store, emit);
        } else {
            for (i, entry) in run.iter().enumerate() {
                self.compare(entry, &run[i + 1..], store, emit);
            }
        }
    }

    /// Gives a part of a run that is too large as rows of one crowded bucket.
    fn crowd(&mut self, part: &[BandEntry<N>], emit: &mut impl FnMut(Candidate)) {
        let run = self.run(&part[0].0);
        if self.open_run != Some(run) {
            self.open_run = Some(run);
            self.buckets += 1;
        }
        for (key, row) in part {
            let row = Tid::from_packed(*row);
            emit(Candidate::Crowded(self.buckets - 1, row, masked(key)));
        }
    }

    /// Compares the entries of a run with each other, but for two that both are in more than `most`
    /// pairs.
    fn thin<S: PageStore>(
        &mut self,
        run: &[BandEntry<N>],
        most: u32,
        store: &S,
        emit: &mut impl FnMut(Candidate),
    ) {
        let mut marks = with_room::<u32>(store, run.len());
        marks.resize(run.len(), 0);
        // What may still be in pairs with entries that are in enough.
        let mut open = with_room::<usize>(store, run.len());
        open.extend(0..run.len());
        let mut others = with_room::<usize>(store, run.len());
        for (i, (key, row)) in run.iter().enumerate() {
            if marks[i] > most {
                open.retain(|&other| other > i && marks[other] <= most);
                others.clone_from(&open);
            } else {
                others.clear();
                others.extend(i + 1..run.len());
            }
            self.check_interrupts(others.len() + 1, store, emit);
            let own = sketch(key);
            for &other in &others {
                let (other_key, other_row) = &run[other];
                let (bits, is_wanted) = self.differing(&own, &sketch(other_key));
                if !is_wanted || row == other_row || marks[i] > most && marks[other] > most {
                    continue;
                }
                marks[i] += 1;
                marks[other] += 1;
                emit(self.pair([(key, row), (other_key, other_row)], bits));
            }
        }
        let crowded = (run.iter().zip(marks)).filter(|(_, mark)| *mark > most);
        let mut is_bucket = false;
        for ((key, row), _) in crowded {
            is_bucket = true;
            let row = Tid::from_packed(*row);
            emit(Candidate::Crowded(self.buckets, row, masked(key)));
        }
        self.buckets += u32::from(is_bucket);
    }

    /// Lets the store pause from time to time.
    fn check_interrupts<S: PageStore>(
        &mut self,
        comparisons: usize,
        store: &S,
        emit: &mut impl FnMut(Candidate),
    ) {
        self.compared += comparisons;
        if self.compared >= PAUSE {
            emit(Candidate::Compared(self.compared as u64));
            self.compared = 0;
            store.check_interrupts();
        }
    }

    /// In how many bits two sketches differ, and whether that is few enough.
    #[inline]
    fn differing(&self, own: &Sketch, other: &Sketch) -> (u32, bool) {
        let bits = sketch_difference(own, other);
        (bits, bits <= self.plan.mismatches)
    }

    fn pair(&self, [(key, row), (other, other_row)]: [(&Key<N>, &u64); 2], bits: u32) -> Candidate {
        let least = match self.plan.by_bands {
            true => {
                let (bits, alike) = self.plan.bands.difference(&sketch(key), &sketch(other));
                bits + alike
            }
            false => bits,
        };
        let rows = [row.min(other_row), row.max(other_row)];
        Candidate::Pair(rows.map(|row| Tid::from_packed(*row)), least)
    }

    fn compare<S: PageStore>(
        &mut self,
        (key, row): &BandEntry<N>,
        others: &[BandEntry<N>],
        store: &S,
        emit: &mut impl FnMut(Candidate),
    ) {
        self.check_interrupts(others.len(), store, emit);
        let own = sketch(key);
        for (other, other_row) in others {
            let (bits, is_wanted) = self.differing(&own, &sketch(other));
            if is_wanted && row != other_row {
                emit(self.pair([(key, row), (other, other_row)], bits));
            }
        }
    }
}

/// Prefix that entries share which are compared: the scope and the hash, or the scope.
pub(super) fn run_of<const N: usize>(key: &Key<N>, by_bands: bool) -> Key<N> {
    let mut run = [0; N];
    run[..N - WORDS].copy_from_slice(&key[..N - WORDS]);
    if by_bands {
        run[N - WORDS] = key[N - WORDS] & !(u64::MAX >> HASH_BITS);
    }
    run
}

/// Number of bits in which the sketches of two keys, below their hashes, differ: signatures have at
/// least as many mismatches.
#[inline]
pub fn sketch_difference(own: &Sketch, other: &Sketch) -> u32 {
    let low = u64::MAX >> HASH_BITS;
    ((own[0] ^ other[0]) & low).count_ones() + (own[1] ^ other[1]).count_ones()
}

/// An empty vector that holds `count` values without another allocation.
fn with_room<T>(store: &impl PageStore, count: usize) -> Vec<T> {
    let mut values = Vec::new();
    if values.try_reserve_exact(count).is_err() {
        store.out_of_memory();
    }
    values
}

/// The sketch in a key, below its hash.
pub(super) fn sketch<const N: usize>(key: &Key<N>) -> Sketch {
    [key[N - WORDS], key[N - WORDS + 1]]
}

/// Appends the wanted entries of a cursor's next leaf, in order. False: it was the table's last.
pub(super) fn read_leaf<S: PageStore, const N: usize>(
    tree: &Tree<'_, S, N>,
    cursor: &mut LevelCursor<N>,
    entries: &mut Vec<BandEntry<N>>,
    wanted: &mut impl FnMut(Tid) -> bool,
) -> Result<bool> {
    let mut found: Vec<BandEntry<N>> = Vec::with_capacity(leaf::most_entries::<N>());
    if entries.try_reserve(leaf::most_entries::<N>()).is_err() {
        tree.store.out_of_memory();
    }
    tree.store.check_interrupts();
    let Some((leaf, from)) = cursor.step(tree, |block| tree.store.read(block))? else {
        return Ok(false);
    };
    found.extend((leaf.entries_from(from)).map(|entry| (entry.key, entry.tid.packed())));
    let more = (leaf.high_key()).is_some_and(|high| high.table == leaf.table());
    // Nothing is asked of the caller, who may read other pages, while the leaf is locked.
    drop(leaf);
    found.sort_unstable();
    entries.extend((found.into_iter()).filter(|&(_, row)| wanted(Tid::from_packed(row))));
    Ok(more)
}

/// The sketch in a key alone.
fn masked<const N: usize>(key: &Key<N>) -> Sketch {
    let [high, low] = sketch(key);
    [high & (u64::MAX >> HASH_BITS), low]
}
