//! Functions behind `=`, `<` and the other comparison operators.

/// Exports the comparisons of an order, `fn(&Call) -> Ordering` of the two arguments, as symbols
/// `PREFIXeqSUFFIX` and so on. Without a suffix also exports `PREFIXcmp` for btree: -1, 0 or 1.
/// The first word is the mode of [`export!`](neardup_pg::fmgr::export).
macro_rules! export_order {
    ($mode:ident $prefix:expr, $order:expr) => {
        $crate::types::order::export_order!($mode $prefix, $order, "");
        ::neardup_pg::fmgr::export! {
            $mode concat!($prefix, "cmp") =>
                |call: &mut ::neardup_pg::fmgr::Call|
                    ::pgrx::pg_sys::Datum::from($order(call) as i32);
        }
    };
    ($mode:ident $prefix:expr, $order:expr, $suffix:literal) => {
        $crate::types::order::export_order! { @ $mode $prefix, $order, $suffix;
            "eq" is_eq, "ne" is_ne, "lt" is_lt, "le" is_le, "gt" is_gt, "ge" is_ge
        }
    };
    (@ $mode:ident $prefix:expr, $order:expr, $suffix:literal; $one:literal $test:ident
        $(, $others:literal $tests:ident)*) => {
        ::neardup_pg::fmgr::export! {
            $mode concat!($prefix, $one, $suffix) =>
                |call: &mut ::neardup_pg::fmgr::Call|
                    ::pgrx::pg_sys::Datum::from($order(call).$test());
        }
        $($crate::types::order::export_order! { @ $mode $prefix, $order, $suffix;
            $others $tests
        })*
    };
}
pub(super) use export_order;
