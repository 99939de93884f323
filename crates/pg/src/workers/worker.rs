//! The worker's part of a parallel job: reads the leader's data and sends messages to the leader.
use core::ffi::c_char;
use core::ptr::NonNull;

use pgrx::pg_sys;

use super::{
    END, QUERY, QUEUE_BYTES, QUEUES, RESULTS, ROWS, SCAN, SHARED, Shared, SharedCounter, Summary,
    WORDS,
};
use crate::build_scan::SharedScan;
use crate::server;

/// Number of words, including the first word [`ROWS`], at which the outbox sends its message.
const FULL: usize = 1024;

/// A worker's access to its job: the leader's data, and the outbox for messages to the leader.
pub struct Worker {
    words: Vec<u64>,
    scan: SharedScan,
    numbers: SharedCounter,
    outbox: Outbox,
}

/// The worker's end of its queue, and the message that is being filled.
pub struct Outbox {
    queue: *mut pg_sys::shm_mq_handle,
    message: Vec<u64>,
}

impl Worker {
    /// Reads the data that the leader has shared, and attaches to this worker's queue.
    ///
    /// # Safety
    /// The arguments are those that the server passes to the start function of
    /// [`super::Workers::launch`].
    pub unsafe fn new(segment: *mut pg_sys::dsm_segment, toc: *mut pg_sys::shm_toc) -> Self {
        // SAFETY: as the caller promises, the leader has made these parts.
        unsafe {
            let [shared, words, scan, queues, query] = [SHARED, WORDS, SCAN, QUEUES, QUERY]
                .map(|key| pg_sys::shm_toc_lookup(toc, key, false));
            let shared = NonNull::new_unchecked(shared.cast::<Shared>());
            // Shows the client's statement in pg_stat_activity and in the server's log.
            let query = query.cast::<c_char>().cast_const();
            pg_sys::debug_query_string = query;
            pg_sys::pgstat_report_activity(pg_sys::BackendState::STATE_RUNNING, query);
            pg_sys::pgstat_report_query_id(shared.as_ref().query_id as _, false);
            let number = server::parallel_worker_number() as usize;
            let queue = queues.byte_add(number * QUEUE_BYTES).cast();
            pg_sys::shm_mq_set_sender(queue, pg_sys::MyProc);
            pg_sys::InstrStartParallelQuery();
            Worker {
                words: core::slice::from_raw_parts(words.cast(), shared.as_ref().words).to_vec(),
                scan: SharedScan::new(scan.cast(), false),
                numbers: SharedCounter::new(shared),
                outbox: Outbox {
                    queue: pg_sys::shm_mq_attach(queue, segment, core::ptr::null_mut()),
                    message: vec![ROWS],
                },
            }
        }
    }

    /// Data that the leader has passed ([`super::Job::words`]).
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Table scan that all processes share. The caller must not use the result if
    /// [`super::Job::scan`] was `None`.
    pub(crate) fn scan(&self) -> SharedScan {
        self.scan
    }

    /// Returns the next number, from 0, of the counter that the leader and its workers share. Each
    /// number is returned to one process only.
    pub fn next_number(&self) -> u64 {
        self.numbers.next()
    }

    /// Outbox, by which the worker sends words to the leader.
    pub fn outbox(&mut self) -> &mut Outbox {
        &mut self.outbox
    }

    /// Ends the worker's part of the job. Sends the words that are still in the outbox, and then a
    /// last message with `results`, which [`super::Workers::finish`] returns to the leader. Closes
    /// the queue.
    pub fn finish(mut self, results: [u64; RESULTS]) {
        self.outbox.send_rows();
        let mut summary = Summary {
            kind: END,
            results,
            buffers: pg_sys::BufferUsage::default(),
            wal: pg_sys::WalUsage::default(),
        };
        // SAFETY: `new` has begun to count. The queue is attached, and not used any more.
        unsafe {
            pg_sys::InstrEndParallelQuery(&raw mut summary.buffers, &raw mut summary.wal);
            self.outbox.send(&[summary]);
            pg_sys::shm_mq_detach(self.outbox.queue);
        }
    }
}

impl Outbox {
    /// Appends words to the message for the leader, and sends the message when it is full. The
    /// words of one call are in the same message.
    pub fn put(&mut self, words: impl IntoIterator<Item = u64>) {
        self.message.extend(words);
        if self.message.len() >= FULL {
            self.send_rows();
        }
    }

    /// Sends the message with the words that it contains so far, and starts an empty message.
    fn send_rows(&mut self) {
        self.send(&self.message);
        self.message.truncate(1);
    }

    /// Sends `message`, whose elements consist of whole 64-bit words without padding. Waits until
    /// the queue has room for it.
    fn send<T>(&self, message: &[T]) {
        const { assert!(size_of::<T>().is_multiple_of(8)) };
        let bytes = size_of_val(message);
        // SAFETY: the queue is attached, and the message lives until it has been copied.
        let sent =
            unsafe { pg_sys::shm_mq_send(self.queue, bytes, message.as_ptr().cast(), false, true) };
        if sent != pg_sys::shm_mq_result::SHM_MQ_SUCCESS {
            pgrx::check_for_interrupts!();
            panic!("the leader has ended");
        }
    }
}
