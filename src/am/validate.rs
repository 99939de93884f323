//! The operators that an operator class may have, and `amvalidate`, which checks them.
use core::ffi::CStr;

use pgrx::{pg_guard, pg_sys};

use crate::types::{Ball, Fingerprint64};

/// The highest strategy number.
pub const STRATEGIES: u16 = 4;
/// `fp <@ ball`.
pub const WITHIN: u16 = 1;
/// `a ~= b`: within [`NEAR_RADIUS`].
pub const NEAR: u16 = 2;
/// `a = b`.
pub const EQUAL: u16 = 3;
/// `ORDER BY a <#> b`: the distance as an integer.
pub const DISTANCE: u16 = 4;

/// The conventional threshold for fingerprints of 64 bits (Manku, Jain, Das Sarma, WWW 2007).
pub const NEAR_RADIUS: u32 = 3;

/// Bytes of a ball around a fingerprint of 64 bits.
const BALL_SIZE: i16 = size_of::<Ball<Fingerprint64>>() as i16;

/// Checks an operator class: its type, and each operator's strategy and types.
#[pg_guard]
pub unsafe extern "C-unwind" fn validate(opclass: pg_sys::Oid) -> bool {
    // SAFETY: the server calls within a transaction; the cache entries are released below.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(
            pg_sys::SysCacheIdentifier::CLAOID as i32,
            pg_sys::Datum::from(opclass),
        );
        if tuple.is_null() {
            panic!(
                "cache lookup failed for operator class {}",
                opclass.to_u32()
            );
        }
        let form = pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_opclass>();
        let (family, input) = ((*form).opcfamily, (*form).opcintype);
        pg_sys::ReleaseSysCache(tuple);

        let mut sound = true;
        if pg_sys::get_typlen(input) != 8 {
            complain("operator class is for a type that has not 64 bits", opclass);
            sound = false;
        }
        let members = pg_sys::SearchSysCacheList(
            pg_sys::SysCacheIdentifier::AMOPSTRATEGY as i32,
            1,
            pg_sys::Datum::from(family),
            pg_sys::Datum::from(0),
            pg_sys::Datum::from(0),
        );
        let mut found = [false; STRATEGIES as usize + 1];
        for i in 0..(*members).n_members {
            let member = *(*members).members.as_ptr().add(i as usize);
            let form =
                pg_sys::GETSTRUCT(&raw mut (*member).tuple).cast::<pg_sys::FormData_pg_amop>();
            match problem(&*form, input) {
                None => found[(*form).amopstrategy as usize] = true,
                Some(problem) => {
                    complain(problem, (*form).amopopr);
                    sound = false;
                }
            }
        }
        pg_sys::ReleaseCatCacheList(members);
        if !found[usize::from(WITHIN)] {
            complain("operator class lacks the operator <@ (strategy 1)", opclass);
            sound = false;
        }
        sound
    }
}

/// What is wrong with an operator of a family for `input`.
unsafe fn problem(form: &pg_sys::FormData_pg_amop, input: pg_sys::Oid) -> Option<&'static str> {
    if form.amoplefttype != input {
        return Some("operator's left side is not the class's type");
    }
    let strategy = u16::try_from(form.amopstrategy).unwrap_or(0);
    let right_is_sound = match strategy {
        WITHIN => {
            // SAFETY: looks up a catalogue.
            let length = unsafe { pg_sys::get_typlen(form.amoprighttype) };
            length == BALL_SIZE
        }
        NEAR | EQUAL | DISTANCE => form.amoprighttype == input,
        _ => return Some("operator class has an operator with an unknown strategy number"),
    };
    // SAFETY: looks up a catalogue.
    let result = unsafe { pg_sys::get_op_rettype(form.amopopr) };
    let (purpose, expected) = match strategy {
        DISTANCE => (pg_sys::AMOP_ORDER, pg_sys::INT4OID),
        _ => (pg_sys::AMOP_SEARCH, pg_sys::BOOLOID),
    };
    if form.amoppurpose as u8 != purpose {
        return Some("operator is for another purpose than its strategy's");
    }
    if !right_is_sound || result != expected {
        return Some("operator has other types than its strategy asks for");
    }
    None
}

/// Tells as INFO, as the server's own access methods do, what is wrong with which object.
fn complain(what: &str, object: pg_sys::Oid) {
    const ACCESS_METHOD: &CStr = c"neardup";
    pgrx::info!(
        "{}: {what} (object {})",
        ACCESS_METHOD.to_string_lossy(),
        object.to_u32()
    );
}
