//! Casts from integers to fingerprint types.
//!
//! A `fingerprint` gets the bits of the integer as a `bigint`, so a negative integer is
//! sign-extended. Wider fingerprint types read the integer as an unsigned number.
use neardup_pg::errors::UserError;
use neardup_pg::fmgr::{Call, export};
use pgrx::PgSqlErrorCode;
use pgrx::pg_sys::Datum;

use super::{Fingerprint, Fingerprint64, Fingerprint128, Fingerprint256};

/// Casts an integer to `fingerprint`. The fingerprint has the 64 bits of the integer as a bigint,
/// so a negative integer is valid.
fn narrow(value: i64) -> Datum {
    Fingerprint64(value as u64).into_datum()
}

/// Casts an integer to a fingerprint of more than 64 bits, whose high bits are 0. Raises error
/// 22003 for a negative number.
fn wide<T: Fingerprint>(value: i64) -> Datum {
    let Ok(value) = u64::try_from(value) else {
        UserError::new(
            PgSqlErrorCode::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
            format!("{value} is out of range for type {}", T::TYPE_NAME),
        )
        .detail(format!(
            "A {} is an unsigned number from 0 to 2^{} - 1.",
            T::TYPE_NAME,
            T::BITS
        ))
        .raise()
    };
    let mut words = vec![0; T::WORDS];
    words[T::WORDS - 1] = value;
    T::from_words(&words).into_datum()
}

export! {
    guarded "fingerprint_from_int2" => |call: &mut Call| narrow(call.int2(0).into());
    guarded "fingerprint_from_int4" => |call: &mut Call| narrow(call.int4(0).into());
    guarded "fingerprint128_from_int2" =>
        |call: &mut Call| wide::<Fingerprint128>(call.int2(0).into());
    guarded "fingerprint128_from_int4" =>
        |call: &mut Call| wide::<Fingerprint128>(call.int4(0).into());
    guarded "fingerprint128_from_int8" => |call: &mut Call| wide::<Fingerprint128>(call.int8(0));
    guarded "fingerprint256_from_int2" =>
        |call: &mut Call| wide::<Fingerprint256>(call.int2(0).into());
    guarded "fingerprint256_from_int4" =>
        |call: &mut Call| wide::<Fingerprint256>(call.int4(0).into());
    guarded "fingerprint256_from_int8" => |call: &mut Call| wide::<Fingerprint256>(call.int8(0));
}
