//! `neardup_distance_histogram`: how many pairs there are at each distance, with some to read.
use std::collections::BinaryHeap;

use neardup_blocktree::filter;
use neardup_blocktree::key::{Key, Tid, distance};
use neardup_blocktree::pairs::InOrder;
use pgrx::{PgSqlErrorCode, pg_sys};

use super::column::Column;
use super::pairs::{PairSet, distance_argument};
use super::scope::{ScopeColumns, Values};
use super::source::{Distances, find_index};
use crate::am::bands;
use crate::am::index::{Index, name, words_of};
use crate::am::keys::with_words;
use crate::pg::errors::UserError;
use crate::pg::fmgr::{Call, export};
use crate::pg::order_by::tid_array;
use crate::pg::relation::LockedIndex;
use crate::pg::srf::SetReturning;
use crate::storage::heap_fetch::{HeapFetch, note_read};

export! {
    guarded "neardup_distance_histogram" => histogram;
}

/// Pairs shown of each distance.
const SHOWN: usize = 3;
/// Characters of the longest bar.
const LONGEST_BAR: f64 = 40.0;
/// Bits of the widest fingerprint.
const WIDEST: u32 = 256;
/// The most rows of a sample: each is compared with every row of the table.
const MOST_ROWS: i32 = 1_000_000;

/// `neardup_distance_histogram(relation, max_distance, sample_rows, column_name)`.
fn histogram(call: &mut Call) -> pg_sys::Datum {
    call.return_set(|call| {
        for (n, name) in ["relation", "max_distance"].iter().enumerate() {
            if call.is_null(n) {
                UserError::null_not_allowed(format!("{name} must not be NULL")).raise();
            }
        }
        let relation = pg_sys::Oid::from(call.arg(0).value() as u32);
        let most = distance_argument(call.arg(1).value() as i32).min(WIDEST);
        let sample = (!call.is_null(2)).then(|| call.arg(2).value() as i32);
        let column = (!call.is_null(3)).then(|| call.arg(3));
        if sample.is_some_and(|rows| !(1..=MOST_ROWS).contains(&rows)) {
            UserError::invalid_parameter(format!(
                "sample_rows must be between 1 and {MOST_ROWS}, or NULL"
            ))
            .raise();
        }
        let sample = sample.map(|rows| rows as usize);
        // SAFETY: a catalogue look-up.
        let kind = unsafe { pg_sys::get_rel_relkind(relation) } as u8;
        let counts = match (kind, sample) {
            (pg_sys::RELKIND_RELATION | pg_sys::RELKIND_MATVIEW, Some(rows)) => {
                Column::open(call.function_oid(), relation, column).sample(most, rows)
            }
            (_, sample) => {
                let function = call.function_oid();
                let index = find_index(function, relation, column, Distances::Bits);
                match sample {
                    Some(rows) => sample_index(index, most, rows),
                    None => count_all(index, most),
                }
            }
        };
        Rings {
            lines: counts.lines().into_iter(),
        }
    })
}

/// Mixes a number (the finaliser of splitmix64), so that what is lowest is any.
pub fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The lowest of things that were mixed: a random choice of them, the same every time.
pub struct BottomKSample<T> {
    heap: BinaryHeap<(u64, T)>,
    most: usize,
}

impl<T: Ord> BottomKSample<T> {
    pub fn new(most: usize) -> Self {
        BottomKSample {
            heap: BinaryHeap::new(),
            most,
        }
    }

    /// Whether something mixed to this would be among them.
    pub fn wants(&self, mixed: u64) -> bool {
        self.heap.len() < self.most || self.heap.peek().is_some_and(|top| mixed < top.0)
    }

    pub fn offer(&mut self, mixed: u64, thing: T) {
        if self.wants(mixed) {
            self.heap.push((mixed, thing));
            if self.heap.len() > self.most {
                self.heap.pop();
            }
        }
    }

    /// In a random order.
    pub fn into_vec(self) -> Vec<T> {
        self.heap
            .into_sorted_vec()
            .into_iter()
            .map(|(_, thing)| thing)
            .collect()
    }
}

/// Pairs by distance.
pub struct Counts {
    /// How many pairs stand for one that is counted.
    pub weight: f64,
    rings: Vec<(u64, BottomKSample<(Tid, Tid)>)>,
}

impl Counts {
    pub fn new(most: u32) -> Self {
        Counts {
            weight: 1.0,
            rings: (0..=most).map(|_| (0, BottomKSample::new(SHOWN))).collect(),
        }
    }

    /// Counts a pair within the greatest distance.
    #[inline]
    pub fn add(&mut self, a: Tid, b: Tid, distance: u32) {
        let (count, shown) = &mut self.rings[distance as usize];
        *count += 1;
        let (a, b) = (a.min(b), a.max(b));
        let mixed = mix(mix(a.packed()).wrapping_add(b.packed()));
        if shown.wants(mixed) && !shown.heap.iter().any(|(_, pair)| *pair == (a, b)) {
            shown.offer(mixed, (a, b));
        }
    }

    fn lines(self) -> Vec<Line> {
        let pairs = |count: u64| (count as f64 * self.weight).round();
        let most = self
            .rings
            .iter()
            .map(|(count, _)| pairs(*count))
            .fold(1.0, f64::max);
        (0..)
            .zip(self.rings)
            .map(|(distance, (count, shown))| {
                // The numbers grow from one ring to the next as powers do.
                let share = (1.0 + pairs(count)).ln() / (1.0 + most).ln();
                Line {
                    distance,
                    pairs: pairs(count) as i64,
                    bar: "#".repeat((LONGEST_BAR * share).round() as usize),
                    shown: shown.into_vec(),
                }
            })
            .collect()
    }
}

/// A row of the result.
struct Line {
    distance: u32,
    pairs: i64,
    bar: String,
    shown: Vec<(Tid, Tid)>,
}

struct Rings {
    lines: std::vec::IntoIter<Line>,
}

impl SetReturning for Rings {
    fn next(&mut self, columns: &mut Vec<Option<pg_sys::Datum>>) -> bool {
        let Some(line) = self.lines.next() else {
            return false;
        };
        let (a, b): (Vec<Tid>, Vec<Tid>) = line.shown.into_iter().unzip();
        columns.push(Some(pg_sys::Datum::from(line.distance as i32)));
        columns.push(Some(pg_sys::Datum::from(line.pairs)));
        columns.push(Some(crate::pg::varlena::build(&[line.bar.as_bytes()])));
        columns.push(Some(tid_array(&a)));
        columns.push(Some(tid_array(&b)));
        true
    }
}

/// Counts all pairs of an index.
fn count_all(index: pg_sys::Oid, most: u32) -> Counts {
    let mut counts = Counts::new(most);
    let mut pairs = PairSet::new(index, most);
    pairs.for_each(|[a, b], distance| counts.add(a, b, distance));
    counts
}

/// Compares a sample of an index's rows with all of them.
fn sample_index(index: pg_sys::Oid, most: u32, rows: usize) -> Counts {
    let relations = LockedIndex::open_for_reading(index);
    // SAFETY: the relations are open.
    unsafe {
        note_read(relations.index());
        refuse_signatures(relations.index());
        with_words!(words_of(relations.index()), N => {
            let index = Index::<N>::open(relations.index());
            sample_of::<N>(&index, &relations, most, rows)
        })
    }
}

/// # Safety
/// The relation is an open index of this access method.
unsafe fn refuse_signatures(index: pg_sys::Relation) {
    // SAFETY: the caller's promise.
    unsafe {
        if bands::is_on_signatures(index) {
            let name = name(index);
            UserError::new(
                PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
                format!("index {name} is not one on fingerprints"),
            )
            .detail("Signatures have no distances in whole bits.")
            .hint("Count pairs: SELECT round(distance::numeric, 2), count(*) FROM neardup_pairs(..., 0.2) GROUP BY 1.")
            .raise();
        }
    }
}

/// # Safety
/// The relations are open, and the index is theirs.
unsafe fn sample_of<const N: usize>(
    index: &Index<N>,
    relations: &LockedIndex,
    most: u32,
    rows: usize,
) -> Counts {
    // SAFETY: the caller's promise.
    let mut seen = unsafe { Seen::new(relations, index) };
    let tree = index.tree();
    let mut chosen_rows = BottomKSample::new(rows);
    let mut all = 0u64;
    let mut walk = InOrder::new(index.design.clone());
    while index.or_corrupt(walk.step(&tree, &mut |key, tid| {
        all += 1;
        chosen_rows.offer(mix(tid.packed()), (key, tid));
    })) {}
    let chosen: Vec<(Key<N>, Tid)> = chosen_rows.into_vec();
    let asked = chosen.len();
    // SAFETY: the caller's promise.
    let sample: Vec<(Key<N>, Tid, SeenRow)> = (chosen.into_iter())
        .filter_map(|(key, entry)| Some((key, entry, unsafe { seen.find(entry)? })))
        .collect();
    seen.keep();
    let mut counts = Counts::new(most);
    if sample.is_empty() {
        return counts;
    }
    // Rows that the snapshot sees, by the share of them in the sample. Each pair has two ends.
    let visible = all as f64 * sample.len() as f64 / asked as f64;
    counts.weight = visible / sample.len() as f64 / 2.0;
    let skipped = index.layout.scope_words();
    let mut walk = InOrder::new(index.design.clone());
    let (mut keys, mut tids, mut found) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        keys.clear();
        tids.clear();
        let more = index.or_corrupt(walk.step(&tree, &mut |key, tid| {
            keys.push(key);
            tids.push(tid);
        }));
        let mut known: Vec<Option<Option<SeenRow>>> = vec![None; keys.len()];
        seen.forget();
        for (key, entry, row) in &sample {
            found.clear();
            filter::within_keys(&keys, key, skipped, most, &mut found);
            for &i in &found {
                let i = usize::from(i);
                if tids[i] == *entry || keys[i][..skipped] != key[..skipped] {
                    continue;
                }
                // SAFETY: the caller's promise.
                let other = known[i].get_or_insert_with(|| unsafe { seen.find(tids[i]) });
                if let Some(other) = other
                    && seen.in_one_scope(row, other)
                {
                    counts.add(row.row, other.row, distance(key, &keys[i], skipped));
                }
            }
        }
        pgrx::check_for_interrupts!();
        if !more {
            return counts;
        }
    }
}

/// A row that can make pairs: the snapshot sees it, and no column of its scope is NULL.
#[derive(Clone)]
struct SeenRow {
    row: Tid,
    /// Its scope, if the index has one.
    scope: Values,
}

/// Looks up rows with their scopes.
struct Seen {
    rows: HeapFetch,
    scope: Option<ScopeColumns>,
    /// Where the values of rows that are kept live, and those of others.
    contexts: [pg_sys::MemoryContext; 2],
    keeping: bool,
}

impl Seen {
    /// The first rows found are kept until the end.
    ///
    /// # Safety
    /// The relations are open as long as the result lives, and the index is theirs.
    unsafe fn new<const N: usize>(relations: &LockedIndex, index: &Index<N>) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            Seen {
                rows: HeapFetch::new(relations.table()),
                scope: ScopeColumns::of(relations.index(), &index.layout),
                contexts: [c"neardup scopes", c"neardup scopes of a leaf"]
                    .map(|name| crate::pg::compat::small_context(name)),
                keeping: true,
            }
        }
    }

    /// Rows found from here on go with [`Seen::forget`].
    fn keep(&mut self) {
        self.keeping = false;
    }

    /// Lets go of the rows found since [`Seen::keep`].
    fn forget(&mut self) {
        // SAFETY: the context is ours.
        unsafe { pg_sys::MemoryContextReset(self.contexts[1]) }
    }

    /// # Safety
    /// As for [`Seen::new`].
    unsafe fn find(&mut self, entry: Tid) -> Option<SeenRow> {
        let row = self.rows.find(entry)?;
        let mut values = Values::new();
        if let Some(scope) = &self.scope {
            // SAFETY: the caller's promise.
            unsafe {
                let context = self.contexts[usize::from(!self.keeping)];
                let outer = pg_sys::MemoryContextSwitchTo(context);
                let taken = scope.values(self.rows.slot());
                pg_sys::MemoryContextSwitchTo(outer);
                values = taken?;
            }
        }
        Some(SeenRow { row, scope: values })
    }

    fn in_one_scope(&self, a: &SeenRow, b: &SeenRow) -> bool {
        // SAFETY: the values of both were taken here and are kept.
        (self.scope.as_ref()).is_none_or(|scope| unsafe { scope.equal(&a.scope, &b.scope) })
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            for context in self.contexts {
                // SAFETY: made by us.
                unsafe { pg_sys::MemoryContextDelete(context) }
            }
        }
    }
}

/// 42703 and the like: no column to take fingerprints from.
pub fn no_column(code: PgSqlErrorCode, message: String) -> ! {
    UserError::new(code, message)
        .hint("Name a column of type fingerprint, fingerprint128, fingerprint256 or bigint as column_name.")
        .raise()
}
