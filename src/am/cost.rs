//! `amcostestimate`: estimates the cost of an index scan from the plan that its search would
//! follow.
use neardup_blocktree::bands::Bands;
use neardup_blocktree::knn::whole_reads;
use neardup_blocktree::leaf;
use neardup_blocktree::metric::{Metric, near_duplicate_bits, near_duplicate_mismatches};
use neardup_blocktree::plan::expected_nearest;
use neardup_blocktree::sets;
use pgrx::pg_sys;

use super::index::{Index, plan_of, rows_of, words_of};
use super::keys::with_words;
use neardup_pg::compat::OldSnapshotCheck;
use neardup_pg::memory::work_mem;
use neardup_pg::rel::{OpenRelation, Rel};
use neardup_pg::scan_path::{ScanPath, page_costs};
use neardup_pg::storage::pages::IndexPages;
use neardup_pg::{backend, server};
use path_quals::{Order, PathQuals, Radius, Scope};

mod path_quals;

// `DESCENT` and `LEAF` are costs of a search. They were measured with joins, where a unit of the
// server's costs takes about a microsecond: a search in a table of 1,000 rows takes 1 to 3 us. With
// 40 and 20 instead of 100 and 50, the planner chose searches that took 6 times as long as the best
// plan.
/// Cost of a descent from the root to a leaf, in units of `cpu_operator_cost`.
const DESCENT: f64 = 100.0;
/// Cost of measuring the distances of all entries of a leaf, in units of `cpu_operator_cost`.
const LEAF: f64 = 50.0;
// `IN_ORDER` and `STILL_THERE` are costs of returning rows in order. They were measured on 200,000
// rows. The server reads and sorts them at a cost of 25,000, in 0.24 s. The index returns them in
// 0.49 to 0.53 s, and an index-only scan in 1.3 to 1.7 s.
/// Cost of keeping, sorting and returning one row of an ordered scan, in units of
/// `cpu_operator_cost`.
const IN_ORDER: f64 = 80.0;
/// Cost of checking that a row is still in the index, in units of `cpu_operator_cost`. An ordered
/// index-only scan checks each row by a descent and a pass through a leaf.
const STILL_THERE: f64 = 150.0;
/// Factor on the cost of an ordered scan after its first row, if the query also has conditions that
/// the index does not evaluate. With LIMIT, the planner assumes that the scan ends as soon as
/// enough rows fulfil these conditions. If fewer rows fulfil them than the planner expects, the
/// scan may return the whole index, which takes eight times as long as a sequential scan. With the
/// factor, the planner chooses the ordered scan only if every other plan seems to cost at least
/// about three times as much.
const FILTERED_ORDER: f64 = 3.0;
/// Cost of comparing the signature or array of a fetched row, in units of `cpu_operator_cost`. The
/// planner adds its own cost of fetching the row. An exhaustive search compares each row whose
/// sketch (the summary of its signature in the index) is near enough. This took 1.7 us for each of
/// 3,000 rows, nearly all with near sketches. A nested loop of sequential scans, the other plan for
/// a join, took a tenth of that time for each row.
const RECHECK: f64 = 60.0;

/// Estimated cost of an index scan, as `amcostestimate` returns it.
pub struct CostEstimate {
    /// Cost until the first row is returned, in the planner's units.
    pub startup: f64,
    /// Cost until all rows are returned, in the planner's units.
    pub total: f64,
    /// Share of the table's rows that the server fetches.
    pub selectivity: f64,
    /// Number of index pages that the scan reads.
    pub pages: f64,
}

/// Estimates the cost of one scan of a neardup index. `path` is the planner's description of the
/// scan, which the planner expects to repeat `loops` times.
pub fn estimate(mut path: ScanPath, loops: f64) -> CostEstimate {
    let on_standby = path.is_index_only() && backend::in_recovery();
    if on_standby {
        // The planner offers an index-only scan without `amcanreturn` if the query needs no column.
        // On a standby, replay does not wait for a scan that keeps a leaf pinned, so the scan must
        // also read the table.
        path.read_table();
    }
    let share = path.selectivity();
    let rows = (share * path.table.tuples).max(1.0);

    let quals = PathQuals::from_path(&path);
    let work = Work::from_path(&path, &quals, rows);
    let unit = server::cpu_operator_cost();
    let startup = read_cost(&path, loops, &work.to_first) + unit * IN_ORDER * work.sorted_first;
    let mut each = server::cpu_index_tuple_cost();
    if quals.order != Order::None {
        let check = if path.is_index_only() {
            STILL_THERE
        } else {
            0.0
        };
        let keep = if work.sorted_first > 0.0 {
            0.0
        } else {
            IN_ORDER
        };
        each += unit * (check + keep);
    }
    let rechecked = work.fetched * path.table.tuples;
    let mut total = startup
        + read_cost(&path, loops, &work.after_first)
        + rows * each
        + rechecked * RECHECK * unit;
    if on_standby {
        // The planner adds only the cost of table pages that are not all-visible, as for an
        // index-only scan.
        total += visible_pages_cost(&path, rows);
    }
    if quals.order != Order::None && path.filters_further(rows) {
        total = startup + (total - startup) * FILTERED_ORDER;
    }
    CostEstimate {
        startup,
        total,
        selectivity: share.max(work.fetched),
        pages: (work.to_first.leaves + work.after_first.leaves).min(f64::from(path.index.pages)),
    }
}

/// Returns the cost of one search within `radius` (in bits) in one scope, if all pages are cached.
/// The unit is `cpu_operator_cost`. Used to compare the indexes of a table. Infinite for an index
/// on arrays, which has no distances.
pub fn search_cost(index: Rel, radius: u32) -> f64 {
    with_words!(words_of(index), N => {
        let index = Index::<N>::open(index);
        match &index.metric {
            Metric::Jaccard(bands) => bands.count() as f64 * (DESCENT + LEAF),
            Metric::Hamming { .. } => {
                let plan = plan_of(&index.meta, &index.block_layout, radius, index.rows());
                plan.descents_worth() * DESCENT + plan.leaves * LEAF
            }
            Metric::Overlap => f64::INFINITY,
        }
    })
}

/// Returns the cost of reading the all-visible pages of the table when `rows` rows are fetched. For
/// an index-only scan the planner does not count these pages, because such a scan usually does not
/// read them. On a standby the scan must read them, so the caller adds this cost.
fn visible_pages_cost(path: &ScanPath, rows: f64) -> f64 {
    let (random, _) = page_costs(path.table.reltablespace);
    path.pages_fetched(rows, path.table.pages) * path.table.allvisfrac * random
}

/// Returns the cost of the index accesses `reads` of one search, in the planner's units. `loops` is
/// the number of times that the search is repeated. Repeated searches find pages in the cache, so
/// each of them costs less.
fn read_cost(path: &ScanPath, loops: f64, reads: &Reads) -> f64 {
    let leaves = reads.leaves.min(f64::from(path.index.pages.max(1)));
    let (random, sequential) = page_costs(path.index.reltablespace);
    let io = if loops > 1.0 {
        // Repeated searches find more and more of the index in the cache.
        path.pages_fetched(leaves * loops, path.index.pages) * random / loops
    } else {
        // A descent reads a random leaf. The leaves after it are read in sequence.
        let jumps = reads.descents.min(leaves);
        jumps * random + (leaves - jumps) * sequential
    };
    let unit = server::cpu_operator_cost();
    io + unit * (reads.descents * DESCENT + reads.leaves * LEAF)
}

/// Number of index accesses in a part of a search.
#[derive(Clone, Copy, Default)]
struct Reads {
    /// Descents from the root to a leaf.
    descents: f64,
    /// Leaves that are read.
    leaves: f64,
}

impl Reads {
    fn times(self, factor: f64) -> Self {
        Reads {
            descents: self.descents * factor,
            leaves: self.leaves * factor,
        }
    }

    /// Returns the accesses in `self` minus those in `done`, which an earlier part of the search
    /// has made.
    fn without(self, done: Reads) -> Self {
        Reads {
            descents: (self.descents - done.descents).max(0.0),
            leaves: (self.leaves - done.leaves).max(0.0),
        }
    }
}

/// Estimated work of a search in the index.
#[derive(Default)]
struct Work {
    /// Accesses before the first row is returned.
    to_first: Reads,
    /// Further accesses until the last row is returned.
    after_first: Reads,
    /// Number of rows that are sorted before the first row is returned.
    sorted_first: f64,
    /// Share of the table's rows that the server must fetch to check the conditions. 0 if nearly
    /// all rows that the search finds fulfil the conditions. The planner's own estimate of the
    /// fetched rows is then right.
    fetched: f64,
}

impl Work {
    /// Returns the work of a search that returns rows as it finds them. `all` has all accesses of
    /// the search. On average half of the descents have been made when the search finds its first
    /// row.
    fn at_once(all: Reads) -> Self {
        let to_first = Reads {
            descents: all.descents / 2.0,
            leaves: all.leaves.min(all.descents) / 2.0,
        };
        Work {
            to_first,
            after_first: all.without(to_first),
            ..Work::default()
        }
    }

    /// Returns the work of a search that finds `rows` rows by the accesses `to_first` and sorts
    /// these rows before it returns the first one.
    fn sorted(to_first: Reads, rows: f64) -> Self {
        Work {
            to_first,
            sorted_first: rows,
            ..Work::default()
        }
    }

    /// Estimates the work of the index scan `path`. `quals` has its conditions and its order, and
    /// `expected` is the number of rows that the planner expects it to return.
    fn from_path(path: &ScanPath, quals: &PathQuals, expected: f64) -> Self {
        let info = path.index;
        if info.hypothetical {
            // A hypothetical index (of an extension such as HypoPG) has no pages. Assume the
            // default layout, and a search within the default radius.
            return Work::at_once(Reads {
                descents: 4.0,
                leaves: 4.0,
            });
        }
        // The planner holds a lock on the index.
        let opened = OpenRelation::index(info.indexoid, pg_sys::NoLock);
        let work = {
            let relation = opened.rel();
            with_words!(words_of(relation), N => {
                // An estimate need not find every visible row, so pages are not checked against a
                // snapshot.
                let pages = IndexPages::new(relation, OldSnapshotCheck::NONE);
                let index = Index::<N>::with_pages(pages);
                let pages = f64::from(info.pages);
                let all = match index.metric {
                    Metric::Overlap => path.table.tuples,
                    _ => rows_of(&index.meta, pages),
                };
                // If the conditions select one scope, every kind of search reads only the rows of
                // that scope.
                let share = match quals.scope {
                    Scope::One(share) => share,
                    Scope::Without | Scope::All => 1.0,
                };
                let rows = all * share;
                let leaves = |rows: f64| (rows / leaf::usual_count(N)).max(1.0);
                let whole = Reads { descents: 1.0, leaves: leaves(rows) };
                if matches!(quals.radius, Radius::Null) {
                    let nulls = Reads { descents: 1.0, leaves: leaves(expected) };
                    Work::at_once(nulls)
                } else {
                    match &index.metric {
                        Metric::Jaccard(bands) => Work::by_bands(bands, quals, whole, share),
                        Metric::Hamming { .. } => {
                            Work::by_distance(&index, quals, whole, rows, expected)
                        }
                        Metric::Overlap => {
                            let sizes = [pages, path.table.tuples, expected];
                            Work::by_elements(quals, whole, sizes, leaves)
                        }
                    }
                }
            })
        };
        Work {
            to_first: work.to_first.times(quals.times),
            after_first: work.after_first.times(quals.times),
            ..work
        }
    }

    /// Estimates the work of a search in an index on fingerprints. The search has the conditions
    /// `quals` and returns `expected` rows. `rows` is the number of rows in the searched scope.
    /// `whole` has the accesses that read all of these rows in one permutation (one ordered copy of
    /// all keys).
    fn by_distance<const N: usize>(
        index: &Index<N>,
        quals: &PathQuals,
        whole: Reads,
        rows: f64,
        expected: f64,
    ) -> Self {
        let (bits, guaranteed) = (index.block_layout.bits(), index.block_layout.radius());
        let within = |radius: u32| {
            let plan = plan_of(&index.meta, &index.block_layout, radius, rows);
            Reads {
                descents: plan.descents_worth(),
                leaves: plan.leaves,
            }
        };
        let in_order = quals.order != Order::None;
        // The index is ordered by scope. A search in all scopes reads a whole permutation.
        if quals.scope == Scope::All {
            let twice = whole.times(2.0);
            return if in_order {
                Work::sorted(twice, expected)
            } else {
                Work::at_once(twice)
            };
        }
        let radius = match quals.radius {
            Radius::None | Radius::Null => None,
            Radius::Unknown | Radius::Signatures(_) => Some(guaranteed),
            Radius::NearDuplicate => Some(near_duplicate_bits(bits)),
            Radius::Known(radius) => Some(radius),
        };
        match (radius, quals.order) {
            (None, Order::None) => Work::at_once(whole.times(2.0)),
            (Some(radius), Order::None) => Work::at_once(within(radius)),
            (Some(radius), Order::ByAnother) => Work::sorted(within(radius), expected),
            (radius, _) => {
                // An ordered search reads rings of increasing radius one after the other. Each ring
                // costs a quarter of the next one, so all earlier rings cost a third of the last.
                let rings = |radius| within(radius).times(4.0 / 3.0);
                let nearest = expected_nearest(bits, rows).max(guaranteed);
                let (first, last) = match radius {
                    Some(radius) if radius <= guaranteed => (within(radius), Reads::default()),
                    Some(radius) => (rings(nearest.min(radius)), rings(radius)),
                    None => (rings(nearest), Reads::default()),
                };
                // Rows that do not fit in memory make the search read the whole permutation again.
                let read_whole = radius.is_none_or(|radius| within(radius).leaves >= whole.leaves);
                let last = if read_whole {
                    whole.times(whole_reads::<N>(expected, work_mem()))
                } else {
                    last
                };
                Work {
                    to_first: first,
                    after_first: last.without(first),
                    ..Work::default()
                }
            }
        }
    }

    /// Estimates the work of a search with the conditions `quals` in an index on arrays. The index
    /// has `pages` pages, the table has `tuples` rows, and the search returns `expected` rows.
    /// `whole` has the accesses that read each row of the index once. `leaves` converts a number of
    /// rows to the number of leaves that their entries fill.
    fn by_elements(
        quals: &PathQuals,
        whole: Reads,
        [pages, tuples, expected]: [f64; 3],
        leaves: impl Fn(f64) -> f64,
    ) -> Self {
        let (descents, found) = match (quals.elements, quals.contained, quals.radius) {
            (_, _, Radius::Known(_)) => (1.0, expected),
            (_, Some(elements), _) => {
                // `@>` reads the rows of the rarest element of its query array. If elements are
                // independent, that element's share of the rows is at most the geometric mean of
                // all elements' shares.
                let rows = tuples.max(1.0);
                let share = (expected / rows).powf(1.0 / elements.max(1.0));
                let compared = match elements > 1.0 {
                    true => elements.min(sets::MAX_COMPARED_ELEMENTS as f64),
                    false => 0.0,
                };
                (1.0 + compared, share * rows)
            }
            (Some(elements), None, _) => (elements, expected),
            (None, None, _) => return Work::at_once(whole),
        };
        let read = match quals.scope {
            // The index is ordered by scope, so a search in all scopes reads all of it.
            Scope::All => pages,
            Scope::One(_) | Scope::Without => descents + leaves(found) - 1.0,
        };
        // All rows are collected before the first one is returned.
        Work {
            to_first: Reads {
                descents,
                leaves: read,
            },
            fetched: if found > expected {
                found / tuples
            } else {
                0.0
            },
            ..Work::default()
        }
    }

    /// Estimates the work of a search with the conditions `quals` in an index on signatures with
    /// these bands. `whole` has the accesses that read each row of the searched scope once. `share`
    /// is the share of the table's rows in that scope.
    fn by_bands(bands: &Bands, quals: &PathQuals, whole: Reads, share: f64) -> Self {
        let count = bands.count() as f64;
        let mismatches = match quals.radius {
            Radius::None | Radius::Null => None,
            Radius::Known(mismatches) => Some(mismatches as usize),
            Radius::Signatures(radius) => Some(radius.mismatches(bands.hashes()).max(0) as usize),
            Radius::Unknown => Some(bands.guaranteed()),
            Radius::NearDuplicate => Some(near_duplicate_mismatches(bands.hashes())),
        };
        let all_scopes = quals.scope == Scope::All;
        match mismatches {
            Some(mismatches)
                if !all_scopes && (mismatches <= bands.guaranteed() || quals.approximate) =>
            {
                Work {
                    to_first: Reads {
                        descents: count,
                        leaves: count,
                    },
                    ..Work::default()
                }
            }
            mismatches => Work {
                after_first: whole,
                fetched: share
                    * mismatches.map_or(1.0, |mismatches| bands.chance_sketch(mismatches)),
                ..Work::default()
            },
        }
    }
}
