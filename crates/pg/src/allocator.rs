//! The extension library's global allocator. It uses the system allocator, and a reserve in the
//! library's data for requests that the system cannot serve. Without the reserve, Rust would abort
//! the process at such a request (`super::memory`).
use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicBool, Ordering};
use std::alloc::System;

use neardup_sketch::memory;

/// Size of the reserve in bytes. A page of the reserve takes no memory until it is written. If no
/// free range of the reserve is long enough for a request, the allocation fails, and Rust aborts
/// the process unless the caller handles the failure.
const RESERVE: usize = 2 << 20;
/// Size in bytes of a unit of the reserve. A block from the reserve consists of whole units.
const UNIT: usize = 256;
const UNITS: usize = RESERVE / UNIT;

#[repr(C, align(4096))]
struct Space([u8; RESERVE]);

/// The system allocator together with the reserve.
struct WithReserve {
    /// Spin lock: true while a thread reads or changes `used`.
    locked: AtomicBool,
    space: UnsafeCell<Space>,
    /// Bitmap of the units of the reserve. The bit of an allocated unit is 1.
    used: UnsafeCell<[u64; UNITS / 64]>,
}

// SAFETY: the cells are accessed only while the lock is held.
unsafe impl Sync for WithReserve {}

#[global_allocator]
static ALLOCATOR: WithReserve = WithReserve {
    locked: AtomicBool::new(false),
    space: UnsafeCell::new(Space([0; RESERVE])),
    used: UnsafeCell::new([0; UNITS / 64]),
};

impl WithReserve {
    fn owns(&self, memory: *mut u8) -> bool {
        let offset = (memory as usize).wrapping_sub(self.space.get() as usize);
        offset < RESERVE
    }

    fn with_used<R>(&self, change: impl FnOnce(&mut [u64; UNITS / 64]) -> R) -> R {
        while self.locked.swap(true, Ordering::Acquire) {
            spin_loop();
        }
        // SAFETY: this thread holds the lock.
        let result = change(unsafe { &mut *self.used.get() });
        self.locked.store(false, Ordering::Release);
        result
    }

    /// Allocates a block from the reserve, for a request that the system allocator could not serve.
    /// Returns null if no range of free units is long enough. Records the shortage of memory
    /// (`report_shortage`) even if the reserve has a block, so that the statement soon ends with an
    /// error.
    ///
    /// Returns null without recording a shortage if the requesting code handles failed allocations
    /// itself (`may_fail`), or if the requested alignment exceeds [`UNIT`].
    #[cold]
    fn hand_out(&self, layout: Layout) -> *mut u8 {
        if memory::may_fail() || layout.align() > UNIT {
            return core::ptr::null_mut();
        }
        let units = layout.size().div_ceil(UNIT);
        let found = self.with_used(|used| {
            let is_used = |used: &[u64], unit: usize| used[unit / 64] >> (unit % 64) & 1 == 1;
            let mut free = 0;
            let end = (0..UNITS).find(|&unit| {
                free = if is_used(used, unit) { 0 } else { free + 1 };
                free == units
            })?;
            let start = end + 1 - units;
            (start..=end).for_each(|unit| used[unit / 64] |= 1 << (unit % 64));
            Some(start)
        });
        memory::report_shortage();
        match found {
            // SAFETY: `units` units from there lie within the reserve.
            Some(start) => unsafe { self.space.get().cast::<u8>().add(start * UNIT) },
            None => core::ptr::null_mut(),
        }
    }

    /// Frees the block of `size` bytes at the address `memory`, which is in the reserve.
    #[cold]
    fn take_back(&self, memory: *mut u8, size: usize) {
        let start = (memory as usize - self.space.get() as usize) / UNIT;
        self.with_used(|used| {
            let units = start..start + size.div_ceil(UNIT);
            units.for_each(|unit| used[unit / 64] &= !(1 << (unit % 64)));
        });
    }
}

// SAFETY: blocks come from the system allocator or from free units of the reserve. The address of
// a block shows its origin. Nothing here unwinds.
unsafe impl GlobalAlloc for WithReserve {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        let memory = unsafe { System.alloc(layout) };
        if memory.is_null() {
            return self.hand_out(layout);
        }
        memory
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises; a block from the reserve has the requested size.
        unsafe {
            let memory = System.alloc_zeroed(layout);
            if !memory.is_null() {
                return memory;
            }
            let memory = self.hand_out(layout);
            if !memory.is_null() {
                memory.write_bytes(0, layout.size());
            }
            memory
        }
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if self.owns(memory) {
            return self.take_back(memory, layout.size());
        }
        // SAFETY: as the caller promises; the block is not from the reserve.
        unsafe { System.dealloc(memory, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises; the system allocator gets only its own blocks. The old
        // block stays valid until its bytes are copied.
        unsafe {
            if !self.owns(memory) {
                let moved = System.realloc(memory, layout, size);
                if !moved.is_null() {
                    return moved;
                }
            }
            let layout_after = Layout::from_size_align_unchecked(size, layout.align());
            let moved = self.alloc(layout_after);
            if !moved.is_null() {
                core::ptr::copy_nonoverlapping(memory, moved, size.min(layout.size()));
                self.dealloc(memory, layout);
            }
            moved
        }
    }
}
