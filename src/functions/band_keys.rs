//! `neardup_band_keys`: approximate shared keys of a fingerprint or a signature, which two
//! near-duplicates have in common with a known probability. The caller chooses the number of keys
//! (bands), and the number of bits or values in a key (rows). A key maker computes the keys for one
//! choice of these two numbers.
//!
//! [`neardup_blocktree::approximate_keys`] computes the keys.
use std::cell::RefCell;
use std::rc::Rc;
use std::thread::LocalKey;

use neardup_blocktree::approximate_keys::{BandKeysError, FingerprintBandKeys, SignatureBandKeys};
use pgrx::pg_sys::Datum;

use super::shared_keys::{ParameterCache, Words, cached};
use crate::am::minhash::scheme_hash;
use crate::types::fingerprint::arg;
use crate::types::signature::Signature;
use crate::types::text_form::AnyFingerprint;
use crate::types::{Bigint, Fingerprint64, Fingerprint128, Fingerprint256};
use neardup_pg::arrays::bigint_array;
use neardup_pg::errors::UserError;
use neardup_pg::fmgr::{Call, export};

/// Cache of the key makers for fingerprints with `N` words. The cache key has the numbers of bands
/// and rows.
type FingerprintCache<const N: usize> = ParameterCache<[i32; 2], FingerprintBandKeys<N>>;

/// Fingerprint type with `N` words, with a cache of key makers.
trait SampledWords<const N: usize>: Words<N> {
    /// Returns the cache of key makers for this type.
    fn cache() -> &'static LocalKey<FingerprintCache<N>>;
}

/// Implements [`SampledWords`] for types.
macro_rules! sampled_words {
    ($($words:literal: $($type:ty),+;)*) => { $($(
        impl SampledWords<$words> for $type {
            fn cache() -> &'static LocalKey<FingerprintCache<$words>> {
                thread_local! {
                    static CACHE: FingerprintCache<$words> = const { RefCell::new(Vec::new()) };
                }
                &CACHE
            }
        }
    )+)* };
}

sampled_words! {
    1: Fingerprint64, Bigint;
    2: Fingerprint128;
    4: Fingerprint256;
}

thread_local! {
    /// Cache of the key makers for signatures. The cache key has the number of values in a
    /// signature, and the numbers of bands and rows.
    static SIGNATURES: ParameterCache<(usize, [i32; 2]), SignatureBandKeys> =
        const { RefCell::new(Vec::new()) };
}

/// Creates a key maker by `new`, which takes the numbers of bands and rows. Raises an error if
/// `new` rejects these numbers. `value` returns the size of the fingerprint or signature, such as
/// "64 bits", for the error's detail.
fn make<K>(
    [bands, rows]: [i32; 2],
    value: impl Fn() -> String,
    new: impl FnOnce(usize, usize) -> Result<K, BandKeysError>,
) -> K {
    // A negative number is as invalid as 0.
    let [count, length] = [bands, rows].map(|number| usize::try_from(number).unwrap_or(0));
    new(count, length).unwrap_or_else(|error| {
        UserError::invalid_parameter(format!("cannot make {bands} band keys of {rows} rows each"))
            .detail(format!("{} The value has {}.", error, value()))
            .hint(
                "With more rows in each band, fewer unrelated values share a key. With more bands, \
                 more near-duplicates share a key.",
            )
            .raise()
    })
}

/// Returns the approximate keys of a fingerprint as `bigint[]`. Arguments 1 and 2 of the call are
/// the numbers of bands and rows.
fn keys_of<const N: usize, T: SampledWords<N>>(call: &Call, fingerprint: T) -> Datum {
    let parameters = [call.int4(1), call.int4(2)];
    let keys = cached(T::cache(), parameters, || {
        let value = || format!("{} bits", 64 * N);
        make(parameters, value, FingerprintBandKeys::<N>::new)
    });
    bigint_array(keys.keys(&fingerprint.words()))
}

/// `neardup_band_keys(fp, bands, rows)`: approximate keys of a fingerprint.
fn fingerprint_keys<const N: usize, T: SampledWords<N>>(call: &mut Call) -> Datum {
    keys_of(call, arg::<T>(call, 0))
}

/// `neardup_band_keys(text, bands, rows)`: approximate keys of a fingerprint given as text.
fn text_keys(call: &mut Call) -> Datum {
    match AnyFingerprint::argument(call, 0) {
        AnyFingerprint::Bits64(fingerprint) => keys_of(call, fingerprint),
        AnyFingerprint::Bits128(fingerprint) => keys_of(call, fingerprint),
        AnyFingerprint::Bits256(fingerprint) => keys_of(call, fingerprint),
    }
}

/// `neardup_band_keys(sig, bands, rows)`: approximate keys of a signature.
fn signature_keys(call: &mut Call) -> Datum {
    let signature = Signature::argument(call, 0);
    let hashes = signature.values.len();
    let parameters = [call.int4(1), call.int4(2)];
    let keys: Rc<SignatureBandKeys> = cached(&SIGNATURES, (hashes, parameters), || {
        let value = || format!("{hashes} hashes");
        let new = |bands, rows| SignatureBandKeys::new(hashes, bands, rows);
        make(parameters, value, new)
    });
    bigint_array(keys.keys(signature.values, scheme_hash(&signature)))
}

export! {
    guarded "fingerprint_band_keys" => fingerprint_keys::<1, Fingerprint64>;
    guarded "fingerprint128_band_keys" => fingerprint_keys::<2, Fingerprint128>;
    guarded "fingerprint256_band_keys" => fingerprint_keys::<4, Fingerprint256>;
    guarded "bigint_band_keys" => fingerprint_keys::<1, Bigint>;
    guarded "text_band_keys" => text_keys;
    guarded "minhash_band_keys" => signature_keys;
}
