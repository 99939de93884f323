//! The types with more than 64 bits, passed by reference: `fingerprint128` and `fingerprint256`.
use core::fmt::Write;

use pgrx::pg_sys::Datum;

use super::Ball;
use super::fingerprint::{Fingerprint, arg};
use neardup_pg::datum_sort;
use neardup_pg::fmgr::{Call, export};
use neardup_pg::varlena;

/// Fingerprint of `W` words of 64 bits. The most significant word is first, and each word is in
/// native byte order. This is the stored form of the SQL types `fingerprint128` (two words) and
/// `fingerprint256` (four words).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Wide<const W: usize>(pub [u64; W]);

/// Value of the SQL type `fingerprint128`.
pub type Fingerprint128 = Wide<2>;
/// Value of the SQL type `fingerprint256`.
pub type Fingerprint256 = Wide<4>;

// The SQL script declares these sizes, and the index relies on them.
const _: () = assert!(size_of::<Fingerprint128>() == 16 && align_of::<Fingerprint128>() == 8);
const _: () = assert!(size_of::<Fingerprint256>() == 32 && align_of::<Fingerprint256>() == 8);
const _: () = assert!(size_of::<Ball<Fingerprint128>>() == 24);
const _: () = assert!(size_of::<Ball<Fingerprint256>>() == 40);

impl<const W: usize> From<[u64; W]> for Wide<W> {
    fn from(words: [u64; W]) -> Self {
        Wide(words)
    }
}

impl From<u128> for Fingerprint128 {
    fn from(number: u128) -> Self {
        Wide([(number >> 64) as u64, number as u64])
    }
}

/// Binary form of a fingerprint of `W` words: its bytes, the most significant byte first.
#[derive(Clone, Copy)]
pub struct WordBytes<const W: usize>([[u8; 8]; W]);

impl<const W: usize> AsRef<[u8]> for WordBytes<W> {
    fn as_ref(&self) -> &[u8] {
        self.0.as_flattened()
    }
}

impl<const W: usize> TryFrom<&[u8]> for WordBytes<W> {
    type Error = ();

    /// Returns an error unless `bytes` has exactly `8 * W` bytes.
    fn try_from(bytes: &[u8]) -> Result<Self, ()> {
        match bytes.as_chunks() {
            (words, []) => words.try_into().map(WordBytes).map_err(drop),
            _ => Err(()),
        }
    }
}

impl<const W: usize> Fingerprint for Wide<W> {
    const TYPE_NAME: &'static str = match W {
        2 => "fingerprint128",
        4 => "fingerprint256",
        _ => panic!("no SQL type has this width"),
    };
    const MADE_BY: Option<&'static str> = match W {
        2 => Some("minhash128"),
        _ => None,
    };
    const BITS: u32 = 64 * W as u32;
    const TEXT_FORM: &'static str = match W {
        2 => "A fingerprint128 is written as exactly 32 hexadecimal digits.",
        4 => "A fingerprint256 is written as exactly 64 hexadecimal digits.",
        _ => panic!("no SQL type has this width"),
    };
    type Bytes = WordBytes<W>;

    #[inline(always)]
    fn argument(call: &Call, n: usize) -> Self {
        let mut words = [0; W];
        call.copy_words(n, &mut words);
        Wide(words)
    }
    #[inline(always)]
    fn from_words(words: &[u64]) -> Self {
        let mut first = [0; W];
        first.copy_from_slice(&words[..W]);
        Wide(first)
    }
    fn into_datum(self) -> Datum {
        varlena::by_reference(self)
    }
    fn from_bytes(bytes: WordBytes<W>) -> Self {
        Wide(bytes.0.map(u64::from_be_bytes))
    }
    fn to_bytes(self) -> WordBytes<W> {
        WordBytes(self.0.map(u64::to_be_bytes))
    }
    #[inline(always)]
    fn distance(self, other: Self) -> u32 {
        let words = self.0.iter().zip(other.0);
        words.map(|(a, b)| (a ^ b).count_ones()).sum()
    }
    fn parse(text: &[u8]) -> Option<Self> {
        // The check is needed because from_str_radix would accept a sign.
        if !text.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let (digits, []) = text.as_chunks::<16>() else {
            return None;
        };
        let digits: [[u8; 16]; W] = digits.try_into().ok()?;
        let mut words = [0; W];
        for (word, digits) in words.iter_mut().zip(&digits) {
            *word = u64::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?;
        }
        Some(Wide(words))
    }
    fn write(self, text: &mut String) {
        for word in self.0 {
            write!(text, "{word:016x}").expect("writing to a string cannot fail");
        }
    }
}

/// Sort support function of the wide types. Gives the server a comparison that it can call
/// directly, instead of the SQL function. Also gives it the first word of each value as an
/// abbreviated key, so that most comparisons need not follow a pointer.
#[allow(unsafe_code, reason = "values are passed by reference")]
fn sort_support<const W: usize>(call: &mut Call) -> Datum {
    // SAFETY: the operator class that names this function is for values of `W` words.
    unsafe { datum_sort::sort_words::<W>(call.sort_support()) };
    Datum::from(0)
}

/// Cast from uuid to fingerprint128. The digits of both have the same order.
fn from_uuid(call: &mut Call) -> Datum {
    let mut words = [0; 2];
    call.copy_words(0, &mut words);
    Fingerprint128::from_bytes(WordBytes(words.map(u64::to_ne_bytes))).into_datum()
}

/// Cast from fingerprint128 to uuid.
fn to_uuid(call: &mut Call) -> Datum {
    let WordBytes(bytes) = arg::<Fingerprint128>(call, 0).to_bytes();
    varlena::by_reference(bytes)
}

export! {
    guarded "fingerprint128_sortsupport" => sort_support::<2>;
    guarded "fingerprint256_sortsupport" => sort_support::<4>;
    guarded "fingerprint128_from_uuid" => from_uuid;
    guarded "fingerprint128_to_uuid" => to_uuid;
}
