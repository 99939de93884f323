//! Version differences in the planner's estimates, range table entries and sort items.
use pgrx::pg_sys;

/// The planner's estimate of the number of elements in the array that an expression returns.
///
/// # Safety
/// `root` is the planner's state, and `array` is an expression of its query.
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

/// Returns whether a range table entry of this kind represents the expressions of a GROUP BY. Such
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

/// Marks a sort item as ascending in the field `reverse_sort`, which exists since version 18.
pub fn set_ascending(item: &mut pg_sys::SortGroupClause) {
    #[cfg(not(any(feature = "pg15", feature = "pg16", feature = "pg17")))]
    {
        item.reverse_sort = false;
    }
    #[cfg(any(feature = "pg15", feature = "pg16", feature = "pg17"))]
    let _ = item;
}
