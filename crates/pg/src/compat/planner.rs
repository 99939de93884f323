//! The planner's range table and estimates.
use pgrx::pg_sys;

/// The number of elements that an array expression is expected to have.
///
/// # Safety
/// The pointers are the planner's state and one of its expressions.
pub unsafe fn estimate_array_length(
    root: *mut pg_sys::PlannerInfo,
    array: *mut pg_sys::Node,
) -> f64 {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(not(any(feature = "pg15", feature = "pg16")))]
        return pg_sys::estimate_array_length(root, array);
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        {
            let _ = root;
            f64::from(pg_sys::estimate_array_length(array))
        }
    }
}

/// Returns whether an entry of the range table represents the expressions of a GROUP BY. Such
/// entries exist since version 18.
pub fn is_group(kind: pg_sys::RTEKind::Type) -> bool {
    #[cfg(not(any(feature = "pg15", feature = "pg16", feature = "pg17")))]
    return kind == pg_sys::RTEKind::RTE_GROUP;
    #[cfg(any(feature = "pg15", feature = "pg16", feature = "pg17"))]
    {
        let _ = kind;
        false
    }
}

/// Marks a sort item as ascending. The field for it exists since version 18.
pub fn set_ascending(item: &mut pg_sys::SortGroupClause) {
    #[cfg(not(any(feature = "pg15", feature = "pg16", feature = "pg17")))]
    {
        item.reverse_sort = false;
    }
    #[cfg(any(feature = "pg15", feature = "pg16", feature = "pg17"))]
    let _ = item;
}
