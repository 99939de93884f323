//! More than 64 bits: the types `fingerprint128` and `fingerprint256`, passed by reference.
use core::cmp::Ordering;
use core::ffi::c_int;
use core::fmt::Write;

use pgrx::pg_sys::{Datum, SortSupport};

use super::Ball;
use super::fingerprint::{Fingerprint, arg};
use crate::pg::datum_sort;
use crate::pg::fmgr::{Call, export};
use crate::pg::varlena;

/// `W` words of 64 bits, the most significant first, each in the machine's byte order: a value of
/// the SQL type `fingerprint128` (two words) or `fingerprint256` (four), as it is stored.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Wide<const W: usize>(pub [u64; W]);

/// A value of the SQL type `fingerprint128`.
pub type Fingerprint128 = Wide<2>;
/// A value of the SQL type `fingerprint256`.
pub type Fingerprint256 = Wide<4>;

// As the SQL script declares the types, and as the index reads them.
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

/// The bytes of `W` words, most significant first.
#[derive(Clone, Copy)]
pub struct WordBytes<const W: usize>([[u8; 8]; W]);

impl<const W: usize> AsRef<[u8]> for WordBytes<W> {
    fn as_ref(&self) -> &[u8] {
        self.0.as_flattened()
    }
}

impl<const W: usize> TryFrom<&[u8]> for WordBytes<W> {
    type Error = ();

    /// An error unless there are exactly `8 * W` bytes.
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
    const BITS: u32 = 64 * W as u32;
    const TEXT_FORM: &'static str = match W {
        2 => "A fingerprint128 is written as exactly 32 hexadecimal digits.",
        4 => "A fingerprint256 is written as exactly 64 hexadecimal digits.",
        _ => panic!("no SQL type has this width"),
    };
    type Bytes = WordBytes<W>;

    #[inline(always)]
    unsafe fn from_datum(datum: Datum) -> Self {
        // SAFETY: the SQL type has this size and alignment and is passed by reference.
        unsafe { *datum.cast_mut_ptr::<Self>() }
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
        // from_str_radix alone would take a sign.
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

/// Gives the server a comparison without the cost of a function call through SQL, and the first
/// word to sort by before it follows the pointers.
fn sort_support<const W: usize>(call: &mut Call) -> Datum {
    let support = call.sort_support();
    support.comparator = Some(compare::<W>);
    if support.abbreviate {
        support.comparator = Some(datum_sort::unsigned_datum_comparator());
        support.abbrev_converter = Some(first_word::<W>);
        support.abbrev_abort = Some(never);
        support.abbrev_full_comparator = Some(compare::<W>);
    }
    Datum::from(0)
}

unsafe extern "C-unwind" fn compare<const W: usize>(a: Datum, b: Datum, _: SortSupport) -> c_int {
    // SAFETY: the server sorts values of this type.
    match unsafe { Wide::<W>::from_datum(a).cmp(&Wide::<W>::from_datum(b)) } {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    }
}

unsafe extern "C-unwind" fn first_word<const W: usize>(value: Datum, _: SortSupport) -> Datum {
    // SAFETY: the server sorts values of this type.
    Datum::from(unsafe { Wide::<W>::from_datum(value) }.0[0])
}

/// Never gives up abbreviated keys, which cost one load for each row.
unsafe extern "C-unwind" fn never(_rows: c_int, _: SortSupport) -> bool {
    false
}

/// Cast from uuid, whose 16 bytes are in the order of its digits.
fn from_uuid(call: &mut Call) -> Datum {
    // SAFETY: the cast is declared to take uuid, which is 16 bytes, aligned to nothing.
    let bytes = unsafe { *call.arg(0).cast_mut_ptr::<[[u8; 8]; 2]>() };
    Fingerprint128::from_bytes(WordBytes(bytes)).into_datum()
}

/// Cast to uuid.
fn to_uuid(call: &mut Call) -> Datum {
    let WordBytes(bytes) = arg::<Fingerprint128>(call, 0).to_bytes();
    varlena::by_reference(bytes)
}

export! {
    plain "fingerprint128_sortsupport" => sort_support::<2>;
    plain "fingerprint256_sortsupport" => sort_support::<4>;
    guarded "fingerprint128_from_uuid" => from_uuid;
    guarded "fingerprint128_to_uuid" => to_uuid;
}
