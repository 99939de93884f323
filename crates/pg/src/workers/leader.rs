//! The leader's part of a parallel job: starts workers and receives their messages.
use core::ffi::CStr;
use core::ptr::NonNull;
use core::sync::atomic::AtomicU64;

use pgrx::pg_sys;

use super::{
    END, LIBRARY, QUERY, QUEUE_BYTES, QUEUES, RESULTS, ROWS, SCAN, SHARED, Shared, SharedCounter,
    Summary, WORDS,
};
use crate::backend;
use crate::build_scan::SharedScan;
use crate::rel::Rel;
use crate::snapshot::RegisteredSnapshot;

/// Maximum number of messages to read from one worker's queue before the next worker's queue is
/// read.
const TAKEN_IN_TURN: u32 = 8;

/// Description of a parallel job.
pub struct Job<'a> {
    /// Name of the workers' start function: a symbol exported by [`super::export_worker`].
    pub entry_point: &'static CStr,
    /// Maximum number of workers to start.
    pub workers: usize,
    /// Data for the workers ([`super::Worker::words`]).
    pub words: &'a [u64],
    /// Table that all processes scan together, and the snapshot that decides which rows the scan
    /// returns. Without a snapshot, the scan returns all row versions. `None` if the job has no
    /// table scan.
    pub scan: Option<(Rel<'a>, Option<&'a RegisteredSnapshot>)>,
    /// Wait event that pg_stat_activity shows for the leader while it waits for workers.
    pub wait_event: u32,
}

/// The leader's handle of its running workers.
pub struct Workers {
    context: *mut pg_sys::ParallelContext,
    scan: Option<SharedScan>,
    /// Counter that the leader shares with the workers. `None` only if no shared memory was
    /// available; then no worker is running.
    numbers: Option<SharedCounter>,
    queues: Queues,
    wait_event: u32,
}

impl Workers {
    /// Starts the requested number of workers, or fewer if the server does not have so many
    /// available. Returns `None` if no worker has started; then the leader must do the whole job.
    pub fn launch(job: &Job) -> Option<Self> {
        // SAFETY: the table is open and locked. All parts of the shared memory are written before
        // a worker starts, and all workers have ended before it is freed.
        unsafe {
            pg_sys::EnterParallelMode();
            let (library, function) = (LIBRARY.as_ptr(), job.entry_point.as_ptr());
            let context = pg_sys::CreateParallelContext(library, function, job.workers as i32);
            let mut workers = Workers {
                context,
                scan: None,
                numbers: None,
                queues: Queues::default(),
                wait_event: job.wait_event,
            };
            if let Some(shared) = share(context, job) {
                pg_sys::LaunchParallelWorkers(context);
                let launched = (*context).nworkers_launched as usize;
                let attach = |(i, queue)| {
                    // The worker's handle makes the queue report a worker that never starts.
                    let worker = (*(*context).worker.add(i)).bgwhandle;
                    Queue(pg_sys::shm_mq_attach(queue, (*context).seg, worker))
                };
                let queues = shared.queues.into_iter().take(launched).enumerate();
                workers.queues.open = queues.map(attach).collect();
                workers.scan = shared.scan;
                workers.numbers = Some(shared.numbers);
            }
            if workers.queues.open.is_empty() {
                workers.finish(|_| ());
                return None;
            }
            Some(workers)
        }
    }

    /// Number of workers that have not ended yet. A worker counts as running until the leader has
    /// read its last message.
    pub fn running(&self) -> usize {
        self.queues.open.len()
    }

    /// Table scan that all processes share; `None` if the job has none.
    pub(crate) fn scan(&self) -> Option<SharedScan> {
        self.scan
    }

    /// Returns the next number, from 0, of the counter that the leader and its workers share. Each
    /// number is returned to one process only.
    pub fn next_number(&self) -> u64 {
        self.numbers.as_ref().map_or(0, SharedCounter::next)
    }

    /// Calls `each` with the messages that have arrived, up to `TAKEN_IN_TURN` from each worker.
    /// A message contains the words of one or more calls of `Outbox::put`. Returns false if no
    /// message has arrived.
    pub fn take(&mut self, mut each: impl FnMut(&[u64])) -> bool {
        self.queues.take(&mut each)
    }

    /// Waits for all workers to end, and calls `each` with each of their messages. Returns the
    /// words that each worker passed to [`super::Worker::finish`], in the order in which the
    /// workers ended. Raises the error of a worker that has failed.
    pub fn finish(mut self, mut each: impl FnMut(&[u64])) -> Vec<[u64; RESULTS]> {
        while !self.queues.open.is_empty() {
            if !self.queues.take(&mut each) {
                backend::wait(None, self.wait_event);
            }
        }
        // SAFETY: the context is the one made in the parallel mode that ends here, and its shared
        // memory is no longer used.
        unsafe {
            pg_sys::WaitForParallelWorkersToFinish(self.context);
            // The server has raised the error of a worker that ended early, if it had any.
            let launched = (*self.context).nworkers_launched as usize;
            assert_eq!(self.queues.results.len(), launched, "a worker was lost");
            pg_sys::DestroyParallelContext(self.context);
            pg_sys::ExitParallelMode();
        }
        self.queues.results
    }
}

/// The leader's pointers into the memory that it shares with its workers.
struct SharedMemory {
    scan: Option<SharedScan>,
    numbers: SharedCounter,
    /// Queue of each worker.
    queues: Vec<*mut pg_sys::shm_mq>,
}

/// Text of the client's statement with the final NUL; empty if there is none. Valid until the
/// statement ends.
fn query_text() -> &'static [u8] {
    // SAFETY: the server keeps the text, which ends with a NUL, as long as the statement runs. A
    // leader ends before its statement.
    let text = unsafe {
        match pg_sys::debug_query_string.is_null() {
            true => c"",
            false => CStr::from_ptr(pg_sys::debug_query_string),
        }
    };
    text.to_bytes_with_nul()
}

/// Makes the memory that the leader shares with its workers, and fills it. `None` if the server has
/// no shared memory left.
///
/// # Safety
/// The context is new, and the job's table is open.
unsafe fn share(context: *mut pg_sys::ParallelContext, job: &Job) -> Option<SharedMemory> {
    // SAFETY: the caller's promise. Each part is as long as what is written to it.
    unsafe {
        let query = query_text();
        let workers = (*context).nworkers as usize;
        let any = &raw mut pg_sys::SnapshotAnyData;
        let scan = (job.scan.as_ref()).map(|(table, snapshot)| {
            let snapshot = snapshot.map_or(any, RegisteredSnapshot::raw);
            (table.raw(), snapshot)
        });
        let scan_bytes = scan.map_or(0, |(table, snapshot)| {
            pg_sys::table_parallelscan_estimate(table, snapshot)
        });
        let parts = [
            (SHARED, size_of::<Shared>()),
            (WORDS, size_of_val(job.words)),
            (SCAN, scan_bytes),
            (QUEUES, QUEUE_BYTES * workers),
            (QUERY, query.len()),
        ];
        let estimator = &mut (*context).estimator;
        for (_, bytes) in parts {
            // The same arithmetic as in the server's macros `shm_toc_estimate_chunk` and
            // `..._keys`.
            estimator.space_for_chunks += bytes.next_multiple_of(pg_sys::ALIGNOF_BUFFER as usize);
            estimator.number_of_keys += 1;
        }
        pg_sys::InitializeParallelDSM(context);
        if (*context).seg.is_null() {
            return None;
        }
        let [shared, words, shared_scan, queues, query_copy] = parts.map(|(key, bytes)| {
            let part = pg_sys::shm_toc_allocate((*context).toc, bytes);
            pg_sys::shm_toc_insert((*context).toc, key, part);
            part
        });
        let shared = NonNull::new(shared.cast::<Shared>())?;
        shared.write(Shared {
            query_id: pg_sys::pgstat_get_my_query_id() as _,
            words: job.words.len(),
            next: AtomicU64::new(0),
        });
        core::ptr::copy_nonoverlapping(job.words.as_ptr(), words.cast(), job.words.len());
        core::ptr::copy_nonoverlapping(query.as_ptr(), query_copy.cast(), query.len());
        let queue = |i| {
            let queue = pg_sys::shm_mq_create(queues.byte_add(i * QUEUE_BYTES), QUEUE_BYTES);
            pg_sys::shm_mq_set_receiver(queue, pg_sys::MyProc);
            queue
        };
        Some(SharedMemory {
            scan: scan.map(|(table, snapshot)| {
                pg_sys::table_parallelscan_initialize(table, shared_scan.cast(), snapshot);
                SharedScan::new(shared_scan.cast(), true)
            }),
            numbers: SharedCounter::new(shared),
            queues: (0..workers).map(queue).collect(),
        })
    }
}

/// Queues of all workers, and the results of the workers that have finished.
#[derive(Default)]
struct Queues {
    /// Queues of the workers that have not ended.
    open: Vec<Queue>,
    /// Results of each worker that has sent its last message.
    results: Vec<[u64; RESULTS]>,
}

/// The leader's end of a worker's queue.
struct Queue(*mut pg_sys::shm_mq_handle);

/// Result of an attempt to read a message from a queue.
enum Received<'a> {
    /// No message has arrived.
    Nothing,
    /// Words that the worker has sent by `Outbox::put`.
    Words(&'a [u64]),
    /// Results in the last message of the worker.
    End([u64; RESULTS]),
    /// The worker has ended without a last message, or could not be started.
    Lost,
}

impl Queues {
    /// Calls `each` with the messages that have arrived, up to [`TAKEN_IN_TURN`] from each worker.
    /// Removes the queues of workers that have ended. Returns false if no message has arrived.
    fn take(&mut self, each: &mut impl FnMut(&[u64])) -> bool {
        let mut took_some = false;
        self.open.retain_mut(|queue| {
            for _ in 0..TAKEN_IN_TURN {
                match queue.receive() {
                    Received::Nothing => return true,
                    Received::Words(words) => each(words),
                    Received::Lost => return false,
                    Received::End(results) => {
                        self.results.push(results);
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
    /// Reads the next message, if one has arrived. The message is valid until the next call.
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
            Received::End((*summary).results)
        }
    }
}
