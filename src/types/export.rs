//! The symbols of a fingerprint type: the same functions for each, under names that begin with the
//! type's.
use super::{Bigint, Fingerprint64, Fingerprint128, Fingerprint256};

/// Exports the functions of a type with distances: `PREFIX_distance`, `PREFIX_ball` and so on, for
/// a type that implements `Threshold`.
macro_rules! export_distances {
    ($prefix:literal, $type:ty) => {
        $crate::pg::fmgr::export! {
            plain concat!($prefix, "_distance") => $crate::types::distance::distance::<$type>;
            plain concat!($prefix, "_similarity") =>
                $crate::types::distance::similarity::<$type>;
            plain concat!($prefix, "_similar") => $crate::types::distance::similar::<$type>;
            plain concat!($prefix, "_within") => $crate::types::distance::within::<$type>;
            plain concat!($prefix, "_at_distance") => $crate::types::distance::at_distance::<$type>;
            guarded concat!($prefix, "_ball") => $crate::types::ball::construct::<$type>;
            guarded concat!($prefix, "_ball_in") => $crate::types::ball::input::<$type>;
            guarded concat!($prefix, "_ball_out") => $crate::types::ball::output::<$type>;
            guarded concat!($prefix, "_ball_recv") => $crate::types::ball::receive::<$type>;
            guarded concat!($prefix, "_ball_send") => $crate::types::ball::send::<$type>;
            plain concat!($prefix, "_contained") => $crate::types::ball::contained::<$type>;
            plain concat!($prefix, "_contains") => $crate::types::ball::contains::<$type>;
            plain concat!($prefix, "_ball_similar") => $crate::types::ball::similar::<$type>;
            plain concat!($prefix, "_ball_hash") => $crate::types::ball_order::hash::<$type>;
            plain concat!($prefix, "_ball_hash_extended") =>
                $crate::types::ball_order::hash::<$type>;
        }
        $crate::types::order::export_order!(
            plain concat!($prefix, "_ball_"),
            $crate::types::ball_order::order::<$type>
        );
    };
}

/// Exports the functions of a type of the extension: `PREFIX_in`, `PREFIX_cmp` and so on, and its
/// distances. Its sort support function is exported where it is defined.
macro_rules! export_fingerprint {
    ($prefix:literal, $type:ty) => {
        $crate::pg::fmgr::export! {
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
            plain concat!($prefix, "_smaller") => $crate::types::fingerprint::smaller::<$type>;
            plain concat!($prefix, "_larger") => $crate::types::fingerprint::larger::<$type>;
            plain concat!($prefix, "_bit_count") => $crate::types::fingerprint::bit_count::<$type>;
            plain concat!($prefix, "_hash") => $crate::types::fingerprint::hash::<$type>;
            plain concat!($prefix, "_hash_extended") =>
                $crate::types::fingerprint::hash::<$type>;
        }
        $crate::types::order::export_order!(
            plain concat!($prefix, "_"),
            $crate::types::fingerprint::order::<$type>
        );
        export_distances!($prefix, $type);
    };
}

export_fingerprint!("fingerprint", Fingerprint64);
export_fingerprint!("fingerprint128", Fingerprint128);
export_fingerprint!("fingerprint256", Fingerprint256);
export_distances!("bigint", Bigint);
