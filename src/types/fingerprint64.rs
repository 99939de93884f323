//! The types with 64 bits, passed by value: `fingerprint`, and `bigint` read as 64 bits (often used
//! for image hashes).
use core::fmt::Write;

use pgrx::pg_sys;

use super::fingerprint::Fingerprint;
use neardup_pg::datum_sort;
use neardup_pg::fmgr::{Call, export};

// The SQL script declares the type `fingerprint` as passed by value.
const _: () = assert!(
    size_of::<pg_sys::Datum>() == 8,
    "neardup needs a 64-bit server"
);

/// Value of the SQL type `fingerprint`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Fingerprint64(pub u64);

impl From<[u64; 1]> for Fingerprint64 {
    fn from([word]: [u64; 1]) -> Self {
        Fingerprint64(word)
    }
}

/// Value of the SQL type `bigint`, read as a fingerprint of 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Bigint(pub u64);

/// Items of the trait [`Fingerprint`] that are the same for [`Fingerprint64`] and [`Bigint`].
macro_rules! passed_by_value {
    () => {
        type Bytes = [u8; 8];

        #[inline(always)]
        fn argument(call: &Call, n: usize) -> Self {
            Self(call.int8(n) as u64)
        }
        #[inline(always)]
        fn from_words(words: &[u64]) -> Self {
            Self(words[0])
        }
        #[inline(always)]
        fn into_datum(self) -> pg_sys::Datum {
            pg_sys::Datum::from(self.0)
        }
        fn from_bytes(bytes: [u8; 8]) -> Self {
            Self(u64::from_be_bytes(bytes))
        }
        fn to_bytes(self) -> [u8; 8] {
            self.0.to_be_bytes()
        }
        #[inline(always)]
        fn distance(self, other: Self) -> u32 {
            (self.0 ^ other.0).count_ones()
        }
    };
}

impl Fingerprint for Fingerprint64 {
    const TYPE_NAME: &'static str = "fingerprint";
    const BITS: u32 = 64;
    const TEXT_FORM: &'static str =
        "A fingerprint is written as exactly 16 hexadecimal digits, like 0123456789abcdef.";
    const MADE_BY: Option<&'static str> = Some("minhash64");
    passed_by_value!();
    fn parse(text: &[u8]) -> Option<Self> {
        // The check is needed because from_str_radix would accept a sign and fewer digits.
        if text.len() != 16 || !text.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        u64::from_str_radix(str::from_utf8(text).ok()?, 16)
            .ok()
            .map(Fingerprint64)
    }
    fn write(self, text: &mut String) {
        write!(text, "{:016x}", self.0).expect("writing to a string cannot fail");
    }
}

impl Fingerprint for Bigint {
    const TYPE_NAME: &'static str = "bigint";
    const BITS: u32 = 64;
    const TEXT_FORM: &'static str = "A bigint is written as a decimal number.";
    const MADE_BY: Option<&'static str> = None;
    passed_by_value!();
    fn parse(text: &[u8]) -> Option<Self> {
        str::from_utf8(text)
            .ok()?
            .parse::<i64>()
            .ok()
            .map(|value| Bigint(value as u64))
    }
    fn write(self, text: &mut String) {
        write!(text, "{}", self.0 as i64).expect("writing to a string cannot fail");
    }
}

/// Sort support function of `fingerprint`: gives the server a comparison that it can call directly,
/// instead of the SQL function.
fn sort_support(call: &mut Call) -> pg_sys::Datum {
    call.sort_support().comparator = Some(datum_sort::unsigned_datum_comparator());
    pg_sys::Datum::from(0)
}

export! {
    guarded "fingerprint_sortsupport" => sort_support;
}
