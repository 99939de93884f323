//! Kernels that compare the keys of a leaf with a query: by Hamming distance, or by a prefix.
//!
//! All kernels for one task return the same result, and the fastest kernel that the processor
//! supports is used. On x86-64 it is chosen at run time. On 64-bit ARM it is chosen at compile
//! time, because all these processors have NEON.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;
mod packed;
#[cfg(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", target_endian = "little")
))]
mod packed_words;
mod prefix;

pub use packed::{within_leaf, within_leaf_portable};
pub use prefix::{leaf_with_prefix, with_prefix};

use crate::key::{Key, word_at};

/// Appends to `found`, in ascending order, the positions of the keys within `radius` bits of the
/// query. `keys` contains the bytes of whole keys of `N` words, in the machine's byte order. The
/// first `skipped` words of each key do not count for the distance.
#[inline]
pub fn within<const N: usize>(
    keys: &[u8],
    query: &Key<N>,
    skipped: usize,
    radius: u32,
    found: &mut Vec<u16>,
) {
    debug_assert!(skipped < N);
    #[cfg(target_arch = "x86_64")]
    {
        if avx512::is_there() {
            // SAFETY: the processor has the features that the kernel needs: just checked.
            if unsafe { avx512::within(keys, query, skipped, radius, found) } {
                return;
            }
        } else if avx2::is_there() {
            // SAFETY: the processor has the features that the kernel needs: just checked.
            if unsafe { avx2::within(keys, query, skipped, radius, found) } {
                return;
            }
        }
        if is_x86_feature_detected!("popcnt") {
            // SAFETY: the processor has the features that the kernel needs: just checked.
            return unsafe { within_popcnt(keys, query, skipped, radius, found) };
        }
    }
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    // SAFETY: every 64-bit ARM processor has NEON.
    if unsafe { neon::within(keys, query, skipped, radius, found) } {
        return;
    }
    within_portable(keys, query, skipped, radius, found);
}

/// Like [`within`], for an array of keys that are not on a page. The array has at most 65,536 keys,
/// because positions have 16 bits. With more keys, positions are wrong.
///
/// ```
/// use neardup_blocktree::filter::within_keys;
///
/// let mut found = Vec::new();
/// within_keys(&[[0b0111], [0b1111], [0b0001]], &[0b0011], 0, 1, &mut found);
/// assert_eq!(found, [0, 2]);
/// ```
#[inline]
pub fn within_keys<const N: usize>(
    keys: &[Key<N>],
    query: &Key<N>,
    skipped: usize,
    radius: u32,
    found: &mut Vec<u16>,
) {
    let words = keys.as_flattened();
    // SAFETY: the slice is the memory of `words`. Bytes need no alignment, and any value is valid.
    let bytes = unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), 8 * words.len()) };
    within(bytes, query, skipped, radius, found);
}

/// Portable kernel of [`within`], with the same parameters.
#[inline(always)]
pub fn within_portable<const N: usize>(
    keys: &[u8],
    query: &Key<N>,
    skipped: usize,
    radius: u32,
    found: &mut Vec<u16>,
) {
    push_rest(keys, 0, query, skipped, radius, found);
}

/// Does the same as [`within_portable`], compiled with the POPCNT instruction of x86-64.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt")]
fn within_popcnt<const N: usize>(
    keys: &[u8],
    query: &Key<N>,
    skipped: usize,
    radius: u32,
    found: &mut Vec<u16>,
) {
    within_portable(keys, query, skipped, radius, found);
}

/// Appends to `found` the positions of the keys within `radius` bits of the query, one key at a
/// time. The first `skipped` words of each key do not count for the distance. Starts at the key at
/// position `from`, because the caller has compared the keys before it.
#[inline(always)]
fn push_rest<const N: usize>(
    keys: &[u8],
    from: usize,
    query: &Key<N>,
    skipped: usize,
    radius: u32,
    found: &mut Vec<u16>,
) {
    for (i, key) in keys.chunks_exact(8 * N).enumerate().skip(from) {
        let mut distance = 0;
        for (word, wanted) in query.iter().enumerate() {
            if word >= skipped {
                distance += (word_at(key, 8 * word) ^ wanted).count_ones();
            }
        }
        if distance <= radius {
            found.push(i as u16);
        }
    }
}

/// Appends the position of each set bit in a kernel's result, plus `base`, to `found`.
#[cfg(target_arch = "x86_64")]
#[inline]
fn push_bits(mut bits: u32, base: usize, found: &mut Vec<u16>) {
    while bits != 0 {
        found.push((base + bits.trailing_zeros() as usize) as u16);
        bits &= bits - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the bytes of keys of `N` words, one key for each element of `keys`. An element has a
    /// key, bits to flip, and a flag. If the flag is false, the key is used as it is. If it is
    /// true, the words behind the first `skipped` words are those of the query, with the given bits
    /// flipped.
    fn keys_near<const N: usize>(
        query: &Key<N>,
        keys: &[([u64; N], Vec<u32>, bool)],
        skipped: usize,
    ) -> Vec<u8> {
        let one = |(far, flips, near): &([u64; N], Vec<u32>, bool)| {
            let mut key = *far;
            if *near {
                key[skipped..].copy_from_slice(&query[skipped..]);
                for flip in flips {
                    let bit = *flip as usize % (64 * (N - skipped));
                    key[skipped + bit / 64] ^= 1 << (bit % 64);
                }
            }
            key.map(u64::to_ne_bytes)
        };
        keys.iter().flat_map(one).flatten().collect()
    }

    fn assert_all_find_the_same<const N: usize>(
        query: [u64; N],
        radius: u32,
        keys: &[([u64; N], Vec<u32>, bool)],
        skipped: usize,
    ) {
        let bytes = keys_near(&query, keys, skipped);
        let expected: Vec<u16> = (keys.iter().enumerate())
            .filter(|(i, _)| {
                let key = crate::key::key_at::<N>(&bytes, 8 * N * i);
                crate::key::distance(&key, &query, skipped) <= radius
            })
            .map(|(i, _)| i as u16)
            .collect();
        let mut found = Vec::new();
        within_portable(&bytes, &query, skipped, radius, &mut found);
        assert_eq!(found, expected, "portable");
        found.clear();
        within(&bytes, &query, skipped, radius, &mut found);
        assert_eq!(found, expected, "chosen");
        #[cfg(target_arch = "x86_64")]
        {
            if avx512::is_there() {
                found.clear();
                // SAFETY: the processor has the features that the kernel needs: just checked.
                assert!(unsafe { avx512::within(&bytes, &query, skipped, radius, &mut found) });
                assert_eq!(found, expected, "AVX-512");
            }
            if avx2::is_there() {
                found.clear();
                // SAFETY: the processor has the features that the kernel needs: just checked.
                assert!(unsafe { avx2::within(&bytes, &query, skipped, radius, &mut found) });
                assert_eq!(found, expected, "AVX2");
            }
            if is_x86_feature_detected!("popcnt") {
                found.clear();
                // SAFETY: the processor has the features that the kernel needs: just checked.
                unsafe { within_popcnt(&bytes, &query, skipped, radius, &mut found) };
                assert_eq!(found, expected, "POPCNT");
            }
        }
        #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
        {
            found.clear();
            // SAFETY: every 64-bit ARM processor has NEON.
            assert!(unsafe { neon::within(&bytes, &query, skipped, radius, &mut found) });
            assert_eq!(found, expected, "NEON");
        }
    }

    macro_rules! all_find_the_same {
        ($($name:ident: $words:literal words, $skipped:literal skipped;)*) => {
            proptest! {
                $(#[test]
                fn $name(
                    query: [u64; $words], radius in 0..64u32 * $words + 2,
                    small in 0..12u32, wide: bool,
                    keys in prop::collection::vec((
                        any::<[u64; $words]>(), prop::collection::vec(any::<u32>(), 0..8),
                        any::<bool>(),
                    ), 0..300),
                ) {
                    let radius = if wide { radius } else { small };
                    assert_all_find_the_same(query, radius, &keys, $skipped);
                })*
            }
        };
    }

    all_find_the_same! {
        on_64_bits: 1 words, 0 skipped;
        on_64_bits_with_a_scope: 2 words, 1 skipped;
        on_128_bits: 2 words, 0 skipped;
        on_128_bits_with_a_scope: 3 words, 1 skipped;
        on_256_bits: 4 words, 0 skipped;
        on_256_bits_with_a_scope: 5 words, 1 skipped;
    }
}
