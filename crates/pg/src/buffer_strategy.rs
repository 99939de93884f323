//! Small rings of buffers for reading many pages once.
use core::marker::PhantomData;

use pgrx::pg_sys;

use super::rel::Rel;

/// Ring of buffers for reading pages, or all shared buffers.
#[derive(Clone, Copy)]
pub struct Strategy<'a> {
    raw: pg_sys::BufferAccessStrategy,
    _ring: PhantomData<&'a ()>,
}

impl<'a> Strategy<'a> {
    /// No ring: pages may take any buffer.
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

    /// Ring for reading all pages of a relation once. The other buffers keep the pages that other
    /// queries use.
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

    /// The server's pointer; null without a ring.
    pub fn raw(self) -> pg_sys::BufferAccessStrategy {
        self.raw
    }

    /// Returns whether it is a ring.
    pub fn is_ring(self) -> bool {
        !self.raw.is_null()
    }
}
