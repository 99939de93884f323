//! Parallel index builds: workers read the table of a new index together with the leader, which is
//! the backend that builds the index. For the rows that a worker reads, it sends 64-bit words to
//! the leader.
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

/// Exported symbol of the function that a worker runs (`src/am/build.rs`).
const ENTRY_POINT: &CStr = c"neardup_build_worker";

/// Number of rows that the leader reads before it polls the workers' queues again.
const ROWS_PER_POLL: u32 = 32;

/// Input that [`BuildWorkers::run`] passes to the leader's function: a row that the leader has
/// read, or words that a worker has sent.
pub enum LeaderInput<'a> {
    /// Index values and address of a row that the leader itself has read.
    Row(IndexRow<'a>, Tid),
    /// Words for one or more rows that a worker has read, as written by the function passed to
    /// [`BuildWorker::run`].
    Words(&'a [u64]),
}

/// The running workers of an index build, and the leader's own scan.
pub struct BuildWorkers<'a> {
    scan: &'a BuildScan<'a>,
    workers: Workers,
    /// Snapshot of a concurrent build, registered until all workers have ended; `None` for other
    /// builds.
    _snapshot: Option<RegisteredSnapshot>,
}

impl<'a> BuildWorkers<'a> {
    /// Starts as many workers as the server wants for the index, or fewer if fewer are available.
    /// Returns `None` if no worker runs, so that the leader must build the index alone.
    pub fn launch(scan: &'a BuildScan<'a>) -> Option<Self> {
        let (table, index) = (scan.table(), scan.index());
        let wanted = compat::build_workers(scan.info(), table.oid(), index.oid());
        if wanted <= 0 {
            return None;
        }
        let is_concurrent = scan.info().ii_Concurrent;
        // A concurrent build reads the rows that a snapshot sees, and other builds read all rows,
        // in the same way as builds without workers.
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

    /// Reads the leader's part of the table and waits for the workers. Calls `each` with each row
    /// that the leader reads, and with the words of each message that a worker sends. Returns the
    /// number of rows that all processes together have read. Raises the error of a failed worker.
    pub fn run(self, mut each: impl FnMut(LeaderInput)) -> f64 {
        let BuildWorkers {
            scan, mut workers, ..
        } = self;
        let shared = workers.scan().expect("the job has a scan");
        let mut rows = 0_u32;
        let mut seen = scan.scan(RowSource::Shared(shared), |row, tid| {
            each(LeaderInput::Row(row, tid));
            rows = rows.wrapping_add(1);
            if rows.is_multiple_of(ROWS_PER_POLL) {
                workers.take(|words| each(LeaderInput::Words(words)));
            }
        });
        for [rows_seen, has_broken_chain] in workers.finish(|words| each(LeaderInput::Words(words)))
        {
            seen += f64::from_bits(rows_seen);
            if has_broken_chain != 0 {
                scan.note_broken_chain();
            }
        }
        seen
    }
}

/// An index build in a worker process, with the table and the index opened.
pub struct BuildWorker {
    // Declared before the table, so that the index is dropped, and so closed, first.
    index: OpenRelation,
    table: OpenRelation,
    /// True for CREATE INDEX CONCURRENTLY and REINDEX CONCURRENTLY.
    is_concurrent: bool,
    worker: Worker,
}

impl BuildWorker {
    /// Opens the table and the index, whose OIDs the leader has sent.
    pub fn new(worker: Worker) -> Self {
        let [table, index, is_concurrent] = worker.words() else {
            panic!("words of another job");
        };
        let [table, index] = [table, index].map(|oid| pg_sys::Oid::from_u32(*oid as u32));
        let is_concurrent = *is_concurrent != 0;
        // The leader holds the same locks. Locks of a leader and its workers do not conflict.
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

    /// The index that is being built.
    pub fn index(&self) -> Rel<'_> {
        self.index.rel()
    }

    /// Reads this worker's part of the table. Calls `each` for each row that belongs in the index,
    /// with the row's index values, its address and the outbox. `each` writes words for the leader
    /// into the outbox.
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
