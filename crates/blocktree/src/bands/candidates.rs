//! All pairs of rows whose signatures may be near each other, some at a time.
//!
//! Up to what the bands guarantee, the rows with one hash in a band's table are compared with each
//! other, in each band: a pair comes once for each band that it shares. Beyond, all rows of a scope
//! are compared in the first table, and a pair comes once. A part of a table that fits into memory
//! is compared with itself, then with what follows it (a block nested loop).

use super::BandPairPlan;
use super::pairs::{BandEntry, PAUSE, read_leaf, run_of, sketch, sketch_difference};
use crate::key::{Key, Tid};
use crate::leaf;
use crate::level_cursor::LevelCursor;
use crate::page::Result;
use crate::store::PageStore;
use crate::tree::Tree;

/// Comparisons after which a step ends: some tenths of a second.
const STEP: u64 = 1 << 26;

/// Next step of a search.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Read the next part.
    Read,
    /// Compare this entry of the part with those behind it.
    Within(usize),
    /// Read another leaf to the right of the part.
    ReadOn,
    /// Compare this entry to the right of the part with the part.
    Beyond(usize),
    Done,
}

/// Two rows that may be near each other.
#[derive(Clone, Copy, Debug)]
pub struct CandidatePair {
    /// Their addresses, the lower first.
    pub rows: [Tid; 2],
    /// Mismatches that they have at least. If pairs come by bands, each band that the two share
    /// takes one away.
    pub least: u32,
    /// The table in which they were found.
    pub table: u16,
}

/// Search for candidates in progress, which gives some of them at a time. Between its steps it
/// holds no page.
#[derive(Debug)]
pub struct CandidateScan<const N: usize> {
    plan: BandPairPlan,
    table: u16,
    phase: Phase,
    cursor: LevelCursor<N>,
    /// The table ends with the part.
    ended: bool,
    part: Vec<BandEntry<N>>,
    /// End of the run of entries that are compared with each other.
    run_end: usize,
    /// Most entries of a part.
    capacity: usize,
    /// Cursor to the right of the part, and the leaf that it read last.
    beyond: LevelCursor<N>,
    others: Vec<BandEntry<N>>,
    /// Leaves follow that may go on with the part's last run.
    goes_on: bool,
    compared: usize,
    rows: u64,
    comparisons: u64,
}

impl<const N: usize> CandidateScan<N> {
    /// A search for pairs whose sketches do not rule out the plan's mismatches or fewer. It keeps
    /// as many entries as fit into `memory` bytes, or as two leaves hold.
    pub fn new(plan: BandPairPlan, memory: usize) -> Self {
        CandidateScan {
            plan,
            table: 0,
            phase: Phase::Read,
            cursor: LevelCursor::new(0),
            ended: false,
            part: Vec::new(),
            run_end: 0,
            capacity: (memory / size_of::<BandEntry<N>>()).max(2 * leaf::most_entries::<N>()),
            beyond: LevelCursor::new(0),
            others: Vec::new(),
            goes_on: false,
            compared: 0,
            rows: 0,
            comparisons: 0,
        }
    }

    /// The plan.
    pub fn plan(&self) -> &BandPairPlan {
        &self.plan
    }

    /// Number of rows, of each table, that have been compared with those that follow in the same
    /// part.
    pub fn rows_done(&self) -> u64 {
        self.rows
    }

    /// Number of tables whose candidates have all been given.
    pub fn tables_done(&self) -> u64 {
        u64::from(self.table)
    }

    /// Number of comparisons of two sketches.
    pub fn comparisons_done(&self) -> u64 {
        self.comparisons
    }

    /// Gives more candidates: all that one row has in a part of the table, and those of further
    /// rows until there are `enough`, or until it has compared for some time. False: there are no
    /// more. Rows that are not `wanted` are left out.
    pub fn step<S: PageStore>(
        &mut self,
        tree: &Tree<'_, S, N>,
        enough: usize,
        wanted: &mut impl FnMut(Tid) -> bool,
        emit: &mut impl FnMut(CandidatePair),
    ) -> Result<bool> {
        let mut given = 0;
        let mut give = |pair| {
            given += 1;
            emit(pair);
            given >= enough
        };
        let pause = self.comparisons + STEP;
        loop {
            let is_enough = match self.phase {
                Phase::Done => return Ok(false),
                Phase::Read => {
                    self.read(tree, wanted)?;
                    false
                }
                Phase::ReadOn => {
                    self.read_on(tree, wanted)?;
                    false
                }
                Phase::Within(i) => self.within(i, tree.store, &mut give),
                Phase::Beyond(i) => self.beyond(i, tree.store, &mut give),
            };
            if is_enough || self.comparisons >= pause {
                return Ok(true);
            }
        }
    }

    fn read<S: PageStore>(
        &mut self,
        tree: &Tree<'_, S, N>,
        wanted: &mut impl FnMut(Tid) -> bool,
    ) -> Result<()> {
        self.part.clear();
        self.run_end = 0;
        while !self.ended && self.part.len() + leaf::most_entries::<N>() <= self.capacity {
            self.ended = !read_leaf(tree, &mut self.cursor, &mut self.part, wanted)?;
        }
        (self.beyond, self.goes_on) = (self.cursor, !self.ended);
        if !self.part.is_empty() {
            self.phase = Phase::Within(0);
        } else if self.ended {
            self.table += 1;
            self.cursor = LevelCursor::new(self.table);
            self.ended = false;
            if usize::from(self.table) == self.plan.tables() {
                self.phase = Phase::Done;
            }
        }
        Ok(())
    }

    fn read_on<S: PageStore>(
        &mut self,
        tree: &Tree<'_, S, N>,
        wanted: &mut impl FnMut(Tid) -> bool,
    ) -> Result<()> {
        self.others.clear();
        self.phase = Phase::Read;
        while self.goes_on && self.others.is_empty() {
            self.goes_on = read_leaf(tree, &mut self.beyond, &mut self.others, wanted)?;
            self.phase = Phase::Beyond(0);
        }
        Ok(())
    }

    /// Compares an entry of the part with those behind it. Returns whether enough is given.
    fn within(
        &mut self,
        i: usize,
        store: &impl PageStore,
        give: &mut impl FnMut(CandidatePair) -> bool,
    ) -> bool {
        let Some(own) = self.part.get(i) else {
            self.phase = Phase::ReadOn;
            return false;
        };
        if i >= self.run_end {
            let run = self.run(&own.0);
            let rest = self.part[i..].iter();
            self.run_end = i + rest.take_while(|(key, _)| self.run(key) == run).count();
        }
        let (compared, is_enough) = self.compare(own, &self.part[i + 1..self.run_end], give);
        self.phase = Phase::Within(i + 1);
        self.rows += 1;
        self.check_interrupts(compared, store);
        is_enough
    }

    /// Compares an entry to the right of the part with the part.
    fn beyond(
        &mut self,
        i: usize,
        store: &impl PageStore,
        give: &mut impl FnMut(CandidatePair) -> bool,
    ) -> bool {
        let Some(other) = self.others.get(i) else {
            self.phase = Phase::ReadOn;
            return false;
        };
        let run = self.run(&other.0);
        if self.part.last().map(|(key, _)| self.run(key)) != Some(run) {
            // Another run begins.
            self.phase = Phase::Read;
            return false;
        }
        let start = self.part.partition_point(|(key, _)| self.run(key) < run);
        let (compared, is_enough) = self.compare(other, &self.part[start..], give);
        self.phase = Phase::Beyond(i + 1);
        self.check_interrupts(compared, store);
        is_enough
    }

    /// Compares an entry with others. Returns their number, and whether enough is given.
    fn compare(
        &self,
        (key, row): &BandEntry<N>,
        others: &[BandEntry<N>],
        give: &mut impl FnMut(CandidatePair) -> bool,
    ) -> (usize, bool) {
        let (own, mut is_enough) = (sketch(key), false);
        for (other, other_row) in others {
            let sketch = sketch(other);
            let mut least = sketch_difference(&own, &sketch);
            if least > self.plan.mismatches || row == other_row {
                continue;
            }
            if self.plan.by_bands {
                let (bits, alike) = self.plan.bands.difference(&own, &sketch);
                least = bits + alike;
            }
            let rows = [row.min(other_row), row.max(other_row)];
            is_enough |= give(CandidatePair {
                rows: rows.map(|row| Tid::from_packed(*row)),
                least,
                table: self.table,
            });
        }
        (others.len(), is_enough)
    }

    /// Prefix that entries share which are compared.
    fn run(&self, key: &Key<N>) -> Key<N> {
        run_of(key, self.plan.by_bands)
    }

    /// Lets the store pause from time to time.
    fn check_interrupts(&mut self, comparisons: usize, store: &impl PageStore) {
        self.comparisons += comparisons as u64;
        self.compared += comparisons + 1;
        if self.compared >= PAUSE {
            self.compared = 0;
            store.check_interrupts();
        }
    }
}
