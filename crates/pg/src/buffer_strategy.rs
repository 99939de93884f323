//! Buffer access strategies of the server: small rings of buffers for reading many pages once.
use core::marker::PhantomData;

use pgrx::pg_sys;

use super::rel::Rel;

/// Buffers into which pages are read: a small ring of them, or all shared buffers.
#[derive(Clone, Copy)]
pub struct Strategy<'a> {
    raw: pg_sys::BufferAccessStrategy,
    _ring: PhantomData<&'a ()>,
}

impl<'a> Strategy<'a> {
    /// No ring: pages are read into any of the shared buffers.
    pub const ALL: Self = Strategy {
        raw: core::ptr::null_mut(),
        _ring: PhantomData,
    };

    /// Wraps a strategy that the server passes, for example to a vacuum. Null means no ring.
    ///
    /// # Safety
    /// `raw` is null, or a strategy that lives for `'a`.
    pub unsafe fn new(raw: pg_sys::BufferAccessStrategy) -> Self {
        Strategy {
            raw,
            _ring: PhantomData,
        }
    }

    /// Makes a ring for reading all pages of a relation once, so that they do not displace pages
    /// that other queries use. The ring lives until the transaction ends. `_relation` only limits
    /// the lifetime of the result. A relation is closed at the end of the transaction at the
    /// latest, so the result cannot outlive the ring.
    pub fn for_one_pass(_relation: Rel<'a>) -> Self {
        // SAFETY: the relation is open in a transaction, whose memory context outlives it.
        unsafe {
            let outer = pg_sys::MemoryContextSwitchTo(pg_sys::TopTransactionContext);
            let kind = pg_sys::BufferAccessStrategyType::BAS_BULKREAD;
            let ring = Strategy::new(pg_sys::GetAccessStrategy(kind));
            pg_sys::MemoryContextSwitchTo(outer);
            ring
        }
    }

    /// The server's pointer to the ring; null if there is no ring.
    pub fn raw(self) -> pg_sys::BufferAccessStrategy {
        self.raw
    }

    /// Returns whether pages are read into a ring and not into all shared buffers.
    pub fn is_ring(self) -> bool {
        !self.raw.is_null()
    }
}
