//! Vector code of MinHash signatures: adds features to the minima of many hash functions, and
//! counts the equal positions of two signatures.
//!
//! All variants give the same result. On x86-64, the fastest one that the processor supports is
//! chosen at run time. All 64-bit ARM processors have NEON, so the NEON variant is chosen at
//! compile time there.
#![allow(unsafe_code, reason = "vector instructions need it")]

/// Number of positions of a signature that are processed together. Lists of minima are padded to a
/// multiple of this number.
pub(super) const LANES: usize = 64;

/// Adds features, given by their hashes x, to the minima of linear hash functions: `least[i] =
/// min(least[i], multipliers[i] * low(x) + high(x))` modulo 2^32. `low` and `high` are the halves
/// of x. `least` and `multipliers` must have the same length, a multiple of [`LANES`].
pub(super) fn fold(least: &mut [u32], multipliers: &[u32], features: &[u64]) {
    assert!(least.len() == multipliers.len() && least.len().is_multiple_of(LANES));
    #[cfg(target_arch = "x86_64")]
    {
        if crate::simd::has_avx512() {
            // SAFETY: the processor has the feature, as checked above.
            return unsafe { x86::fold_avx512(least, multipliers, features) };
        }
        if crate::simd::has_avx2() {
            // SAFETY: the processor has AVX2, as checked above.
            return unsafe { x86::fold_avx2(least, multipliers, features) };
        }
    }
    #[cfg(target_arch = "aarch64")]
    if crate::simd::has_neon() {
        // SAFETY: every processor of this kind has NEON.
        return unsafe { neon::fold(least, multipliers, features) };
    }
    fold_portable(least, multipliers, features);
}

/// Portable version of [`fold`].
fn fold_portable(least: &mut [u32], multipliers: &[u32], features: &[u64]) {
    let (least, _) = least.as_chunks_mut::<LANES>();
    let (multipliers, _) = multipliers.as_chunks::<LANES>();
    for (least, multipliers) in least.iter_mut().zip(multipliers) {
        for &feature in features {
            let (low, high) = (feature as u32, (feature >> 32) as u32);
            for (least, multiplier) in least.iter_mut().zip(multipliers) {
                *least = (*least).min(multiplier.wrapping_mul(low).wrapping_add(high));
            }
        }
    }
}

/// Returns the number of positions in which two signatures of equal length agree. On 64-bit ARM the
/// compiler turns the portable code into NEON instructions.
pub(super) fn matches(a: &[u32], b: &[u32]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if crate::simd::has_avx2() {
        // SAFETY: the processor has the feature, as checked above.
        return unsafe { x86::matches_avx2(a, b) };
    }
    matches_portable(a, b)
}

#[inline(always)]
fn matches_portable(a: &[u32], b: &[u32]) -> usize {
    let mut count = 0_u32;
    for (a, b) in a.iter().zip(b) {
        count += u32::from(a == b);
    }
    count as usize
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{LANES, matches_portable};
    use std::arch::x86_64::*;

    /// AVX-512 version of [`super::fold`], which keeps 64 minima at a time in four registers.
    #[target_feature(enable = "avx512f")]
    pub(super) fn fold_avx512(least: &mut [u32], multipliers: &[u32], features: &[u64]) {
        let (least, _) = least.as_chunks_mut::<LANES>();
        let (multipliers, _) = multipliers.as_chunks::<LANES>();
        for (least, multipliers) in least.iter_mut().zip(multipliers) {
            // SAFETY: each load lies within an array of 64 numbers, and needs no alignment.
            let load = |from: &[u32; LANES]| unsafe {
                let at = |i: usize| _mm512_loadu_si512(from.as_ptr().add(16 * i).cast());
                [at(0), at(1), at(2), at(3)]
            };
            let a = load(multipliers);
            let mut m = load(least);
            for &feature in features {
                let low = _mm512_set1_epi32(feature as i32);
                let high = _mm512_set1_epi32((feature >> 32) as i32);
                for i in 0..4 {
                    let value = _mm512_add_epi32(_mm512_mullo_epi32(a[i], low), high);
                    m[i] = _mm512_min_epu32(m[i], value);
                }
            }
            for (i, m) in m.into_iter().enumerate() {
                // SAFETY: each store lies within an array of 64 numbers, and needs no alignment.
                unsafe { _mm512_storeu_si512(least.as_mut_ptr().add(16 * i).cast(), m) };
            }
        }
    }

    /// AVX2 version of [`super::fold`], which keeps 32 minima at a time in four registers.
    #[target_feature(enable = "avx2")]
    pub(super) fn fold_avx2(least: &mut [u32], multipliers: &[u32], features: &[u64]) {
        let (least, _) = least.as_chunks_mut::<{ LANES / 2 }>();
        let (multipliers, _) = multipliers.as_chunks::<{ LANES / 2 }>();
        for (least, multipliers) in least.iter_mut().zip(multipliers) {
            // SAFETY: each load lies within an array of 32 numbers, and needs no alignment.
            let load = |from: &[u32; LANES / 2]| unsafe {
                let at = |i: usize| _mm256_loadu_si256(from.as_ptr().add(8 * i).cast());
                [at(0), at(1), at(2), at(3)]
            };
            let a = load(multipliers);
            let mut m = load(least);
            for &feature in features {
                let low = _mm256_set1_epi32(feature as i32);
                let high = _mm256_set1_epi32((feature >> 32) as i32);
                for i in 0..4 {
                    let value = _mm256_add_epi32(_mm256_mullo_epi32(a[i], low), high);
                    m[i] = _mm256_min_epu32(m[i], value);
                }
            }
            for (i, m) in m.into_iter().enumerate() {
                // SAFETY: each store lies within an array of 32 numbers, and needs no alignment.
                unsafe { _mm256_storeu_si256(least.as_mut_ptr().add(8 * i).cast(), m) };
            }
        }
    }

    /// [`matches_portable`], compiled for AVX2 (vectors of 32 bytes).
    #[target_feature(enable = "avx2")]
    pub(super) fn matches_avx2(a: &[u32], b: &[u32]) -> usize {
        matches_portable(a, b)
    }
}

#[cfg(target_arch = "aarch64")]
mod neon {
    use super::LANES;
    use std::arch::aarch64::*;

    /// Number of registers that hold minima at a time. The same number of registers holds the
    /// multipliers.
    const REGISTERS: usize = 8;
    /// Number of minima in a register.
    const WIDTH: usize = 4;

    /// NEON version of [`super::fold`], which keeps 32 minima at a time in eight registers.
    #[target_feature(enable = "neon")]
    pub(super) fn fold(least: &mut [u32], multipliers: &[u32], features: &[u64]) {
        const { assert!(LANES.is_multiple_of(REGISTERS * WIDTH)) };
        let (least, _) = least.as_chunks_mut::<{ REGISTERS * WIDTH }>();
        let (multipliers, _) = multipliers.as_chunks::<{ REGISTERS * WIDTH }>();
        for (least, multipliers) in least.iter_mut().zip(multipliers) {
            let load = |from: &[u32; REGISTERS * WIDTH]| -> [uint32x4_t; REGISTERS] {
                // SAFETY: each load lies within an array of 32 numbers, and needs no alignment.
                std::array::from_fn(|i| unsafe { vld1q_u32(from.as_ptr().add(WIDTH * i)) })
            };
            let a = load(multipliers);
            let mut m = load(least);
            for &feature in features {
                let low = vdupq_n_u32(feature as u32);
                let high = vdupq_n_u32((feature >> 32) as u32);
                for (m, a) in m.iter_mut().zip(a) {
                    *m = vminq_u32(*m, vmlaq_u32(high, a, low));
                }
            }
            for (i, m) in m.into_iter().enumerate() {
                // SAFETY: each store lies within an array of 32 numbers, and needs no alignment.
                unsafe { vst1q_u32(least.as_mut_ptr().add(WIDTH * i), m) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn all_kernels_give_the_same(
            chunks in 1_usize..9,
            multipliers in prop::collection::vec(any::<u32>(), 8 * LANES..=8 * LANES),
            features in prop::collection::vec(any::<u64>(), 0..70),
        ) {
            let multipliers = &multipliers[..(chunks * LANES).min(8 * LANES)];
            let mut expected = vec![u32::MAX; multipliers.len()];
            fold_portable(&mut expected, multipliers, &features);
            let mut got = vec![u32::MAX; multipliers.len()];
            fold(&mut got, multipliers, &features);
            prop_assert_eq!(&got, &expected);
            #[cfg(target_arch = "x86_64")]
            if crate::simd::has_avx2() {
                got.fill(u32::MAX);
                // SAFETY: the processor has the feature, as checked above.
                unsafe { x86::fold_avx2(&mut got, multipliers, &features) };
                prop_assert_eq!(&got, &expected);
            }
        }
    }
}
