//! `amcostestimate`: cost of a scan, from the plan that the search would follow.
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

// Measured with joins, where a unit of the server's costs takes about a microsecond: a search in a
// table of 1,000 rows takes 1 to 3 us. With 40 and 20 instead of 100 and 50, the planner chose
// searches that took 6 times as long as the best plan.
/// Cost of a descent from the root to a leaf, in `cpu_operator_cost`.
const DESCENT: f64 = 100.0;
/// Cost of measuring the distances of a leaf, in `cpu_operator_cost`.
const LEAF: f64 = 50.0;
// Measured on 200,000 rows in order, which the server reads and sorts at a cost of 25,000 in 0.24
// s: 0.49 to 0.53 s by the index, 1.3 to 1.7 s by the index alone.
/// Cost of keeping, sorting and returning a row, in `cpu_operator_cost`.
const IN_ORDER: f64 = 80.0;
/// Cost of checking that a row returned in order is still in the index, if the table is not read:
/// a descent and a pass through a leaf, in `cpu_operator_cost`.
const STILL_THERE: f64 = 150.0;
/// Factor on the cost of an ordered scan with a further filter. LIMIT prorates the cost by the
/// number of rows that are expected to pass the filter. If none passes, the scan returns the whole
/// index, which takes eight times as long as a sequential scan. With this factor, the planner
/// prefers the index only if it expects to save two thirds.
const FILTERED_ORDER: f64 = 3.0;
/// Cost of fetching a row that the sketches let through and comparing its signature, beyond the
/// server's own cost of a row, in `cpu_operator_cost`. Of 3,000 rows nearly all were let through:
/// 1.7 us for each, where a nested loop of sequential scans takes a tenth.
const RECHECK: f64 = 60.0;

/// Cost of a scan, as the planner asks for it.
pub struct CostEstimate {
    pub startup: f64,
    pub total: f64,
    /// Share of the table's rows that are fetched.
    pub selectivity: f64,
    /// Pages of the index that are read.
    pub pages: f64,
}

/// Estimates the cost of a scan of a neardup index, which is expected to be repeated `loops`
/// times.
pub fn estimate(mut path: ScanPath, loops: f64) -> CostEstimate {
    let on_standby = path.is_index_only() && backend::in_recovery();
    if on_standby {
        // For a query that needs no column, the server does not ask whether the index can return
        // any. On a standby, replay does not wait for a scan that keeps a leaf pinned, so the scan
        // reads the table.
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
    let mut total =
        startup + read_cost(&path, loops, &work.to_all) + rows * each + rechecked * RECHECK * unit;
    if on_standby {
        // The server still counts only the pages that are not all-visible.
        total += visible_pages_cost(&path, rows);
    }
    if quals.order != Order::None && path.filters_further(rows) {
        total = startup + (total - startup) * FILTERED_ORDER;
    }
    CostEstimate {
        startup,
        total,
        selectivity: share.max(work.fetched),
        pages: (work.to_first.leaves + work.to_all.leaves).min(f64::from(path.index.pages)),
    }
}

/// Returns the cost of one search within a radius in one scope if all pages are cached, for
/// comparing the indexes of a table. Infinite for indexes on sets.
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

/// Cost of the table's pages that the server deducts, as all-visible, from the cost of an
/// index-only scan of `rows` rows.
fn visible_pages_cost(path: &ScanPath, rows: f64) -> f64 {
    let (random, _) = page_costs(path.table.reltablespace);
    path.pages_fetched(rows, path.table.pages) * path.table.allvisfrac * random
}

/// Cost of the reads of one search out of `loops` successive ones.
fn read_cost(path: &ScanPath, loops: f64, reads: &Reads) -> f64 {
    let leaves = reads.leaves.min(f64::from(path.index.pages.max(1)));
    let (random, sequential) = page_costs(path.index.reltablespace);
    let io = if loops > 1.0 {
        // With repeated searches, more and more of the index is in the cache.
        path.pages_fetched(leaves * loops, path.index.pages) * random / loops
    } else {
        // A descent reads a random leaf; its neighbours are read in order.
        let jumps = reads.descents.min(leaves);
        jumps * random + (leaves - jumps) * sequential
    };
    let unit = server::cpu_operator_cost();
    io + unit * (reads.descents * DESCENT + reads.leaves * LEAF)
}

/// Reads of a part of a search.
#[derive(Clone, Copy, Default)]
struct Reads {
    descents: f64,
    leaves: f64,
}

impl Reads {
    fn times(self, factor: f64) -> Self {
        Reads {
            descents: self.descents * factor,
            leaves: self.leaves * factor,
        }
    }

    /// Subtracts the reads that are already done.
    fn without(self, done: Reads) -> Self {
        Reads {
            descents: (self.descents - done.descents).max(0.0),
            leaves: (self.leaves - done.leaves).max(0.0),
        }
    }
}

/// Work of a search in the index.
#[derive(Default)]
struct Work {
    /// Reads before the first row that are not part of `to_all`.
    to_first: Reads,
    /// Reads from the first row to the last.
    to_all: Reads,
    /// Rows that are sorted before the first is returned.
    sorted_first: f64,
    /// Share of the table's rows that the server fetches, if it is known to be larger than the
    /// share that fulfils the conditions; else 0.
    fetched: f64,
}

impl Work {
    /// Rows are returned as they are found: the first, if there is any, after half of the probes.
    fn at_once(to_all: Reads) -> Self {
        let to_first = Reads {
            descents: to_all.descents / 2.0,
            leaves: to_all.leaves.min(to_all.descents) / 2.0,
        };
        Work {
            to_first,
            to_all: to_all.without(to_first),
            ..Work::default()
        }
    }

    /// `rows` rows are found and sorted before the first is returned.
    fn sorted(to_first: Reads, rows: f64) -> Self {
        Work {
            to_first,
            sorted_first: rows,
            ..Work::default()
        }
    }

    /// Estimates the work of a path that returns `expected` rows.
    fn from_path(path: &ScanPath, quals: &PathQuals, expected: f64) -> Self {
        let info = path.index;
        if info.hypothetical {
            // A hypothetical index has no pages: assume the default layout and its radius.
            return Work::at_once(Reads {
                descents: 4.0,
                leaves: 4.0,
            });
        }
        // The planner holds a lock on it.
        let opened = OpenRelation::index(info.indexoid, pg_sys::NoLock);
        let work = {
            let relation = opened.rel();
            with_words!(words_of(relation), N => {
                // An estimate need not find every visible row.
                let pages = IndexPages::new(relation, OldSnapshotCheck::NONE);
                let index = Index::<N>::with_pages(pages);
                let pages = f64::from(info.pages);
                let all = match index.metric {
                    Metric::Overlap => path.table.tuples,
                    _ => rows_of(&index.meta, pages),
                };
                // With a given scope only the rows of the scope are read, by every kind of search.
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
            to_all: work.to_all.times(quals.times),
            ..work
        }
    }

    /// Estimates the work in an index on fingerprints. `whole` reads all `rows` rows.
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
        // Rows are clustered by scope. Without one, a permutation is read whole.
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
            Radius::Default => Some(near_duplicate_bits(bits)),
            Radius::Known(radius) => Some(radius),
        };
        match (radius, quals.order) {
            (None, Order::None) => Work::at_once(whole.times(2.0)),
            (Some(radius), Order::None) => Work::at_once(within(radius)),
            (Some(radius), Order::ByAnother) => Work::sorted(within(radius), expected),
            (radius, _) => {
                // Rings are searched in turn. The earlier ones cost a third of the last, as each
                // costs a quarter of the next.
                let rings = |radius| within(radius).times(4.0 / 3.0);
                let nearest = expected_nearest(bits, rows).max(guaranteed);
                let (first, last) = match radius {
                    Some(radius) if radius <= guaranteed => (within(radius), Reads::default()),
                    Some(radius) => (rings(nearest.min(radius)), rings(radius)),
                    None => (rings(nearest), Reads::default()),
                };
                // A permutation that is read whole is read again for rows that did not fit in
                // memory.
                let read_whole = radius.is_none_or(|radius| within(radius).leaves >= whole.leaves);
                let last = if read_whole {
                    whole.times(whole_reads::<N>(expected, work_mem()))
                } else {
                    last
                };
                Work {
                    to_first: first,
                    to_all: last.without(first),
                    ..Work::default()
                }
            }
        }
    }

    /// Estimates the work in an index on sets with `pages` pages. The table has `tuples` rows, and
    /// `expected` are returned. `leaves` returns the number of leaves for a number of rows.
    fn by_elements(
        quals: &PathQuals,
        whole: Reads,
        [pages, tuples, expected]: [f64; 3],
        leaves: impl Fn(f64) -> f64,
    ) -> Self {
        let (descents, found) = match (quals.elements, quals.contained, quals.radius) {
            (_, _, Radius::Known(_)) => (1.0, expected),
            (_, Some(elements), _) => {
                // The rows of the rarest element are read. If elements are independent, its share
                // is at most the geometric mean of all shares.
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
            // Rows are clustered by scope.
            Scope::All => pages,
            Scope::One(_) | Scope::Without => descents + leaves(found) - 1.0,
        };
        // All rows are collected before the first is returned.
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

    /// Estimates the work in an index on signatures. `whole` reads a share of its rows.
    fn by_bands(bands: &Bands, quals: &PathQuals, whole: Reads, share: f64) -> Self {
        let count = bands.count() as f64;
        let mismatches = match quals.radius {
            Radius::None | Radius::Null => None,
            Radius::Known(mismatches) => Some(mismatches as usize),
            Radius::Signatures(radius) => Some(radius.mismatches(bands.hashes()).max(0) as usize),
            Radius::Unknown => Some(bands.guaranteed()),
            Radius::Default => Some(near_duplicate_mismatches(bands.hashes())),
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
                to_all: whole,
                fetched: share
                    * mismatches.map_or(1.0, |mismatches| bands.chance_sketch(mismatches)),
                ..Work::default()
            },
        }
    }
}
