//! The allocator of the library, and errors instead of aborts when memory runs out.
//!
//! Rust ends the process when an allocation fails that cannot report it, and the server then
//! restarts all sessions. So there are two lines of defence:
//!
//! - Memory that grows with the input is asked for by code that can report a failure
//!   (`neardup_sketch::memory`); it raises error 53200.
//! - All other allocations are of bounded size. When the system has no memory for one, it comes from a
//!   reserve that is part of the library's data, and the next call of [`check_interrupts`], the next
//!   growth or the end of the SQL function raises the error. What came from the reserve is given back
//!   while the error unwinds.
//!
//! An allocator must not unwind itself, which is why the error waits.
//!
//! The server allocates as well while an error is on its way to the client, and ends all sessions
//! if it cannot. So some memory is held back for it, and freed when such an error is made, by
//! neardup or by the server itself.
use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::alloc::System;

use neardup_sketch::memory;
use pgrx::{PgSqlErrorCode, pg_sys};

use super::errors::UserError;

/// Bytes of the reserve. Its pages take no memory before they are used.
const RESERVE: usize = 2 << 20;
/// Bytes of a unit, in which the reserve is handed out.
const UNIT: usize = 256;
const UNITS: usize = RESERVE / UNIT;

#[repr(C, align(4096))]
struct Space([u8; RESERVE]);

/// The system's allocator, and a reserve for when that has nothing.
struct WithReserve {
    locked: AtomicBool,
    space: UnsafeCell<Space>,
    /// A bit for each unit that is handed out.
    used: UnsafeCell<[u64; UNITS / 64]>,
}

// SAFETY: the cells are touched with the lock held.
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

    /// Memory of the reserve; null if the request may fail, or there is not enough in one piece.
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
            // SAFETY: so many units from there lie within the reserve.
            Some(start) => unsafe { self.space.get().cast::<u8>().add(start * UNIT) },
            None => core::ptr::null_mut(),
        }
    }

    #[cold]
    fn take_back(&self, memory: *mut u8, size: usize) {
        let start = (memory as usize - self.space.get() as usize) / UNIT;
        self.with_used(|used| {
            let units = start..start + size.div_ceil(UNIT);
            units.for_each(|unit| used[unit / 64] &= !(1 << (unit % 64)));
        });
    }
}

// SAFETY: blocks come from the system's allocator or from units of the reserve that were free;
// where a block came from is told by its address. Nothing here unwinds.
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
        // SAFETY: as the caller promises.
        let memory = unsafe { System.alloc_zeroed(layout) };
        if !memory.is_null() {
            return memory;
        }
        let memory = self.hand_out(layout);
        if !memory.is_null() {
            // SAFETY: what is handed out has that size.
            unsafe { memory.write_bytes(0, layout.size()) };
        }
        memory
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if self.owns(memory) {
            return self.take_back(memory, layout.size());
        }
        // SAFETY: as the caller promises; it is not from the reserve.
        unsafe { System.dealloc(memory, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !self.owns(memory) {
            // SAFETY: as the caller promises; it is not from the reserve.
            let moved = unsafe { System.realloc(memory, layout, size) };
            if !moved.is_null() {
                return moved;
            }
        }
        // SAFETY: as the caller promises; the old block stays as it is until it is copied.
        unsafe {
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

/// Makes growth that fails raise error 53200. Called once, when the library is loaded.
pub fn register() {
    memory::on_failure(|| UserError::out_of_memory().raise());
}

/// Raises error 53200 if the reserve was used since the last time.
#[inline]
pub fn check() {
    if memory::take_shortage() {
        UserError::out_of_memory().raise();
    }
}

/// Address space held back for the server's handling of an error; null while there is none.
static HELD_BACK: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
/// A memory context of the server asks for blocks of up to 1 MB before it gives up. Pages that
/// nothing is written to take no memory.
const HELD_BACK_BYTES: usize = 2 << 20;

#[cold]
fn hold_back() {
    let (access, kind) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    );
    // SAFETY: a new mapping, at an address of the system's choice, touches no other memory.
    let space = unsafe { libc::mmap(core::ptr::null_mut(), HELD_BACK_BYTES, access, kind, -1, 0) };
    if space == libc::MAP_FAILED {
        UserError::out_of_memory().raise();
    }
    HELD_BACK.store(space, Ordering::Relaxed);
}

/// Gives the address space back, for the server to handle an error with.
pub fn release_held_back() {
    let space = HELD_BACK.swap(core::ptr::null_mut(), Ordering::Relaxed);
    if !space.is_null() {
        // SAFETY: mapped by `hold_back` with this size, unmapped once, and never handed out.
        unsafe { libc::munmap(space, HELD_BACK_BYTES) };
    }
}

/// Gives the address space back if the error that the server is making is 53200.
///
/// An allocation of the server's own may be the one that fails. pgrx then copies the error into the
/// memory context of the caller, and if there is no memory for the copy either, jumps back to where
/// it makes that copy, until the server's stack of errors is full: a PANIC. Callbacks of the error
/// context run before that.
unsafe extern "C-unwind" fn before_an_error(_: *mut c_void) {
    // SAFETY: the server calls this while it makes a message, which is what `geterrcode` needs.
    if unsafe { pg_sys::geterrcode() } == PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY as i32 {
        release_held_back();
    }
}

/// Takes the callback off the server's list when a function ends, by an error as well.
struct Callback {
    previous: *mut pg_sys::ErrorContextCallback,
}

impl Drop for Callback {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: backends have one thread.
        unsafe { pg_sys::error_context_stack = self.previous };
    }
}

/// Runs a function that the server calls. It ends with error 53200 if the reserve was used, and
/// memory is held back for the server's handling of errors meanwhile.
#[inline(always)]
pub fn guarded<R>(function: impl FnOnce() -> R) -> R {
    if HELD_BACK.load(Ordering::Relaxed).is_null() {
        hold_back();
    }
    // SAFETY: backends have one thread.
    let previous = unsafe { pg_sys::error_context_stack };
    let mut entry = pg_sys::ErrorContextCallback {
        previous,
        callback: Some(before_an_error),
        arg: core::ptr::null_mut(),
    };
    let _callback = Callback { previous };
    // SAFETY: as above; the entry outlives its place in the list, which `_callback` ends.
    unsafe { pg_sys::error_context_stack = &raw mut entry };
    // Whatever was before ended in its own error.
    memory::take_shortage();
    let result = function();
    check();
    result
}

/// Ends the statement if that was asked for, or if the reserve was used. To be called in every loop
/// whose length depends on the input.
pub fn check_interrupts() {
    pgrx::check_for_interrupts!();
    check();
}
