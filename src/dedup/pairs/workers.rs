//! Search for pairs of fingerprints by several processes, for a caller that reads all pairs at
//! once.
//!
//! The leader divides each permutation of the index into ranges. The leader and the workers take
//! one range after the other, compare its entries, and look up the rows of the pairs in table order
//! under the leader's snapshot. Workers send the addresses to the leader, which stores all pairs in
//! a tuplestore of the server, in memory up to `work_mem` and in a temporary file beyond.
//!
//! The server allows no writes while workers run, so all workers end before the leader returns. A
//! caller that reads pair by pair may write in between, so one process does its search.
use core::ffi::CStr;

use neardup_blocktree::key::Tid;
use pgrx::pg_sys::{self, ForkNumber, WaitEventIPC};

use super::PairSearch;
use super::fingerprint_pairs::FingerprintPairs;
use super::in_table_order::{DISTANCE_BITS, FoundPair};
use crate::am::keys::Layout;
use crate::dedup::scope::ScopeColumns;
use neardup_pg::locked_index::LockedIndex;
use neardup_pg::server;
use neardup_pg::workers::{Job, Worker, Workers, export_worker};

/// Exported name of the function that runs in a worker.
const ENTRY_POINT: &CStr = c"neardup_pairs_worker";
export_worker! { "neardup_pairs_worker" => work }

/// Nanoseconds per unit of the server's costs, as in `src/am/cost.rs`.
const COST_UNIT: f64 = 5_000.0;

/// Callback that takes a pair: the addresses of two rows, and their distance in bits.
pub type Give<'a> = &'a mut dyn FnMut([Tid; 2], u32);

impl PairSearch for FingerprintPairs {
    fn next_pair(&mut self) -> Option<([Tid; 2], u32)> {
        self.next()
    }

    fn for_each_pair(&mut self, give: Give) {
        let relations = self.reopen();
        match launch(self, &relations) {
            Some(workers) => lead(self, &relations, workers, give),
            None => {
                while self.step(&relations, &|| None) {
                    self.take().for_each(|found| give_found(found, give));
                }
            }
        }
    }
}

/// Starts workers for a search. Returns `None` if one process should search alone: the search is
/// short, or workers cannot run.
fn launch(pairs: &mut FingerprintPairs, relations: &LockedIndex) -> Option<Workers> {
    let workers = wanted_workers(relations, pairs.cost());
    if workers == 0 {
        return None;
    }
    let words = pairs.divide(relations, workers + 1)?;
    Workers::launch(&Job {
        entry_point: ENTRY_POINT,
        workers,
        words: &words,
        scan: None,
        wait_event: WaitEventIPC::WAIT_EVENT_EXECUTE_GATHER,
    })
}

/// Returns the number of workers for a search that takes one process `nanoseconds`. Returns 0 if
/// one process should search alone. Follows the planner's rules for a parallel index scan.
fn wanted_workers(relations: &LockedIndex, nanoseconds: f64) -> usize {
    let (table, index) = (relations.table(), relations.index());
    // Workers cannot read temporary tables. In parallel mode there are workers already.
    let is_possible = !server::IsInParallelMode()
        && table.persistence() != pg_sys::RELPERSISTENCE_TEMP
        && ScopeColumns::is_parallel_safe(relations, &Layout::from_index(index));
    if !is_possible {
        return 0;
    }
    let by_size = || workers_by_size(index.blocks(ForkNumber::MAIN_FORKNUM));
    let most = usize::try_from(server::max_parallel_workers_per_gather()).unwrap_or(0);
    let wanted = table.parallel_workers().unwrap_or_else(by_size).min(most);
    let saved = nanoseconds / COST_UNIT * (wanted as f64 / (wanted + 1) as f64);
    if saved > server::parallel_setup_cost() {
        wanted
    } else {
        0
    }
}

/// Returns the number of workers for an index with this number of pages: one for
/// `min_parallel_index_scan_size`, and one more for each tripling of the size, like the server's
/// `compute_parallel_worker`.
fn workers_by_size(blocks: u32) -> usize {
    let least = u64::try_from(server::min_parallel_index_scan_size()).unwrap_or(0);
    if u64::from(blocks) < least {
        return 0;
    }
    (u64::from(blocks) / least.max(1)).max(1).ilog(3) as usize + 1
}

/// Runs the leader's part of a search. Passes the pairs that the leader finds, and the pairs that
/// the workers send, to `give`.
fn lead(pairs: &mut FingerprintPairs, relations: &LockedIndex, mut workers: Workers, give: Give) {
    let takes_part = server::parallel_leader_participation();
    pairs.share(workers.running() + usize::from(takes_part));
    while takes_part && pairs.step(relations, &|| Some(workers.next_number())) {
        pairs.take().for_each(|found| give_found(found, give));
        workers.take(|words| give_words(words, give));
    }
    workers.finish(|words| give_words(words, give));
}

/// Runs a worker's part of a search, and sends the pairs to the leader.
fn work(mut worker: Worker) {
    let (relations, mut pairs) = FingerprintPairs::from_words(worker.words());
    while pairs.step(&relations, &|| Some(worker.next_number())) {
        for found in pairs.take() {
            let [a, b] = found.rows.map(Tid::packed);
            let words = [a << DISTANCE_BITS | u64::from(found.distance), b];
            worker.outbox().put(words);
        }
    }
    worker.finish([0; 2]);
}

fn give_found(found: FoundPair, give: Give) {
    give(found.rows, found.distance);
}

/// Passes the pairs in a worker's message to `give`.
fn give_words(words: &[u64], give: Give) {
    for &[a, b] in words.as_chunks().0 {
        let rows = [a >> DISTANCE_BITS, b].map(Tid::from_packed);
        give(rows, (a & ((1 << DISTANCE_BITS) - 1)) as u32);
    }
}
