//! A worker's side: reading a part of the table, and sending what the caller makes of it.
use core::ffi::c_char;

use neardup_blocktree::key::Tid;
use pgrx::pg_sys;

use super::{END, QUERY, QUEUE_BYTES, QUEUES, ROWS, SCAN, SHARED, Shared, Summary};
use crate::pg::build_scan::{BuildScan, RowSource, SharedScan};
use crate::pg::index_row::IndexRow;
use crate::pg::rel::{OpenRelation, Rel};
use crate::pg::server;

/// Words from which on a message is sent.
const FULL: usize = 1024;

/// A worker, seen from itself.
pub struct BuildWorker {
    // In the order in which they are closed.
    index: OpenRelation,
    table: OpenRelation,
    is_concurrent: bool,
    scan: SharedScan,
    outbox: Outbox,
}

/// A queue, seen from its sender, and the message that is being made.
pub struct Outbox {
    queue: *mut pg_sys::shm_mq_handle,
    message: Vec<u64>,
}

impl BuildWorker {
    /// Opens the leader's relations and the queue to it.
    ///
    /// # Safety
    /// The server passes these to the function `neardup_build_worker`, in a process that
    /// [`super::Workers::launch`] started.
    pub unsafe fn new(segment: *mut pg_sys::dsm_segment, toc: *mut pg_sys::shm_toc) -> Self {
        // SAFETY: the caller's promise: the leader has made these parts.
        unsafe {
            let [shared, scan, queues, query] =
                [SHARED, SCAN, QUEUES, QUERY].map(|key| pg_sys::shm_toc_lookup(toc, key, false));
            let shared = &*shared.cast::<Shared>();
            // For pg_stat_activity and the log.
            let query = query.cast::<c_char>().cast_const();
            pg_sys::debug_query_string = query;
            pg_sys::pgstat_report_activity(pg_sys::BackendState::STATE_RUNNING, query);
            pg_sys::pgstat_report_query_id(shared.query_id as _, false);
            // The locks that the leader has, by which it may be known to deserve them.
            let (table_lock, index_lock) = match shared.is_concurrent {
                false => (pg_sys::ShareLock, pg_sys::AccessExclusiveLock),
                true => (pg_sys::ShareUpdateExclusiveLock, pg_sys::RowExclusiveLock),
            };
            let number = server::parallel_worker_number() as usize;
            let queue = queues.byte_add(number * QUEUE_BYTES).cast();
            pg_sys::shm_mq_set_sender(queue, pg_sys::MyProc);
            BuildWorker {
                table: OpenRelation::any(shared.table, table_lock),
                index: OpenRelation::any(shared.index, index_lock),
                is_concurrent: shared.is_concurrent,
                scan: SharedScan::new(scan.cast(), false),
                outbox: Outbox {
                    queue: pg_sys::shm_mq_attach(queue, segment, core::ptr::null_mut()),
                    message: vec![ROWS],
                },
            }
        }
    }

    /// The index.
    pub fn index(&self) -> Rel<'_> {
        self.index.rel()
    }

    /// Takes part in the scan. The function puts words for the leader into the outbox for each row
    /// that belongs into the index.
    pub fn run(mut self, mut each: impl FnMut(IndexRow, Tid, &mut Outbox)) {
        let (table, index) = (self.table.rel(), self.index.rel());
        // SAFETY: both relations are open and locked, and one is an index of the other.
        let scan = unsafe {
            pg_sys::InstrStartParallelQuery();
            let info = pg_sys::BuildIndexInfo(index.raw());
            (*info).ii_Concurrent = self.is_concurrent;
            BuildScan::new(table, index, info)
        };
        let outbox = &mut self.outbox;
        let rows_seen = scan.scan(RowSource::Shared(self.scan), |row, tid| {
            each(row, tid, outbox);
        });
        outbox.send_rows();
        outbox.send_summary(rows_seen, &scan);
    }
}

impl Outbox {
    /// Adds words, which come to the leader together.
    pub fn put(&mut self, words: impl IntoIterator<Item = u64>) {
        self.message.extend(words);
        if self.message.len() >= FULL {
            self.send_rows();
        }
    }

    /// Sends the rows so far.
    fn send_rows(&mut self) {
        self.send(&self.message);
        self.message.truncate(1);
    }

    /// Sends the last message, and closes the queue.
    fn send_summary(&mut self, rows_seen: f64, scan: &BuildScan) {
        let mut summary = Summary {
            kind: END,
            rows_seen,
            has_broken_chain: 0,
            buffers: pg_sys::BufferUsage::default(),
            wal: pg_sys::WalUsage::default(),
        };
        // SAFETY: the description of the index lives as long as the scan. The queue is attached,
        // and not used any more.
        unsafe {
            summary.has_broken_chain = u64::from((*scan.info()).ii_BrokenHotChain);
            pg_sys::InstrEndParallelQuery(&raw mut summary.buffers, &raw mut summary.wal);
            self.send(&[summary]);
            pg_sys::shm_mq_detach(self.queue);
        }
    }

    /// Sends whole words without gaps, and waits until there is room for them.
    fn send<T>(&self, message: &[T]) {
        const { assert!(size_of::<T>().is_multiple_of(8)) };
        let bytes = size_of_val(message);
        // SAFETY: the queue is attached, and the message lives until it has been copied.
        let sent =
            unsafe { pg_sys::shm_mq_send(self.queue, bytes, message.as_ptr().cast(), false, true) };
        if sent != pg_sys::shm_mq_result::SHM_MQ_SUCCESS {
            pgrx::check_for_interrupts!();
            panic!("the leader of the build has ended");
        }
    }
}
