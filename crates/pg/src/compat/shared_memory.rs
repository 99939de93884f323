//! Version differences in shared memory that a library allocates while the server runs.
use pgrx::pg_sys;

/// Returns the address of the shared memory segment with the name `name` and `size` bytes. All
/// processes of the server get the same segment. The first process that calls this function creates
/// the segment and calls `initialize` with its address. Other processes that call it meanwhile
/// wait. The segment stays mapped while the process lives, and exists while the server runs. Raises
/// an error if there is no memory for the segment.
///
/// Before version 17 the server has no named segments. So the segment's handle is stored in the
/// main shared memory under `name`. The server keeps a little of this memory for libraries that are
/// loaded after its start; `contrib/pg_prewarm` uses it too.
///
/// # Safety
/// The caller is in a transaction. `size` and `initialize` are the same in all processes.
#[cfg(any(feature = "pg15", feature = "pg16"))]
pub unsafe fn named_segment(
    name: &'static core::ffi::CStr,
    size: usize,
    initialize: unsafe extern "C-unwind" fn(*mut core::ffi::c_void),
) -> *mut core::ffi::c_void {
    /// Index of `AddinShmemInitLock` in the server's array of locks (lwlocknames.txt).
    const ADDIN_SHMEM_INIT_LOCK: usize = 21;
    // SAFETY: the caller's promise. Errors release the lock. The handle is written last, so an
    // earlier error leaves it unchanged, and the server drops a segment that is not pinned.
    unsafe {
        let lock = &raw mut (*pg_sys::MainLWLockArray.add(ADDIN_SHMEM_INIT_LOCK)).lock;
        pg_sys::LWLockAcquire(lock, pg_sys::LWLockMode::LW_EXCLUSIVE);
        let mut found = false;
        let size_of_handle = size_of::<pg_sys::dsm_handle>();
        let handle = pg_sys::ShmemInitStruct(name.as_ptr(), size_of_handle, &mut found)
            .cast::<pg_sys::dsm_handle>();
        if !found {
            *handle = 0;
        }
        let segment = match *handle {
            // DSM_HANDLE_INVALID.
            0 => {
                let segment = pg_sys::dsm_create(size, 0);
                initialize(pg_sys::dsm_segment_address(segment));
                pg_sys::dsm_pin_segment(segment);
                *handle = pg_sys::dsm_segment_handle(segment);
                segment
            }
            handle => pg_sys::dsm_attach(handle),
        };
        if segment.is_null() {
            crate::errors::UserError::new(
                pgrx::PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
                "could not attach to a shared memory segment",
            )
            .detail(
                "A process of this server created the segment, but the segment no longer exists.",
            )
            .raise();
        }
        pg_sys::dsm_pin_mapping(segment);
        pg_sys::LWLockRelease(lock);
        pg_sys::dsm_segment_address(segment)
    }
}

/// Returns the address of the shared memory segment with the name `name` and `size` bytes. All
/// processes of the server get the same segment. The first process that calls this function creates
/// the segment and calls `initialize` with its address. Other processes that call it meanwhile
/// wait. The segment stays mapped while the process lives, and exists while the server runs. Raises
/// an error if there is no memory for the segment.
///
/// # Safety
/// The caller is in a transaction. `size` and `initialize` are the same in all processes.
#[cfg(not(any(feature = "pg15", feature = "pg16")))]
pub unsafe fn named_segment(
    name: &'static core::ffi::CStr,
    size: usize,
    initialize: unsafe extern "C-unwind" fn(*mut core::ffi::c_void),
) -> *mut core::ffi::c_void {
    let mut found = false;
    // SAFETY: the caller's promise.
    unsafe { pg_sys::GetNamedDSMSegment(name.as_ptr(), size, Some(initialize), &mut found) }
}
