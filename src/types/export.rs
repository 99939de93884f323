//! Exports the C symbols of the fingerprint types: the same functions for each type, with the name
//! of the type as a prefix.
use super::{Bigint, Fingerprint64, Fingerprint128, Fingerprint256};

/// Exports the functions of a type with distances: `PREFIX_distance`, `PREFIX_ball` and so on. The
/// type must implement `Fingerprint`. `$mode` is a mode of [`export!`](neardup_pg::fmgr::export):
/// `plain` if the type is passed by value, otherwise `checked`. It applies only to functions whose
/// arguments include no ball, because balls are always passed by reference.
macro_rules! export_distances {
    ($mode:ident $prefix:literal, $type:ty) => {
        ::neardup_pg::fmgr::export! {
            $mode concat!($prefix, "_distance") => $crate::types::distance::distance::<$type>;
            $mode concat!($prefix, "_distance_nulls_first") =>
                $crate::types::distance::distance_nulls_first::<$type>;
            $mode concat!($prefix, "_similarity") =>
                $crate::types::distance::similarity::<$type>;
            $mode concat!($prefix, "_similar") => $crate::types::distance::similar::<$type>;
            $mode concat!($prefix, "_within") => $crate::types::distance::within::<$type>;
            $mode concat!($prefix, "_at_distance") => $crate::types::distance::at_distance::<$type>;
            guarded concat!($prefix, "_ball") => $crate::types::ball::construct::<$type>;
            guarded concat!($prefix, "_ball_in") => $crate::types::ball::input::<$type>;
            guarded concat!($prefix, "_ball_out") => $crate::types::ball::output::<$type>;
            guarded concat!($prefix, "_ball_recv") => $crate::types::ball::receive::<$type>;
            guarded concat!($prefix, "_ball_send") => $crate::types::ball::send::<$type>;
            checked concat!($prefix, "_contained") => $crate::types::ball::contained::<$type>;
            checked concat!($prefix, "_contains") => $crate::types::ball::contains::<$type>;
            checked concat!($prefix, "_ball_similar") => $crate::types::ball::similar::<$type>;
            checked concat!($prefix, "_ball_hash") => $crate::types::ball_order::hash::<$type>;
            checked concat!($prefix, "_ball_hash_extended") =>
                $crate::types::ball_order::hash::<$type>;
        }
        $crate::types::order::export_order!(
            checked concat!($prefix, "_ball_"),
            $crate::types::ball_order::order::<$type>
        );
    };
}

/// Exports the functions of a type that the extension defines: `PREFIX_in`, `PREFIX_cmp` and so on,
/// and all functions that `export_distances!` exports. Does not export the sort support function.
/// The file that defines the type must do so.
macro_rules! export_fingerprint {
    ($mode:ident $prefix:literal, $type:ty) => {
        ::neardup_pg::fmgr::export! {
            guarded concat!($prefix, "_in") => $crate::types::fingerprint::input::<$type>;
            guarded concat!($prefix, "_out") => $crate::types::fingerprint::output::<$type>;
            guarded concat!($prefix, "_recv") => $crate::types::fingerprint::receive::<$type>;
            guarded concat!($prefix, "_send") => $crate::types::fingerprint::send::<$type>;
            guarded concat!($prefix, "_from_bytea") =>
                $crate::types::fingerprint::from_bytea::<$type>;
            guarded concat!($prefix, "_from_bit") => $crate::types::fingerprint::from_bit::<$type>;
            guarded concat!($prefix, "_to_bit") => $crate::types::fingerprint::to_bit::<$type>;
            guarded concat!($prefix, "_from_numeric") =>
                $crate::types::decimal::from_numeric::<$type>;
            guarded concat!($prefix, "_to_numeric") =>
                $crate::types::decimal::to_numeric::<$type>;
            $mode concat!($prefix, "_smaller") => $crate::types::fingerprint::smaller::<$type>;
            $mode concat!($prefix, "_larger") => $crate::types::fingerprint::larger::<$type>;
            $mode concat!($prefix, "_bit_count") => $crate::types::fingerprint::bit_count::<$type>;
            $mode concat!($prefix, "_hash") => $crate::types::fingerprint::hash::<$type>;
            $mode concat!($prefix, "_hash_extended") =>
                $crate::types::fingerprint::hash::<$type>;
        }
        $crate::types::order::export_order!(
            $mode concat!($prefix, "_"),
            $crate::types::fingerprint::order::<$type>
        );
        export_distances!($mode $prefix, $type);
    };
}

export_fingerprint!(plain "fingerprint", Fingerprint64);
export_fingerprint!(checked "fingerprint128", Fingerprint128);
export_fingerprint!(checked "fingerprint256", Fingerprint256);
export_distances!(plain "bigint", Bigint);
