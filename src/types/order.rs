//! Exports the SQL functions behind the comparison operators `=`, `<` and so on.

/// Exports the functions behind the six comparison operators of a type, as symbols
/// `PREFIXeqSUFFIX`, `PREFIXltSUFFIX` and so on. `$order` is a function from `&Call` to the
/// `Ordering` of the two arguments. If no suffix is given, also exports `PREFIXcmp` for btree
/// indexes, which returns -1, 0 or 1. `$mode` is a mode of [`export!`](neardup_pg::fmgr::export).
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
