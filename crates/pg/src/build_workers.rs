//! Workers that read the table of a new index together with the backend that builds the index.
//!
//! All processes share one table scan, as in a parallel build of a btree.
use core::ffi::CStr;

use neardup_blocktree::key::Tid;
use pgrx::pg_sys;

use super::build_scan::{BuildScan, RowSource};
use super::compat;
use super::index_row::IndexRow;
use super::rel::{OpenRelation, Rel};
use super::snapshot::RegisteredSnapshot;
use super::workers::{Job, Outbox, Worker, Workers};

/// Function that a worker runs (`src/am/build.rs`).
const ENTRY_POINT: &CStr = c"neardup_build_worker";

/// Rows that the leader reads before it polls the queues again.
const LOOK_EVERY: u32 = 32;

/// Input of the leader.
pub enum Input<'a> {
    /// Row that the leader has read.
    Row(IndexRow<'a>, Tid),
    /// Words that a worker has sent: the words of one or more rows, as written by the function
    /// passed to [`BuildWorker::run`].
    Words(&'a [u64]),
}

/// Leader's handle of the running workers of a build.
pub struct BuildWorkers<'a> {
    scan: &'a BuildScan<'a>,
    workers: Workers,
    /// Registered until all workers have ended.
    _snapshot: Option<RegisteredSnapshot>,
}

impl<'a> BuildWorkers<'a> {
    /// Starts the workers that the planner requests for the index, or as many as are available.
    /// Returns `None` if the leader must work alone.
    pub fn launch(scan: &'a BuildScan<'a>) -> Option<Self> {
        let (table, index) = (scan.table(), scan.index());
        let wanted = compat::build_workers(scan.info(), table.oid(), index.oid());
        if wanted <= 0 {
            return None;
        }
        let is_concurrent = scan.info().ii_Concurrent;
        // As in a serial build: reads all rows, or in a concurrent build the rows of a snapshot.
        let snapshot = is_concurrent.then(RegisteredSnapshot::from_transaction);
        let oids = [table, index].map(|relation| u64::from(relation.oid().to_u32()));
        let workers = Workers::launch(&Job {
            entry_point: ENTRY_POINT,
            workers: wanted as usize,
            words: &[oids[0], oids[1], u64::from(is_concurrent)],
            scan: Some((table, snapshot.as_ref())),
            wait_event: pg_sys::WaitEventIPC::WAIT_EVENT_PARALLEL_CREATE_INDEX_SCAN,
        })?;
        Some(BuildWorkers {
            scan,
            workers,
            _snapshot: snapshot,
        })
    }

    /// Takes part in the scan, and calls a function for each row that the leader reads and for
    /// each message of a worker. Returns the number of rows that all processes have read. Raises
    /// the error of a failed worker.
    pub fn run(self, mut each: impl FnMut(Input)) -> f64 {
        let BuildWorkers {
            scan, mut workers, ..
        } = self;
        let shared = workers.scan().expect("the job has a scan");
        let mut rows = 0_u32;
        let mut seen = scan.scan(RowSource::Shared(shared), |row, tid| {
            each(Input::Row(row, tid));
            rows = rows.wrapping_add(1);
            if rows.is_multiple_of(LOOK_EVERY) {
                workers.take(|words| each(Input::Words(words)));
            }
        });
        for [rows_seen, has_broken_chain] in workers.finish(|words| each(Input::Words(words))) {
            seen += f64::from_bits(rows_seen);
            if has_broken_chain != 0 {
                scan.note_broken_chain();
            }
        }
        seen
    }
}

/// State of a build in a worker process.
pub struct BuildWorker {
    // The index is dropped, and so closed, before the table.
    index: OpenRelation,
    table: OpenRelation,
    is_concurrent: bool,
    worker: Worker,
}

impl BuildWorker {
    /// Opens the leader's relations.
    pub fn new(worker: Worker) -> Self {
        let [table, index, is_concurrent] = worker.words() else {
            panic!("words of another job");
        };
        let [table, index] = [table, index].map(|oid| pg_sys::Oid::from_u32(*oid as u32));
        let is_concurrent = *is_concurrent != 0;
        // The leader holds the same locks; members of a lock group do not conflict.
        let (table_lock, index_lock) = match is_concurrent {
            false => (pg_sys::ShareLock, pg_sys::AccessExclusiveLock),
            true => (pg_sys::ShareUpdateExclusiveLock, pg_sys::RowExclusiveLock),
        };
        BuildWorker {
            table: OpenRelation::any(table, table_lock),
            index: OpenRelation::any(index, index_lock),
            is_concurrent,
            worker,
        }
    }

    /// The index.
    pub fn index(&self) -> Rel<'_> {
        self.index.rel()
    }

    /// Takes part in the scan. For each row that belongs in the index, the function writes words
    /// for the leader to the outbox.
    pub fn run(mut self, mut each: impl FnMut(IndexRow, Tid, &mut Outbox)) {
        let (table, index) = (self.table.rel(), self.index.rel());
        // SAFETY: both relations are open and locked, and `index` is an index of `table`.
        let scan = unsafe {
            // The worker already has the owner's rights, as the leader does.
            let info = pg_sys::BuildIndexInfo(index.raw());
            (*info).ii_Concurrent = self.is_concurrent;
            BuildScan::new(table, index, info)
        };
        let shared = self.worker.scan();
        let rows_seen = scan.scan(RowSource::Shared(shared), |row, tid| {
            each(row, tid, self.worker.outbox());
        });
        let has_broken_chain = u64::from(scan.info().ii_BrokenHotChain);
        self.worker.finish([rows_seen.to_bits(), has_broken_chain]);
    }
}
