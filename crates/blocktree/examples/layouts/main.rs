//! Measures searches with all block layouts up to twice the size of the default one.
//!
//! ```sh
//! cargo run --profile bench -p neardup-blocktree --example layouts -- \
//!     measure 1 1000000 >> grid.tsv
//! cargo run --profile bench -p neardup-blocktree --example layouts -- judge grid.tsv
//! ```
//!
//! `measure WORDS ROWS [LAYOUT...]` writes a line for each layout and radius. `judge` compares the
//! layout that `WITH (radius = r)` chooses with the fastest and with the default one. Each layout
//! takes turns with the default one, in processor time of one thread, so that other work on the
//! machine disturbs both alike.
mod judge;
mod store;

use neardup_blocktree::block_layout::{BlockLayout, default_radius, max_radius};
use neardup_blocktree::build::{Fill, build};
use neardup_blocktree::key::{Key, Tid};
use neardup_blocktree::meta::Meta;
use neardup_blocktree::plan::Plan;
use neardup_blocktree::scan::Scan;
use neardup_blocktree::sort::ExternalSort;
use neardup_blocktree::tree::Tree;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::hint::black_box;
use std::rc::Rc;
use store::Store;

/// Queries, which searches take in turn.
const QUERIES: usize = 512;
/// Rows near each query.
const NEAR_ROWS: usize = 3;
/// Turns of each layout at a radius. The median of their ratios counts.
const TURNS: usize = 15;
/// Processor time of a turn, in nanoseconds.
const MIN_TURN: u64 = 500_000;
/// Memory of the sort of a build: no limit.
const MEMORY: usize = 1 << 40;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["measure", words, rows, ref layouts @ ..] => {
            let rows = rows.parse().expect("a number of rows");
            match words {
                "1" => measure::<1>(rows, layouts),
                "2" => measure::<2>(rows, layouts),
                "4" => measure::<4>(rows, layouts),
                _ => panic!("fingerprints have 1, 2 or 4 words"),
            }
        }
        ["judge", ref files @ ..] => judge::print(files),
        _ => panic!("usage: layouts measure WORDS ROWS [RADIUS/BLOCKS ...]"),
    }
}

/// The greatest radius that is measured.
const fn max_measured_radius(words: usize) -> u32 {
    match words {
        1 => 16,
        _ => 31,
    }
}

/// The layout by which others are judged: one permutation for each block, and half of the default
/// radius guaranteed.
fn default_layout<const N: usize>() -> BlockLayout<N> {
    let radius = default_radius(64 * N as u32) / 2;
    BlockLayout::new(radius, radius + 1).expect("a layout")
}

/// All layouts with at most twice as many permutations as the default one.
fn layouts<const N: usize>() -> Vec<BlockLayout<N>> {
    let most = 2 * default_layout::<N>().permutations().len();
    let radii = 0..=max_radius(64 * N as u32);
    let pairs = radii.flat_map(|radius| {
        let blocks = if radius == 0 {
            1..=1
        } else {
            radius + 1..=most as u32
        };
        blocks.map(move |blocks| (radius, blocks))
    });
    pairs
        .filter_map(|(radius, blocks)| BlockLayout::new(radius, blocks).ok())
        .filter(|layout: &BlockLayout<N>| layout.permutations().len() <= most)
        .collect()
}

/// Index in memory.
struct Index<const N: usize> {
    store: Store,
    meta: Meta,
    layout: Rc<BlockLayout<N>>,
}

impl<const N: usize> Index<N> {
    fn new(layout: BlockLayout<N>, rows: &[Key<N>]) -> Self {
        let mut store = Store::default();
        let (mut with, mut without) = (ExternalSort::new(MEMORY), ExternalSort::new(MEMORY));
        for (i, key) in rows.iter().enumerate() {
            let tid = Tid {
                block: i as u32 / 100,
                offset: 1 + i as u16 % 100,
            };
            with.push(&mut store, *key, tid);
        }
        let meta = build(
            &mut store,
            &layout,
            layout.radius(),
            &mut with,
            &mut without,
            Fill::default(),
        );
        Index {
            store,
            meta,
            layout: Rc::new(layout),
        }
    }

    /// Runs searches and returns the processor time of one, in nanoseconds.
    fn time(&self, plan: &Rc<Plan<N>>, queries: &[Key<N>], from: usize, count: usize) -> f64 {
        let tree = Tree::new(&self.store, self.meta.root);
        let mut scan = Scan::new(self.layout.clone(), plan.clone(), queries[0]);
        let mut matches = Vec::new();
        let start = processor_time();
        for i in 0..count {
            scan.restart(plan.clone(), queries[(from + i) % queries.len()]);
            while scan.step(&tree, &mut matches).expect("a sound tree") {}
            black_box(&matches);
            matches.clear();
        }
        (processor_time() - start) as f64 / count as f64
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Processor time of this thread, in nanoseconds.
fn processor_time() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call fills in a structure of this function.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(result, 0);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Uniform rows, and some near each query.
fn random_rows<const N: usize>(rows: usize, queries: &[Key<N>], rng: &mut StdRng) -> Vec<Key<N>> {
    let near = queries.iter().flat_map(|query| [*query; NEAR_ROWS]);
    let mut all: Vec<Key<N>> = near.collect();
    for key in &mut all {
        for _ in 0..rng.random_range(0..=max_measured_radius(N)) {
            let bit = rng.random_range(0..64 * N);
            key[bit / 64] ^= 1 << (bit % 64);
        }
    }
    all.truncate(rows);
    while all.len() < rows {
        all.push(rng.random());
    }
    all
}

fn measure<const N: usize>(rows: usize, named: &[&str]) {
    let mut rng = StdRng::seed_from_u64(29);
    let queries: Vec<Key<N>> = (0..QUERIES).map(|_| rng.random()).collect();
    let keys = random_rows(rows, &queries, &mut rng);
    let default = Index::new(default_layout::<N>(), &keys);
    for layout in layouts::<N>() {
        let name = format!("{}/{}", layout.radius(), layout.blocks().len());
        if named.is_empty() || named.contains(&name.as_str()) {
            let index = Index::new(layout, &keys);
            for radius in 0..=max_measured_radius(N) {
                compare(&default, &index, radius, &queries, rows);
            }
        }
    }
}

/// Writes the time of searches with an index, and its ratio to the default layout's.
fn compare<const N: usize>(
    default: &Index<N>,
    index: &Index<N>,
    radius: u32,
    queries: &[Key<N>],
    rows: usize,
) {
    let plan = |index: &Index<N>| Rc::new(Plan::new(&index.layout, radius, rows as f64));
    let plans = [plan(default), plan(index)];
    let indexes = [default, index];
    let trial = [0, 1].map(|which| indexes[which].time(&plans[which], queries, 0, 2));
    let fastest = trial[0].min(trial[1]);
    let count = (MIN_TURN as f64 / fastest)
        .ceil()
        .clamp(2.0, QUERIES as f64) as usize;
    let (mut ratios, mut times) = (Vec::new(), Vec::new());
    for turn in 0..TURNS {
        let from = turn * QUERIES / TURNS;
        let [a, b] = [0, 1].map(|which| indexes[which].time(&plans[which], queries, from, count));
        ratios.push(b / a);
        times.push(b);
    }
    let layout = &index.layout;
    let plan = &plans[1];
    println!(
        "{N}\t{rows}\t{radius}\t{}\t{}\t{}\t{}\t{:.1}\t{:.1}\t{:.1}\t{:.1}\t{:.0}\t{:.4}",
        layout.radius(),
        layout.blocks().len(),
        layout.permutations().len(),
        plan.is_whole(),
        plan.leaves,
        plan.runs,
        plan.runs_by_inner_page,
        plan.cost(),
        median(times),
        median(ratios),
    );
}
