//! Keys that begin alike: what lies in one bucket of a band.

use crate::key::word_at;

/// Appends to `found` the places of the keys that have the first `bits` bits of a word in common
/// with `wanted`, in ascending order. `keys` is as for [`super::within`].
#[inline]
pub fn with_prefix<const N: usize>(
    keys: &[u8],
    word: usize,
    wanted: u64,
    bits: u32,
    found: &mut Vec<u16>,
) {
    let mask = u64::MAX << (64 - bits);
    #[cfg(target_arch = "x86_64")]
    if N == 2 && word == 0 && is_x86_feature_detected!("avx512f") {
        // SAFETY: the feature it needs was just seen.
        return unsafe { with_prefix_avx512(keys, wanted, mask, found) };
    }
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    if N == 2 && word == 0 {
        let rest = |found: &mut Vec<u16>| {
            with_prefix_portable::<2>(keys, 0, 0, wanted, mask, found);
        };
        // SAFETY: every processor of this kind has NEON.
        return unsafe { super::neon::with_prefix(keys, wanted, mask, rest, found) };
    }
    with_prefix_portable::<N>(keys, 0, word, wanted, mask, found);
}

/// The kernel for any machine, from the key at a place on.
fn with_prefix_portable<const N: usize>(
    keys: &[u8],
    from: usize,
    word: usize,
    wanted: u64,
    mask: u64,
    found: &mut Vec<u16>,
) {
    for i in from..keys.len() / (8 * N) {
        if (word_at(keys, 8 * (N * i + word)) ^ wanted) & mask == 0 {
            found.push(i as u16);
        }
    }
}

/// Sixteen keys of two words at a time, of which the first words are compared.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn with_prefix_avx512(keys: &[u8], wanted: u64, mask: u64, found: &mut Vec<u16>) {
    use std::arch::x86_64::*;
    const STEP: usize = 16;
    let pairs = |word: u64| {
        let word = word as i64;
        _mm512_setr_epi64(word, 0, word, 0, word, 0, word, 0)
    };
    let (wanted_words, masks) = (pairs(wanted), pairs(mask));
    let (steps, _) = keys.as_chunks::<{ 16 * STEP }>();
    for (step, chunk) in steps.iter().enumerate() {
        let equal = |four: usize| {
            // SAFETY: the 64 bytes lie within the chunk of 256; the load needs no alignment.
            let keys = unsafe { _mm512_loadu_si512(chunk.as_ptr().add(64 * four).cast()) };
            let differing = _mm512_xor_si512(keys, wanted_words);
            u32::from(_mm512_testn_epi64_mask(differing, masks)) << (8 * four)
        };
        // Every second lane is a second word, and tells nothing.
        let mut bits = (equal(0) | equal(1) | equal(2) | equal(3)) & 0x5555_5555;
        while bits != 0 {
            found.push((STEP * step) as u16 + bits.trailing_zeros() as u16 / 2);
            bits &= bits - 1;
        }
    }
    with_prefix_portable::<2>(keys, STEP * steps.len(), 0, wanted, mask, found);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn all_kernels_find_the_same_prefixes(
            wanted: u64, bits in 1..65_u32,
            keys in prop::collection::vec((any::<[u64; 2]>(), 0..70_u32), 0..400),
        ) {
            let bytes: Vec<u8> = keys
                .iter()
                .flat_map(|&([first, second], same)| {
                    let kept = u64::MAX.checked_shr(same).unwrap_or(0);
                    [(wanted & !kept) | (first & kept), second]
                })
                .flat_map(u64::to_ne_bytes)
                .collect();
            let mut expected = Vec::new();
            with_prefix_portable::<2>(&bytes, 0, 0, wanted, u64::MAX << (64 - bits), &mut expected);
            let mut found = Vec::new();
            with_prefix::<2>(&bytes, 0, wanted, bits, &mut found);
            prop_assert_eq!(found, expected);
        }
    }
}
