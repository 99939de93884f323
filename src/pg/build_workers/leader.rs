//! The leader's side: starting workers, and taking what they send.
use core::ffi::CStr;

use neardup_blocktree::key::Tid;
use pgrx::pg_sys;

use super::{
    END, ENTRY_POINT, LIBRARY, QUERY, QUEUE_BYTES, QUEUES, ROWS, SCAN, SHARED, Shared, Summary,
};
use crate::pg::build_scan::{BuildScan, RowSource, SharedScan};
use crate::pg::index_row::IndexRow;
use crate::pg::snapshot::RegisteredSnapshot;
use crate::pg::{backend, compat};

/// Rows that the leader reads itself between two looks at the queues.
const LOOK_EVERY: u32 = 32;
/// Messages that are taken of a queue before it is the next one's turn.
const TAKEN_IN_TURN: u32 = 8;

/// Wait event of a leader that has read its part, as pg_stat_activity shows it.
const WAITS_FOR_ROWS: u32 = pg_sys::WaitEventIPC::WAIT_EVENT_PARALLEL_CREATE_INDEX_SCAN;

/// Input of the leader.
pub enum Input<'a> {
    /// A row that it has read itself.
    Row(IndexRow<'a>, Tid),
    /// Words that a worker has sent: one or more times what [`BuildWorker::run`] was given for a
    /// row.
    Words(&'a [u64]),
}

/// Workers that have been started, seen from the leader.
pub struct Workers<'a> {
    scan: &'a BuildScan<'a>,
    context: *mut pg_sys::ParallelContext,
    shared_scan: SharedScan,
    snapshot: Option<RegisteredSnapshot>,
    queues: Queues,
}

impl<'a> Workers<'a> {
    /// Starts as many workers as the server's planner wants for the index, or as many of these as
    /// there are. `None`: the leader is to work alone.
    pub fn launch(scan: &'a BuildScan<'a>) -> Option<Self> {
        // SAFETY: the relations are open and locked, and the description of the index is the
        // server's. All parts of the shared memory are written before a worker starts; the workers
        // end, or are ended, before it goes.
        unsafe {
            let info = &*scan.info();
            let wanted = compat::build_workers(info, scan.table().oid(), scan.index().oid());
            if wanted <= 0 {
                return None;
            }
            // As for a build by one process: all rows, or in a concurrent one those of a snapshot.
            let snapshot = (info.ii_Concurrent).then(RegisteredSnapshot::of_transaction);
            pg_sys::EnterParallelMode();
            let (library, function) = (LIBRARY.as_ptr(), ENTRY_POINT.as_ptr());
            let context = pg_sys::CreateParallelContext(library, function, wanted);
            let shared = share(context, scan, snapshot.as_ref());
            if shared.is_some() {
                pg_sys::LaunchParallelWorkers(context);
            }
            let launched = (*context).nworkers_launched as usize;
            let (Some((shared_scan, queues)), 1..) = (shared, launched) else {
                drop(snapshot);
                end_parallel_mode(context);
                return None;
            };
            let attach = |(i, queue)| {
                // With the worker's handle, so that one which never starts is noticed.
                let worker = (*(*context).worker.add(i)).bgwhandle;
                Queue(pg_sys::shm_mq_attach(queue, (*context).seg, worker))
            };
            let queues = queues.into_iter().take(launched).enumerate();
            Some(Workers {
                scan,
                context,
                shared_scan,
                snapshot,
                queues: Queues {
                    open: queues.map(attach).collect(),
                    ..Queues::default()
                },
            })
        }
    }

    /// Takes part in the scan, and calls a function for each row that the leader reads and each
    /// message of a worker. Returns the number of rows that all have seen. Raises the error of a
    /// worker that has failed.
    pub fn run(mut self, mut each: impl FnMut(Input)) -> f64 {
        let queues = &mut self.queues;
        let mut rows = 0_u32;
        let source = RowSource::Shared(self.shared_scan);
        let seen = self.scan.scan(source, |row, tid| {
            each(Input::Row(row, tid));
            rows = rows.wrapping_add(1);
            if rows.is_multiple_of(LOOK_EVERY) {
                queues.take(&mut each);
            }
        });
        while !queues.open.is_empty() {
            if !queues.take(&mut each) {
                backend::wait(None, WAITS_FOR_ROWS);
            }
        }
        seen + self.finish()
    }

    /// Waits for the workers to end. Returns the number of rows that they have seen.
    fn finish(self) -> f64 {
        let Workers { queues, scan, .. } = self;
        // SAFETY: the context is the one that was made; nothing in its shared memory is used any
        // more. The description of the index is the server's.
        unsafe {
            pg_sys::WaitForParallelWorkersToFinish(self.context);
            // The server has raised the error of a worker that ended early, if it had any.
            let launched = (*self.context).nworkers_launched as usize;
            assert_eq!(queues.ended, launched, "a worker has lost its rows");
            drop(self.snapshot);
            end_parallel_mode(self.context);
            (*scan.info()).ii_BrokenHotChain |= queues.has_broken_chain;
        }
        queues.rows_seen
    }
}

/// Makes the memory that the leader shares with its workers, and fills it. Returns the scan and the
/// queues in it; `None` if there is no such memory.
///
/// # Safety
/// The context is new, and the relations and the snapshot are those of the build.
unsafe fn share(
    context: *mut pg_sys::ParallelContext,
    scan: &BuildScan,
    snapshot: Option<&RegisteredSnapshot>,
) -> Option<(SharedScan, Vec<*mut pg_sys::shm_mq>)> {
    let table = scan.table().raw();
    // SAFETY: the caller's promise. Each part is as long as what is written to it.
    unsafe {
        let any = &raw mut pg_sys::SnapshotAnyData;
        let snapshot = snapshot.map_or(any, RegisteredSnapshot::raw);
        let query = match pg_sys::debug_query_string.is_null() {
            true => c"",
            false => CStr::from_ptr(pg_sys::debug_query_string),
        };
        let query = query.to_bytes_with_nul();
        let workers = (*context).nworkers as usize;
        let scan_bytes = pg_sys::table_parallelscan_estimate(table, snapshot);
        let parts = [
            (SHARED, size_of::<Shared>()),
            (SCAN, scan_bytes),
            (QUEUES, QUEUE_BYTES * workers),
            (QUERY, query.len()),
        ];
        let estimator = &mut (*context).estimator;
        for (_, bytes) in parts {
            // As the server's macros do it.
            estimator.space_for_chunks += bytes.next_multiple_of(pg_sys::ALIGNOF_BUFFER as usize);
            estimator.number_of_keys += 1;
        }
        pg_sys::InitializeParallelDSM(context);
        if (*context).seg.is_null() {
            return None;
        }
        let [shared, shared_scan, queues, query_copy] = parts.map(|(key, bytes)| {
            let part = pg_sys::shm_toc_allocate((*context).toc, bytes);
            pg_sys::shm_toc_insert((*context).toc, key, part);
            part
        });
        shared.cast::<Shared>().write(Shared {
            table: scan.table().oid(),
            index: scan.index().oid(),
            is_concurrent: (*scan.info()).ii_Concurrent,
            query_id: pg_sys::pgstat_get_my_query_id() as _,
        });
        pg_sys::table_parallelscan_initialize(table, shared_scan.cast(), snapshot);
        core::ptr::copy_nonoverlapping(query.as_ptr(), query_copy.cast(), query.len());
        let queue = |i| {
            let queue = pg_sys::shm_mq_create(queues.byte_add(i * QUEUE_BYTES), QUEUE_BYTES);
            pg_sys::shm_mq_set_receiver(queue, pg_sys::MyProc);
            queue
        };
        let shared_scan = SharedScan::new(shared_scan.cast(), true);
        Some((shared_scan, (0..workers).map(queue).collect()))
    }
}

/// Frees a context whose workers have ended, or were never started.
///
/// # Safety
/// The context has been made in the parallel mode that is ended, and is not used again.
unsafe fn end_parallel_mode(context: *mut pg_sys::ParallelContext) {
    // SAFETY: the caller's promise.
    unsafe {
        pg_sys::DestroyParallelContext(context);
        pg_sys::ExitParallelMode();
    }
}

/// The queues of all workers, and the sums of what these have told in the end.
#[derive(Default)]
struct Queues {
    /// Those through which messages may come.
    open: Vec<Queue>,
    /// Workers that have read all their rows.
    ended: usize,
    rows_seen: f64,
    has_broken_chain: bool,
}

/// A queue, seen from its receiver.
struct Queue(*mut pg_sys::shm_mq_handle);

/// Answer of a queue.
enum Received<'a> {
    Nothing,
    Words(&'a [u64]),
    End {
        rows: f64,
        has_broken_chain: bool,
    },
    /// The worker has ended, or cannot be started.
    Lost,
}

impl Queues {
    /// Passes on messages that are there. Returns false if there were none.
    fn take(&mut self, each: &mut impl FnMut(Input)) -> bool {
        let mut took_some = false;
        self.open.retain_mut(|queue| {
            for _ in 0..TAKEN_IN_TURN {
                match queue.receive() {
                    Received::Nothing => return true,
                    Received::Words(words) => each(Input::Words(words)),
                    Received::Lost => return false,
                    Received::End {
                        rows,
                        has_broken_chain,
                    } => {
                        self.ended += 1;
                        self.rows_seen += rows;
                        self.has_broken_chain |= has_broken_chain;
                        return false;
                    }
                }
                took_some = true;
            }
            true
        });
        took_some
    }
}

impl Queue {
    /// The next message, if it is there. It stays until the next call.
    fn receive(&mut self) -> Received<'_> {
        use pg_sys::shm_mq_result::{SHM_MQ_SUCCESS, SHM_MQ_WOULD_BLOCK};
        let (mut bytes, mut data) = (0, core::ptr::null_mut());
        // SAFETY: the queue is attached. Messages are words, at an address for words, and the last
        // one of a worker is a summary.
        unsafe {
            match pg_sys::shm_mq_receive(self.0, &mut bytes, &mut data, true) {
                SHM_MQ_SUCCESS => (),
                SHM_MQ_WOULD_BLOCK => return Received::Nothing,
                _ => return Received::Lost,
            }
            let words = core::slice::from_raw_parts(data.cast::<u64>(), bytes / 8);
            if let [ROWS, rows @ ..] = words {
                return Received::Words(rows);
            }
            assert!(words[0] == END && bytes == size_of::<Summary>());
            let summary = data.cast::<Summary>();
            let usage = (&raw mut (*summary).buffers, &raw mut (*summary).wal);
            pg_sys::InstrAccumParallelQuery(usage.0, usage.1);
            Received::End {
                rows: (*summary).rows_seen,
                has_broken_chain: (*summary).has_broken_chain != 0,
            }
        }
    }
}
