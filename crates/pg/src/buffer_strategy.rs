//! Rings of few buffers, through which much is read once.
use core::marker::PhantomData;

use pgrx::pg_sys;

use super::rel::Rel;

/// A ring of buffers to read through, or none.
#[derive(Clone, Copy)]
pub struct Strategy<'a> {
    raw: pg_sys::BufferAccessStrategy,
    _ring: PhantomData<&'a ()>,
}

impl<'a> Strategy<'a> {
    /// All buffers.
    pub const ALL: Self = Strategy {
        raw: core::ptr::null_mut(),
        _ring: PhantomData,
    };

    /// Wraps what the server passes.
    ///
    /// # Safety
    /// The ring is null or lives for `'a`.
    pub unsafe fn new(raw: pg_sys::BufferAccessStrategy) -> Self {
        Strategy {
            raw,
            _ring: PhantomData,
        }
    }

    /// A ring for reading all pages of a relation once, so that what others need stays in the rest
    /// of the buffers.
    pub fn for_one_pass(_relation: Rel<'a>) -> Self {
        // SAFETY: a relation is open within a transaction, whose memory outlives it.
        unsafe {
            let outer = pg_sys::MemoryContextSwitchTo(pg_sys::TopTransactionContext);
            let kind = pg_sys::BufferAccessStrategyType::BAS_BULKREAD;
            let ring = Strategy::new(pg_sys::GetAccessStrategy(kind));
            pg_sys::MemoryContextSwitchTo(outer);
            ring
        }
    }

    /// The server's ring.
    pub fn raw(self) -> pg_sys::BufferAccessStrategy {
        self.raw
    }

    /// Returns whether it is a ring.
    pub fn is_ring(self) -> bool {
        !self.raw.is_null()
    }
}
