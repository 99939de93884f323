//! The kernels that measure the distances of a whole leaf to a query.
//!
//! All give the same result; the fastest that the machine has is chosen at run time.

use crate::key::{Key, key_at, word_at};

/// Appends to `found` the places of the keys within `radius` of the query, in ascending order.
/// `keys` holds whole keys of `N` words in the machine's byte order, of which the first `skipped`
/// words are not looked at.
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
        if N == 1 && x86::has_avx512() {
            // SAFETY: the features it needs were just seen.
            return unsafe { x86::within_avx512(keys, query[0], radius, found) };
        }
        if N == 1 && is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            return unsafe { x86::within_avx2(keys, query[0], radius, found) };
        }
        if is_x86_feature_detected!("popcnt") {
            // SAFETY: as above.
            return unsafe { x86::within_popcnt(keys, query, skipped, radius, found) };
        }
    }
    within_portable(keys, query, skipped, radius, found);
}

/// [`within`] for keys that are no part of a page; at most 65,536 of them.
#[inline]
pub fn within_keys<const N: usize>(
    keys: &[Key<N>],
    query: &Key<N>,
    skipped: usize,
    radius: u32,
    found: &mut Vec<u16>,
) {
    let words = keys.as_flattened();
    // SAFETY: the same memory as bytes, which have no alignment and no invalid values.
    let bytes = unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), 8 * words.len()) };
    within(bytes, query, skipped, radius, found);
}

/// The kernel for any machine. On 64-bit ARM the compiler makes NEON instructions of it.
#[inline(always)]
pub fn within_portable<const N: usize>(
    keys: &[u8],
    query: &Key<N>,
    skipped: usize,
    radius: u32,
    found: &mut Vec<u16>,
) {
    for i in 0..keys.len() / (8 * N) {
        let key = key_at::<N>(keys, 8 * N * i);
        let mut distance = 0;
        for word in skipped..N {
            distance += (key[word] ^ query[word]).count_ones();
        }
        if distance <= radius {
            found.push(i as u16);
        }
    }
}

/// Appends to `found` the places of the keys that have the first `bits` bits of a word in common
/// with `wanted`, in ascending order. `keys` is as for [`within`].
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
        return unsafe { x86::with_prefix_avx512(keys, wanted, mask, found) };
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

/// The kernels for x86-64.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Key, with_prefix_portable, within_portable};
    use crate::key::word_at;
    use std::arch::x86_64::*;

    /// Whether the machine has what [`within_avx512`] needs.
    #[inline]
    pub(super) fn has_avx512() -> bool {
        is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vpopcntdq")
    }

    /// [`within_portable`] with the POPCNT instruction.
    #[target_feature(enable = "popcnt")]
    pub(super) fn within_popcnt<const N: usize>(
        keys: &[u8],
        query: &Key<N>,
        skipped: usize,
        radius: u32,
        found: &mut Vec<u16>,
    ) {
        within_portable(keys, query, skipped, radius, found);
    }

    #[inline]
    fn push_bits(mut bits: u32, base: usize, found: &mut Vec<u16>) {
        while bits != 0 {
            found.push((base + bits.trailing_zeros() as usize) as u16);
            bits &= bits - 1;
        }
    }

    #[inline]
    fn push_rest(keys: &[u8], from: usize, query: u64, radius: u32, found: &mut Vec<u16>) {
        for i in from..keys.len() / 8 {
            if (word_at(keys, 8 * i) ^ query).count_ones() <= radius {
                found.push(i as u16);
            }
        }
    }

    /// Eight keys of one word at a time, 32 to a look at the result.
    #[target_feature(enable = "avx512f,avx512vpopcntdq,popcnt")]
    pub(super) fn within_avx512(keys: &[u8], query: u64, radius: u32, found: &mut Vec<u16>) {
        const STEP: usize = 32;
        let queries = _mm512_set1_epi64(query as i64);
        let limit = _mm512_set1_epi64(i64::from(radius));
        let (steps, _) = keys.as_chunks::<{ 8 * STEP }>();
        for (step, chunk) in steps.iter().enumerate() {
            let near = |eight: usize| {
                // SAFETY: the 64 bytes lie within the chunk of 256; the load needs no alignment.
                let keys = unsafe { _mm512_loadu_si512(chunk.as_ptr().add(64 * eight).cast()) };
                let distances = _mm512_popcnt_epi64(_mm512_xor_si512(keys, queries));
                u32::from(_mm512_cmple_epu64_mask(distances, limit)) << (8 * eight)
            };
            push_bits(near(0) | near(1) | near(2) | near(3), STEP * step, found);
        }
        // Groups of a few keys are compared as often as whole leaves.
        let base = STEP * steps.len();
        let (eights, last) = keys[8 * base..].as_chunks::<64>();
        for (i, eight) in eights.iter().enumerate() {
            // SAFETY: 64 bytes; the load needs no alignment.
            let keys = unsafe { _mm512_loadu_si512(eight.as_ptr().cast()) };
            let distances = _mm512_popcnt_epi64(_mm512_xor_si512(keys, queries));
            let near = _mm512_cmple_epu64_mask(distances, limit);
            push_bits(u32::from(near), base + 8 * i, found);
        }
        let there = (1u16 << (last.len() / 8)).wrapping_sub(1) as u8;
        if there != 0 {
            // SAFETY: only as many words are read as there are.
            let keys = unsafe { _mm512_maskz_loadu_epi64(there, last.as_ptr().cast()) };
            let distances = _mm512_popcnt_epi64(_mm512_xor_si512(keys, queries));
            let near = _mm512_mask_cmple_epu64_mask(there, distances, limit);
            push_bits(u32::from(near), base + 8 * eights.len(), found);
        }
    }

    /// Sixteen keys of two words at a time, of which the first words are looked at.
    #[target_feature(enable = "avx512f")]
    pub(super) fn with_prefix_avx512(keys: &[u8], wanted: u64, mask: u64, found: &mut Vec<u16>) {
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

    /// Four keys of one word at a time, 16 to a look at the result; bits are counted by a table of
    /// half bytes (Muła, Kurz, Lemire, "Faster population counts using AVX2 instructions", 2018).
    #[target_feature(enable = "avx2,popcnt")]
    pub(super) fn within_avx2(keys: &[u8], query: u64, radius: u32, found: &mut Vec<u16>) {
        const STEP: usize = 16;
        let queries = _mm256_set1_epi64x(query as i64);
        let over = _mm256_set1_epi64x(i64::from(radius) + 1);
        let half = _mm256_set1_epi8(0x0f);
        let counts = _mm256_setr_epi8(
            0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, //
            0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
        );
        let (steps, _) = keys.as_chunks::<{ 8 * STEP }>();
        for (step, chunk) in steps.iter().enumerate() {
            let near = |four: usize| {
                // SAFETY: the 32 bytes lie within the chunk of 128; the load needs no alignment.
                let keys = unsafe { _mm256_loadu_si256(chunk.as_ptr().add(32 * four).cast()) };
                let differing = _mm256_xor_si256(keys, queries);
                let low = _mm256_and_si256(differing, half);
                let high = _mm256_and_si256(_mm256_srli_epi16::<4>(differing), half);
                let bytes = _mm256_add_epi8(
                    _mm256_shuffle_epi8(counts, low),
                    _mm256_shuffle_epi8(counts, high),
                );
                let distances = _mm256_sad_epu8(bytes, _mm256_setzero_si256());
                let near = _mm256_cmpgt_epi64(over, distances);
                (_mm256_movemask_pd(_mm256_castsi256_pd(near)) as u32) << (4 * four)
            };
            push_bits(near(0) | near(1) | near(2) | near(3), STEP * step, found);
        }
        push_rest(keys, STEP * steps.len(), query, radius, found);
    }
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

        #[test]
        fn all_kernels_find_the_same(
            query: u64, radius in 0..70u32,
            keys in prop::collection::vec((any::<u64>(), prop::collection::vec(0..64u32, 0..6), any::<bool>()), 0..600),
        ) {
            let bytes: Vec<u8> = keys
                .iter()
                .flat_map(|(far, flips, near)| {
                    let near_key = flips.iter().fold(query, |key, bit| key ^ (1 << bit));
                    (if *near { near_key } else { *far }).to_ne_bytes()
                })
                .collect();
            let mut expected = Vec::new();
            within_portable(&bytes, &[query], 0, radius, &mut expected);
            let mut found = Vec::new();
            within(&bytes, &[query], 0, radius, &mut found);
            prop_assert_eq!(&found, &expected);
            #[cfg(target_arch = "x86_64")]
            {
                if is_x86_feature_detected!("avx2") {
                    found.clear();
                    // SAFETY: the features it needs were just seen.
                    unsafe { x86::within_avx2(&bytes, query, radius, &mut found) };
                    prop_assert_eq!(&found, &expected);
                }
                if is_x86_feature_detected!("popcnt") {
                    found.clear();
                    // SAFETY: as above.
                    unsafe { x86::within_popcnt(&bytes, &[query], 0, radius, &mut found) };
                    prop_assert_eq!(&found, &expected);
                }
            }
        }
    }
}
