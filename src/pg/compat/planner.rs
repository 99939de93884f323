//! The planner's estimates.
use pgrx::pg_sys;

/// The number of elements that an array expression is expected to have.
///
/// # Safety
/// The planner's state and an expression of it.
pub unsafe fn estimate_array_length(
    root: *mut pg_sys::PlannerInfo,
    array: *mut pg_sys::Node,
) -> f64 {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(any(feature = "pg17", feature = "pg18"))]
        return pg_sys::estimate_array_length(root, array);
        #[cfg(not(any(feature = "pg17", feature = "pg18")))]
        {
            let _ = root;
            f64::from(pg_sys::estimate_array_length(array))
        }
    }
}
