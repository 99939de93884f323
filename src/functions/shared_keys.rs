//! Shared keys in SQL, for equality joins in engines without the index: `neardup_keys` and
//! `minhash_keys` return keys that near-duplicates have in common. `neardup_meet` and
//! `minhash_meet` return whether two values with a common key are near-duplicates. A key maker
//! computes the keys for one choice of parameters, such as the radius.
//!
//! [`neardup_blocktree::shared_keys`] has the key makers. A key maker contains the values that are
//! derived from the parameters (masks of bits, or bands). All rows of a statement have the same
//! parameters, so the key maker is cached for the next call.
use std::cell::RefCell;
use std::rc::Rc;
use std::thread::LocalKey;

use neardup_blocktree::bands::{BandsError, MAX_BANDS};
use neardup_blocktree::block_layout::{BlockLayoutError, MAX_PERMUTATIONS, max_radius};
use neardup_blocktree::key::Key;
use neardup_blocktree::shared_keys::{BandKeys, BlockKeys, ForeignKey, MAX_BLOCKS};
use pgrx::pg_sys::Datum;

use crate::am::minhash::scheme_hash;
use crate::types::fingerprint::{Fingerprint, arg};
use crate::types::signature::{Bound, Signature};
use crate::types::text_form::AnyFingerprint;
use crate::types::{Bigint, Fingerprint64, Fingerprint128, Fingerprint256};
use neardup_pg::arrays::bigint_array;
use neardup_pg::errors::UserError;
use neardup_pg::fmgr::{Call, export};

/// Maximum number of key makers in each cache. There is one cache for each type of fingerprint, and
/// one for signatures. A further key maker displaces one of the others.
const MAX_CACHED: usize = 4;

/// Cache of key makers of type `K`, each with the parameters of type `P` from which it was made.
/// The entry that was used last is first.
pub(super) type ParameterCache<P, K> = RefCell<Vec<(P, Rc<K>)>>;

/// Returns the key maker for `parameters` from the cache `slot`. If the cache has none, calls
/// `make` and stores the key maker that it returns.
#[inline]
pub(super) fn cached<P: PartialEq + Copy, K>(
    slot: &'static LocalKey<ParameterCache<P, K>>,
    parameters: P,
    make: impl FnOnce() -> K,
) -> Rc<K> {
    let known = slot.with_borrow_mut(|kept| {
        let at = kept.iter().position(|(of, _)| *of == parameters)?;
        kept.swap(0, at);
        Some(Rc::clone(&kept[0].1))
    });
    known.unwrap_or_else(|| {
        // `make` may raise an error, so the cache is not borrowed during the call.
        let made = Rc::new(make());
        slot.with_borrow_mut(|kept| {
            kept.truncate(MAX_CACHED - 1);
            kept.insert(0, (parameters, Rc::clone(&made)));
        });
        made
    })
}

/// Parameters of a key maker for fingerprints: the radius in bits, and the number of blocks (groups
/// of bits) or `None` for the default.
type BlockParameters = (i32, Option<i32>);

/// Fingerprint type with `N` words of 64 bits.
pub(super) trait Words<const N: usize>: Fingerprint {
    /// Returns the words of the fingerprint, the most significant word first.
    fn words(self) -> Key<N>;
    /// Returns the cache of key makers for this type.
    fn slot() -> &'static LocalKey<ParameterCache<BlockParameters, BlockKeys<N>>>;
}

/// Implements [`Words`] for types whose only field is a word or an array of words.
macro_rules! words {
    ($($words:literal: $($type:ty, |$value:ident| $body:expr);+;)*) => { $($(
        impl Words<$words> for $type {
            #[inline]
            fn words(self) -> Key<$words> {
                let $value = self.0;
                $body
            }
            fn slot() -> &'static LocalKey<ParameterCache<BlockParameters, BlockKeys<$words>>> {
                thread_local! {
                    static SLOT: ParameterCache<BlockParameters, BlockKeys<$words>> =
                        const { RefCell::new(Vec::new()) };
                }
                &SLOT
            }
        }
    )+)* };
}

words! {
    1: Fingerprint64, |word| [word]; Bigint, |word| [word];
    2: Fingerprint128, |words| words;
    4: Fingerprint256, |words| words;
}

/// Returns the key maker for fingerprints of type `T`. The arguments from `n` on are a radius and,
/// optionally, a number of blocks.
#[inline]
fn block_keys<const N: usize, T: Words<N>>(call: &Call, n: usize) -> Rc<BlockKeys<N>> {
    let parameters = (
        call.int4(n),
        (call.arg_count() > n + 1).then(|| call.int4(n + 1)),
    );
    cached(T::slot(), parameters, || make_block_keys(parameters))
}

/// Creates the key maker for a radius and a number of blocks. Raises an error if they are out of
/// range.
fn make_block_keys<const N: usize>((radius, blocks): BlockParameters) -> BlockKeys<N> {
    let most = max_radius(64 * N as u32);
    let Some(within) = u32::try_from(radius).ok().filter(|it| *it <= most) else {
        UserError::invalid_parameter(format!("radius {radius} is out of range"))
            .detail(format!(
                "The radius must be from 0 to {most} for values of {} bits.",
                64 * N
            ))
            .raise()
    };
    // A negative number of blocks is as invalid as 0.
    let count = blocks.map(|blocks| u32::try_from(blocks).unwrap_or(0));
    BlockKeys::new(within, count).unwrap_or_else(|error| {
        let detail = match error {
            BlockLayoutError::RadiusTooLarge(_) | BlockLayoutError::BlocksOutOfRange => {
                format!(
                    "The number of blocks must be from {} to {MAX_BLOCKS}.",
                    within + 1
                )
            }
            BlockLayoutError::TooManyPermutations(_) => {
                format!("Each value would have more than {MAX_PERMUTATIONS} keys.")
            }
        };
        let blocks = blocks.map_or(String::new(), |blocks| format!(" and {blocks} blocks"));
        UserError::invalid_parameter(format!("cannot make keys for radius {radius}{blocks}"))
            .detail(detail)
            .hint(
                "Omit the number of blocks to let neardup choose it from the width and the radius.",
            )
            .raise()
    })
}

/// `neardup_keys(fp, radius [, blocks])`: shared keys of a fingerprint.
fn keys<const N: usize, T: Words<N>>(call: &mut Call) -> Datum {
    let keys = block_keys::<N, T>(call, 1);
    bigint_array(keys.keys(&arg::<T>(call, 0).words()))
}

/// `neardup_keys(text, radius [, blocks])`: shared keys of a fingerprint given as text.
fn text_keys(call: &mut Call) -> Datum {
    fn of<const N: usize, T: Words<N>>(call: &Call, fingerprint: T) -> Datum {
        bigint_array(block_keys::<N, T>(call, 1).keys(&fingerprint.words()))
    }
    match AnyFingerprint::argument(call, 0) {
        AnyFingerprint::Bits64(fingerprint) => of(call, fingerprint),
        AnyFingerprint::Bits128(fingerprint) => of(call, fingerprint),
        AnyFingerprint::Bits256(fingerprint) => of(call, fingerprint),
    }
}

/// Returns false, the result of `neardup_meet`, if the two fingerprints (arguments 1 and 2) are
/// farther apart than the radius (argument 3). Otherwise returns `None`, and [`meet`] computes the
/// result. This check comes first, because most pairs of a join by keys are far apart.
#[inline]
fn are_apart<const N: usize, T: Words<N>>(call: &Call) -> Option<Datum> {
    let (a, b, radius) = (arg::<T>(call, 1), arg::<T>(call, 2), call.int4(3));
    let are_apart = u32::try_from(radius).is_ok_and(|radius| a.distance(b) > radius);
    are_apart.then(|| Datum::from(false))
}

/// `neardup_meet(key, a, b, radius [, blocks])`: whether the fingerprints `a` and `b` are within
/// the radius and `key` is the first key that both have. So a join by keys returns each pair once.
fn meet<const N: usize, T: Words<N>>(call: &mut Call) -> Datum {
    let keys = block_keys::<N, T>(call, 3);
    let [a, b] = [1, 2].map(|n| arg::<T>(call, n).words());
    let met = keys
        .is_first_shared(call.int8(0), &a, &b)
        .unwrap_or_else(|_| {
            let (radius, blocks) = (keys.radius(), keys.blocks());
            refuse_key(
                format!("{} bits, radius {radius} and {blocks} blocks", T::BITS),
                "neardup",
                "radius and blocks",
            )
        });
    Datum::from(met)
}

/// Raises the error that a key was made with other parameters than those passed to `PREFIX_meet`.
/// `prefix` is `neardup` or `minhash`. `expected` completes the sentence "The function needs a key
/// that was made for ...". `parameters` names the parameters in the hint, for example "radius and
/// blocks".
#[cold]
fn refuse_key(expected: String, prefix: &str, parameters: &str) -> ! {
    UserError::invalid_parameter("the key was made with different parameters")
        .detail(format!(
            "The function needs a key that was made for {expected}."
        ))
        .hint(format!(
            "Pass the same {parameters} to {prefix}_meet as to {prefix}_keys."
        ))
        .raise()
}

/// Parameters of a key maker for signatures: the number of values in a signature, the minimum
/// similarity, and the number of bands (groups of values) or `None` for the default. The similarity
/// is the bit pattern of a float8.
type BandParameters = (usize, u64, Option<i32>);

thread_local! {
    static BAND_KEYS: ParameterCache<BandParameters, BandKeys> = const { RefCell::new(Vec::new()) };
}

/// Returns the key maker for signatures with `hashes` values. The arguments from `n` on are a
/// minimum similarity and, optionally, a number of bands.
fn band_keys(call: &Call, n: usize, hashes: usize) -> Rc<BandKeys> {
    let bands = (call.arg_count() > n + 1).then(|| call.int4(n + 1));
    let parameters = (hashes, call.float8(n).to_bits(), bands);
    cached(&BAND_KEYS, parameters, || {
        make_band_keys(hashes, call.float8(n), bands)
    })
}

/// Creates the key maker for signatures with `hashes` values, a minimum similarity, and a number of
/// bands (`None` for the default). Raises an error if one of them is out of range.
fn make_band_keys(hashes: usize, similarity: f64, bands: Option<i32>) -> BandKeys {
    if !(similarity > 0.0 && similarity <= 1.0) {
        UserError::invalid_parameter(format!("similarity {similarity} is out of range"))
            .detail("The similarity must be greater than 0 and at most 1.")
            .raise();
    }
    let mismatches = Bound::Similarity.mismatches(hashes, similarity) as usize;
    // A negative number of bands is as invalid as 0.
    let count = bands.map(|bands| usize::try_from(bands).unwrap_or(0));
    BandKeys::new(hashes, mismatches, count).unwrap_or_else(|error| {
        let detail = match error {
            BandsError::BandsOutOfRange => format!(
                "Signatures of {hashes} hashes with this similarity differ in up to {mismatches} \
                 values, so they need at least {} bands, but at most {MAX_BANDS} are possible.",
                mismatches + 1
            ),
            BandsError::TooManyRows => {
                format!("Signatures of {hashes} hashes cannot have so many bands.")
            }
        };
        let bands = bands.map_or(String::new(), |bands| format!(" and {bands} bands"));
        UserError::invalid_parameter(format!(
            "cannot make keys for similarity {similarity}{bands}"
        ))
        .detail(detail)
        .hint(
            "Omit the number of bands, choose a higher similarity, or use signatures with fewer \
             hashes.",
        )
        .raise()
    })
}

/// `minhash_keys(sig, similarity [, bands])`: shared keys of a signature.
fn signature_keys(call: &mut Call) -> Datum {
    let signature = Signature::argument(call, 0);
    let keys = band_keys(call, 1, signature.values.len());
    bigint_array(keys.keys(signature.values, scheme_hash(&signature)))
}

/// `minhash_meet(key, a, b, similarity [, bands])`: whether the signatures `a` and `b` have at
/// least the similarity and `key` is the first key that both have. NULL for signatures that cannot
/// be compared.
fn signatures_meet(call: &mut Call) -> Datum {
    let [a, b] = [1, 2].map(|n| Signature::argument(call, n));
    let keys = band_keys(call, 3, a.values.len());
    let met = a.mismatches(&b).map(|mismatches| {
        let meet = |key| keys.is_first_shared(key, a.values, b.values, scheme_hash(&a));
        let met = match mismatches <= keys.mismatches() {
            true => meet(call.int8(0)),
            false => Ok(false),
        };
        met.unwrap_or_else(|ForeignKey| {
            let expected = format!("{} bands", keys.count());
            refuse_key(expected, "minhash", "similarity and bands")
        })
    });
    call.return_value(met.map(Datum::from))
}

export! {
    guarded "fingerprint_keys" => keys::<1, Fingerprint64>;
    screened "fingerprint_meet" => (are_apart::<1, Fingerprint64>, meet::<1, Fingerprint64>);
    guarded "fingerprint128_keys" => keys::<2, Fingerprint128>;
    screened "fingerprint128_meet" => (are_apart::<2, Fingerprint128>, meet::<2, Fingerprint128>);
    guarded "fingerprint256_keys" => keys::<4, Fingerprint256>;
    screened "fingerprint256_meet" => (are_apart::<4, Fingerprint256>, meet::<4, Fingerprint256>);
    guarded "bigint_keys" => keys::<1, Bigint>;
    screened "bigint_meet" => (are_apart::<1, Bigint>, meet::<1, Bigint>);
    guarded "text_keys" => text_keys;
    guarded "minhash_keys" => signature_keys;
    guarded "minhash_meet" => signatures_meet;
}
