//! Bands over the store in memory: all rows near a query are found, each once, after builds,
//! inserts and vacuums, and however little memory a search has; and all pairs.
use crate::mem_store::MemStore;
use neardup_blocktree::bands::{
    BandPairPlan, BandQuery, BandScan, Bands, BucketCenters, RowSource, connect_buckets,
    exhaustive_work, sketch,
};
use neardup_blocktree::block_layout::BlockLayout;
use neardup_blocktree::build::{Fill, build_bands};
use neardup_blocktree::clusters::{Components, Star, UNRANKED};
use neardup_blocktree::key::{EntryKey, Tid};
use neardup_blocktree::meta::Meta;
use neardup_blocktree::paged::Paged;
use neardup_blocktree::pairs::{CrowdedRow, Pair, Pairs};
use neardup_blocktree::sort::{Entry, ExternalSort};
use neardup_blocktree::tree::Tree;
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

type BandModel = BTreeMap<Tid, Option<Vec<u32>>>;

const KIND: u64 = 3;

struct BandIndex {
    store: MemStore,
    bands: Rc<Bands>,
    meta: Meta,
}

impl BandIndex {
    fn build(bands: Bands, model: &BandModel, memory: usize) -> Self {
        let store = MemStore::new();
        let mut host = &store;
        let mut rows: Vec<ExternalSort<&MemStore, 2>> = (0..bands.count())
            .map(|_| ExternalSort::new(memory))
            .collect();
        let mut nulls = ExternalSort::new(memory);
        for (&tid, signature) in model {
            let Some(signature) = signature else {
                nulls.push(&mut host, [0; 2], tid);
                continue;
            };
            let sketch = bands.sketch(signature);
            for (band, rows) in rows.iter_mut().enumerate() {
                rows.push(
                    &mut host,
                    bands.key(band, signature, KIND, None, &sketch),
                    tid,
                );
            }
        }
        let meta = build_bands(
            &mut host,
            &bands,
            0.8,
            &mut rows,
            &mut nulls,
            Fill::default(),
        );
        let bands = Rc::new(bands);
        BandIndex { store, bands, meta }
    }

    fn layout(&self) -> Rc<BlockLayout<2>> {
        Rc::new(self.bands.layout(false))
    }

    fn tree(&self) -> Tree<'_, MemStore, 2> {
        Tree::new(&self.store, self.meta.root)
    }

    fn insert(&self, tree: &Tree<'_, MemStore, 2>, tid: Tid, signature: Option<&[u32]>) {
        let Some(signature) = signature else {
            let permutation = self.bands.count() as u16;
            let position = EntryKey {
                permutation,
                key: [0; 2],
                tid,
            };
            return tree.insert(&position).unwrap();
        };
        let sketch = self.bands.sketch(signature);
        for band in 0..self.bands.count() {
            let key = self.bands.key(band, signature, KIND, None, &sketch);
            let permutation = band as u16;
            tree.insert(&EntryKey {
                permutation,
                key,
                tid,
            })
            .unwrap();
        }
    }

    fn search(&self, signature: &[u32], mismatches: usize, memory: usize) -> Vec<Tid> {
        let query = BandQuery::new(&self.bands, signature, KIND, None, mismatches);
        let mut scan = BandScan::new(self.bands.clone(), query, memory);
        let mut found = Vec::new();
        let tree = self.tree();
        while scan.step(&tree, &mut found).unwrap() {}
        found
    }

    /// Pairs that may have at most the plan's mismatches, by what the search tells, each with the
    /// passes that found it. Checks that no pass finds a pair twice and that steps are short.
    fn pairs(&self, plan: BandPairPlan, memory: usize) -> BTreeMap<[Tid; 2], BTreeSet<usize>> {
        let mut search = Pairs::new(self.layout(), plan.passes(&self.layout()), memory, false);
        let mut candidates: BTreeMap<[Tid; 2], (u32, BTreeSet<usize>)> = BTreeMap::new();
        let tree = self.tree();
        let mut more = true;
        while more {
            let mut found = Vec::new();
            let mut emit = |pair| found.push(pair);
            more = (search.step(&tree, &mut |_| true, &mut Some, &mut emit)).unwrap();
            assert!(found.len() < 6_000, "a step gives no more than a batch");
            for pair in &found {
                let [a, b] = pair.rows;
                assert_ne!(a, b);
                let least = plan.least_mismatches(pair);
                let entry = candidates.entry([a.min(b), a.max(b)]);
                let (known, passes) = entry.or_insert((least, BTreeSet::new()));
                assert_eq!(*known, least);
                assert!(passes.insert(pair.pass), "{:?} came twice", pair.rows);
            }
        }
        assert_eq!(search.passes_done(), plan.permutations());
        let shared = |passes: &BTreeSet<usize>| match plan.is_by_bands() {
            true => passes.len(),
            false => 0,
        };
        (candidates.into_iter())
            .filter(|(_, (least, passes))| *least as usize <= plan.mismatches() + shared(passes))
            .map(|(rows, (_, passes))| (rows, passes))
            .collect()
    }

    fn assert_finds_pairs(&self, model: &BandModel, rng: &mut StdRng) {
        let guaranteed = self.bands.guaranteed();
        let known: Vec<(Tid, &Vec<u32>)> = (model.iter())
            .filter_map(|(tid, signature)| Some((*tid, signature.as_ref()?)))
            .collect();
        // By bands alone: just the near pairs that share one are sure to be found.
        let mismatches = guaranteed + 1 + rng.random_range(0..self.bands.hashes() / 2);
        let found = self.pairs(BandPairPlan::by_bands(self.bands.clone(), mismatches), 0);
        let hashes = |signature: &Vec<u32>| -> Vec<u64> {
            (0..self.bands.count())
                .map(|band| self.bands.hash(band, signature, KIND))
                .collect()
        };
        let hashed: Vec<Vec<u64>> = known.iter().map(|(_, one)| hashes(one)).collect();
        for (i, (a, one)) in known.iter().enumerate() {
            for (j, (b, other)) in known.iter().enumerate().skip(i + 1) {
                let differing = one.iter().zip(*other).filter(|(a, b)| a != b).count();
                let shares = hashed[i].iter().zip(&hashed[j]).any(|(a, b)| a == b);
                let is_found = found.contains_key(&[*a.min(b), *a.max(b)]);
                assert!(is_found || !shares || differing > mismatches);
                assert!(shares || !is_found);
            }
        }
        for mismatches in [rng.random_range(0..=guaranteed), guaranteed + 1] {
            let plan = BandPairPlan::exact(self.bands.clone(), mismatches);
            let found = self.pairs(plan.clone(), 1 << 24);
            // A part at a time.
            assert_eq!(self.pairs(plan, 0), found);
            if mismatches > guaranteed {
                // The sample holds all rows.
                let work = exhaustive_work(&self.tree(), &self.layout(), mismatches, &mut |_| true);
                let work = work.unwrap();
                let count = known.len() as f64;
                assert_eq!(work.rows, known.len() as u64);
                assert_eq!(work.comparisons, count * (count - 1.0).max(0.0) / 2.0);
                assert!(
                    (work.candidates - found.len() as f64).abs() < 0.5,
                    "{work:?}"
                );
            }
            for (i, (a, one)) in known.iter().enumerate() {
                for (b, other) in &known[i + 1..] {
                    let differing = one.iter().zip(*other).filter(|(a, b)| a != b).count();
                    assert!(
                        differing > mismatches || found.contains_key(&[*a, *b]),
                        "{a:?} and {b:?} are missing"
                    );
                    let permutations = found.get(&[*a, *b]).filter(|_| mismatches <= guaranteed);
                    if let Some(permutations) = permutations {
                        let first = self.bands.first_shared(one, other, KIND);
                        assert_eq!(permutations.first().copied(), first);
                    }
                }
            }
        }
    }

    fn assert_finds(&self, model: &BandModel, rng: &mut StdRng) {
        let layout = self.bands.layout::<2>(false);
        let stats = self.tree().check(&layout, |_, _, _| ()).unwrap();
        assert!(stats.permutations_agree);
        assert_eq!(stats.rows, model.values().flatten().count() as u64);
        let known: Vec<&Vec<u32>> = model.values().flatten().collect();
        for _ in 0..5 {
            let query = match known.len() {
                0 => vec![7; self.bands.hashes()],
                n => known[rng.random_range(0..n)].clone(),
            };
            let mismatches = rng.random_range(0..=self.bands.guaranteed());
            let found = self.search(&query, mismatches, 1 << 24);
            assert!(found.is_sorted_by(|a, b| a < b), "a row twice");
            // With room for few entries only, in several passes.
            assert_eq!(self.search(&query, mismatches, 0), found);
            for (tid, signature) in model {
                let near = signature.as_ref().is_some_and(|signature| {
                    signature.iter().zip(&query).filter(|(a, b)| a != b).count() <= mismatches
                });
                assert!(
                    !near || found.binary_search(tid).is_ok(),
                    "{tid:?} is missing"
                );
            }
            assert!(
                found
                    .iter()
                    .all(|tid| matches!(model.get(tid), Some(Some(_))))
            );
        }
    }
}

/// A signature that is unlike all others, or near a known one, or equal to it.
fn some_signature(rng: &mut StdRng, model: &BandModel, hashes: usize) -> Option<Vec<u32>> {
    if rng.random_bool(0.02) {
        return None;
    }
    let known = model
        .values()
        .flatten()
        .nth(rng.random_range(0..model.len().max(1)));
    let mut signature: Vec<u32> = match known {
        Some(known) if rng.random_bool(0.7) => known.clone(),
        _ => (0..hashes).map(|_| rng.random()).collect(),
    };
    for _ in 0..rng.random_range(0..=hashes / 4) {
        let at = rng.random_range(0..hashes);
        signature[at] = rng.random();
    }
    Some(signature)
}

fn tid(n: u32) -> Tid {
    Tid {
        block: n / 50,
        offset: (n % 50 + 1) as u16,
    }
}

proptest! {
    #![proptest_config(super::cases(4))]

    #[test]
    fn random_operations(
        seed: u64, hashes in 16_usize..200, share in 2_usize..9, start in 0_u32..400,
    ) {
        let mut rng = StdRng::seed_from_u64(seed);
        let bands = Bands::new(hashes, (hashes / share).max(1), 0).unwrap();
        let mut model = BandModel::new();
        for n in 0..start {
            let signature = some_signature(&mut rng, &model, hashes);
            model.insert(tid(n), signature);
        }
        let memory = if seed.is_multiple_of(2) { 0 } else { 1 << 22 };
        let index = BandIndex::build(bands, &model, memory);
        index.assert_finds(&model, &mut rng);
        let tree = index.tree();
        let mut next = start;
        for round in 0..3 {
            // Many equal signatures, so that a band's hash fills several leaves. Pairs are compared
            // in the first round, where 250 equal signatures take seconds.
            let step = if round == 0 && seed % 4 > 0 { 8 } else { 2 };
            let same = some_signature(&mut rng, &model, hashes);
            for i in 0..500 {
                let signature = match i % step {
                    0 => same.clone(),
                    _ => some_signature(&mut rng, &model, hashes),
                };
                index.insert(&tree, tid(next), signature.as_deref());
                model.insert(tid(next), signature);
                next += 1;
            }
            index.assert_finds(&model, &mut rng);
            if next < start + 1000 {
                index.assert_finds_pairs(&model, &mut rng);
            }
            let share = [0.05, 0.9][rng.random_range(0..2)];
            let mut dead = Vec::new();
            model.retain(|tid, _| {
                let stays = !rng.random_bool(share);
                if !stays {
                    dead.push(*tid);
                }
                stays
            });
            let null_permutation = index.bands.count() as u16;
            let is_dead = |tid| dead.binary_search(&tid).is_ok();
            tree.vacuum(null_permutation, Fill::default(), is_dead).unwrap();
            index.assert_finds(&model, &mut rng);
        }
    }
}

fn differing(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).filter(|(a, b)| a != b).count()
}

/// Representatives by definition. Signatures are in the order of their ranks.
fn expected_stars(signatures: &[Vec<u32>], mismatches: usize) -> Vec<u32> {
    let mut of = vec![UNRANKED; signatures.len()];
    for i in 0..of.len() {
        if of[i] == UNRANKED {
            for j in i..of.len() {
                if of[j] == UNRANKED && differing(&signatures[i], &signatures[j]) <= mismatches {
                    of[j] = i as u32;
                }
            }
        }
    }
    of
}

/// The lowest rank that a chain of neighbours connects with each. Signatures are in the order of
/// their ranks.
fn expected_components(signatures: &[Vec<u32>], mismatches: usize) -> Vec<u32> {
    let mut of = vec![UNRANKED; signatures.len()];
    for i in 0..of.len() {
        let mut open = if of[i] == UNRANKED { vec![i] } else { vec![] };
        while let Some(member) = open.pop() {
            of[member] = i as u32;
            let is_next = |j: &usize| {
                of[*j] == UNRANKED && differing(&signatures[member], &signatures[*j]) <= mismatches
            };
            let next: Vec<usize> = (0..of.len()).filter(is_next).collect();
            next.iter().for_each(|&j| of[j] = i as u32);
            open.extend(next);
        }
    }
    of
}

/// Signatures by the ranks of their rows. Counts how many are fetched.
struct Fetched<'a> {
    signatures: &'a [Vec<u32>],
    ranks: &'a BTreeMap<Tid, u32>,
    mismatches: usize,
    count: &'a Cell<usize>,
}

impl<'a> RowSource for Fetched<'a> {
    type Row = &'a [u32];

    fn row_bytes(&self) -> usize {
        256
    }

    fn fetch(&mut self, entry: Tid) -> Option<&'a [u32]> {
        self.count.set(self.count.get() + 1);
        Some(&self.signatures[self.ranks[&entry] as usize])
    }

    fn are_near(&self, a: &&[u32], b: &&[u32]) -> bool {
        differing(a, b) <= self.mismatches
    }
}

/// Method of making clusters.
#[derive(Clone, Copy, Debug)]
enum Method {
    Star,
    Connected,
}

/// Representatives of all signatures.
struct Clusters {
    of: Vec<u32>,
    /// Number of pairs that the thinned search gave.
    pairs: usize,
    /// Number of other crowded rows that were fetched for comparisons.
    fetched: usize,
}

/// Clusters by a thinned search of an index with this number of bands. Signatures are in the order
/// of their ranks; their rows are not.
fn clusters(
    method: Method,
    signatures: &[Vec<u32>],
    bands: usize,
    mismatches: usize,
    most: u32,
    [search_memory, memory]: [usize; 2],
) -> Clusters {
    let count = signatures.len() as u32;
    // 7,919 is a prime, and there are fewer rows.
    let row_of = |rank: u32| tid((rank + 7) * 4_999 % 7_919);
    let rows: Vec<Tid> = (0..count).map(row_of).collect();
    let ranks: BTreeMap<Tid, u32> = rows.iter().copied().zip(0..).collect();
    assert_eq!(ranks.len(), rows.len());
    let model: BandModel = (rows.iter().copied())
        .zip(signatures.iter().cloned().map(Some))
        .collect();
    let hashes = signatures[0].len();
    let bands = Bands::new(hashes, bands, 0).unwrap();
    let index = BandIndex::build(bands, &model, 1 << 22);
    let plan = BandPairPlan::exact(index.bands.clone(), mismatches);
    let by_bands = plan.is_by_bands();
    let passes = plan.passes(&index.layout());
    let mut search = Pairs::with_crowded_buckets(index.layout(), passes, search_memory, most);
    let (mut shared, mut crowd, mut pairs) = (BTreeMap::new(), Vec::new(), 0);
    let tree = index.tree();
    let mut emit = |pair: Pair<2>| {
        let ([a, b], least) = (pair.rows, plan.least_mismatches(&pair));
        pairs += 1;
        shared.entry([a.min(b), a.max(b)]).or_insert((least, 0)).1 += 1;
    };
    let mut emit_crowded = |row: CrowdedRow<2>| crowd.push(row);
    let mut wanted = |_| true;
    while (search.step_with_crowds(&tree, &mut wanted, &mut emit, &mut emit_crowded)).unwrap() {}

    let near: Vec<[u32; 2]> = (shared.into_iter())
        .map(|(pair, (least, shared))| (pair.map(|row| ranks[&row]), least, shared))
        .filter(|([a, b], least, shared)| {
            let differing = differing(&signatures[*a as usize], &signatures[*b as usize]);
            let shared = if by_bands { *shared } else { 0 };
            *least as usize <= mismatches + shared && differing <= mismatches
        })
        .map(|(pair, ..)| pair)
        .collect();
    let crowd = crowd.into_iter().map(|one| {
        let ([high, low], row) = (sketch(&one.fingerprint), one.row);
        Entry {
            key: [u64::from(ranks[&row]), u64::from(one.bucket), high, low],
            tid: row.packed(),
        }
    });
    let fetched = Cell::new(0);
    let mut source = Fetched {
        signatures,
        ranks: &ranks,
        mismatches,
        count: &fetched,
    };
    let store = MemStore::new();
    let mut files = &store;
    let mut of = Paged::new(&mut files, count as usize, memory, |rank| rank);
    let buckets = search.crowded_buckets();
    match method {
        Method::Star => {
            let mut star = Star::<&MemStore, 4>::new(memory);
            for [a, b] in near {
                star.add_pair(&mut files, (a, a), (b, b));
            }
            for entry in crowd {
                star.add_crowded(&mut files, entry.key[0] as u32, entry);
            }
            let mut centers = BucketCenters::new(&mut files, buckets, source, mismatches, memory);
            let (expected, mut done) = (star.len(), 0);
            star.finish(&mut files, &mut of, &mut centers, &mut || done += 1);
            assert_eq!(done, expected);
        }
        Method::Connected => {
            let mut connected = Components::new(&mut files, count, memory);
            for [a, b] in near {
                connected.connect(&mut files, a, b);
            }
            let mut crowded = ExternalSort::<&MemStore, 4>::new(memory);
            for entry in crowd {
                crowded.push(&mut files, entry.key, Tid::from_packed(entry.tid));
            }
            let source = &mut source;
            connect_buckets(
                &mut files,
                crowded,
                &mut connected,
                source,
                mismatches,
                memory,
                &mut || (),
            );
            connected.finish(&mut files, &mut of);
        }
    }
    let of = (0..count).map(|rank| of.get(&mut files, rank)).collect();
    Clusters {
        of,
        pairs,
        fetched: fetched.get(),
    }
}

/// Signatures of 64 values around a few, each with some positions of its own.
fn signatures(rng: &mut StdRng, count: usize, centers: usize, changes: usize) -> Vec<Vec<u32>> {
    let centers: Vec<Vec<u32>> = (0..centers)
        .map(|_| (0..64).map(|_| rng.random()).collect())
        .collect();
    (0..count)
        .map(|_| {
            let mut signature = centers[rng.random_range(0..centers.len())].clone();
            for _ in 0..rng.random_range(0..=changes) {
                let at = rng.random_range(0..signature.len());
                signature[at] = rng.random();
            }
            signature
        })
        .collect()
}

proptest! {
    #![proptest_config(super::cases(24))]

    #[test]
    fn clusters_of_crowded_signatures_are_as_by_definition(
        seed: u64, count in 1..900_usize, centers in 1..4_usize, changes in 0..20_usize,
        mismatches in 0..13_usize, most in 0..40_u32, within: bool,
        memory in prop::sample::select(vec![[0, 0], [1 << 22, 0], [0, 1 << 22], [1 << 22; 2]]),
    ) {
        let mut rng = StdRng::seed_from_u64(seed);
        let signatures = signatures(&mut rng, count, centers, changes);
        // Within what the bands guarantee, and beyond.
        let bands = if within { mismatches + 3 } else { mismatches / 2 + 1 };
        let stars = clusters(Method::Star, &signatures, bands, mismatches, most, memory);
        prop_assert_eq!(stars.of, expected_stars(&signatures, mismatches));
        let components = clusters(Method::Connected, &signatures, bands, mismatches, most, memory);
        prop_assert_eq!(components.of, expected_components(&signatures, mismatches));
    }
}

/// However many signatures are near each other, the pairs of a thinned search are a multiple of
/// them; each is compared with representatives only, or with one of its component.
#[test]
fn a_crowd_brings_no_quadratic_comparisons() {
    let mut rng = StdRng::seed_from_u64(3);
    let signatures = signatures(&mut rng, 3_000, 1, 6);
    let count = signatures.len();
    for (bands, method, expected) in [
        (15, Method::Star, expected_stars(&signatures, 12)),
        (15, Method::Connected, expected_components(&signatures, 12)),
        // Beyond what they guarantee all rows are one bucket.
        (4, Method::Star, expected_stars(&signatures, 12)),
        (4, Method::Connected, expected_components(&signatures, 12)),
    ] {
        let found = clusters(method, &signatures, bands, 12, 8, [1 << 22; 2]);
        assert_eq!(found.of, expected, "{method:?}");
        assert!(
            found.pairs <= 9 * bands * count,
            "{method:?}: {} pairs",
            found.pairs
        );
        let most = match method {
            Method::Star => 2 * count,
            // One for each bucket.
            Method::Connected => bands * count,
        };
        assert!(found.fetched <= most, "{method:?}: {} rows", found.fetched);
    }
}
