//! Adds up the integer weights of features, and derives the bits of a simhash from the sums.
//!
//! Let S be the total weight of all features, and `set[i]` the total weight of the features whose
//! hash has bit i set. Sum i of the definition ([`super`]) is `set[i] - (S - set[i])`, so bit i of
//! the simhash is 1 if and only if `2 * set[i] > S`.

use super::popcount::PositionalPopcount;

/// Hash and weight of a feature.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weighted<const W: usize> {
    pub hash: [u64; W],
    pub weight: u64,
}

/// Sums of weights for a simhash of `64 * W` bits.
#[derive(Clone)]
pub(crate) struct Accumulator<const W: usize> {
    /// For each bit of each word, the total weight of the features whose hash has this bit set.
    set: [[u64; 64]; W],
    /// Total weight of all features.
    total: u64,
}

impl<const W: usize> Default for Accumulator<W> {
    fn default() -> Self {
        Self {
            set: [[0; 64]; W],
            total: 0,
        }
    }
}

/// Adds `weight` to the sum of each bit that is set in `hash`.
#[inline(always)]
pub(super) fn add_where_set<const W: usize>(
    sums: &mut [[u64; 64]; W],
    hash: [u64; W],
    weight: u64,
) {
    for (set, word) in sums.iter_mut().zip(hash) {
        // There is no branch, so that the compiler generates vector code.
        for (bit, set) in set.iter_mut().enumerate() {
            *set += weight & ((word >> bit) & 1).wrapping_neg();
        }
    }
}

#[inline(always)]
fn add_all_portable<const W: usize>(sums: &mut [[u64; 64]; W], features: &[Weighted<W>]) {
    for feature in features {
        add_where_set(sums, feature.hash, feature.weight);
    }
}

/// [`add_all_portable`], compiled for AVX2 (vectors of 32 bytes).
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn add_all_avx2<const W: usize>(sums: &mut [[u64; 64]; W], features: &[Weighted<W>]) {
    add_all_portable(sums, features);
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::{
        __m512i, _mm512_add_epi64, _mm512_cmpgt_epu64_mask, _mm512_loadu_si512,
        _mm512_mask_add_epi64, _mm512_set1_epi64, _mm512_setzero_si512, _mm512_storeu_si512,
    };

    use super::Weighted;

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load(sums: &[u64; 8]) -> __m512i {
        // SAFETY: the load reads the 64 bytes of `sums`, and needs no alignment.
        #[allow(unsafe_code)]
        unsafe {
            _mm512_loadu_si512(sums.as_ptr().cast())
        }
    }

    /// AVX-512 version of [`super::above_half_portable`].
    #[target_feature(enable = "avx512f")]
    pub fn above_half(sums: &[u64; 64], total: u64) -> u64 {
        let total = _mm512_set1_epi64(total as i64);
        let mut bits = [0; 8];
        for (bits, part) in bits.iter_mut().zip(sums.as_chunks().0) {
            let sums = load(part);
            *bits = _mm512_cmpgt_epu64_mask(_mm512_add_epi64(sums, sums), total);
        }
        u64::from_le_bytes(bits)
    }

    /// [`super::add_products`], compiled for AVX-512.
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn add_products(sums: &mut [u64; 64], ones: &[u64; 64], weight: u64) {
        super::add_products(sums, ones, weight);
    }

    /// AVX-512 version of [`super::add_all_portable`]. A vector has eight sums, and one byte of a
    /// hash is the mask of the sums to which the weight is added.
    #[target_feature(enable = "avx512f")]
    pub fn add_all<const W: usize>(sums: &mut [[u64; 64]; W], features: &[Weighted<W>]) {
        for (word, sums) in sums.iter_mut().enumerate() {
            let (parts, _) = sums.as_chunks_mut::<8>();
            let mut vectors = [_mm512_setzero_si512(); 8];
            for (vector, part) in vectors.iter_mut().zip(&*parts) {
                *vector = load(part);
            }
            for feature in features {
                let weight = _mm512_set1_epi64(feature.weight as i64);
                for (vector, mask) in vectors.iter_mut().zip(feature.hash[word].to_le_bytes()) {
                    *vector = _mm512_mask_add_epi64(*vector, mask, *vector, weight);
                }
            }
            for (vector, part) in vectors.iter().zip(parts) {
                // SAFETY: the store writes the 64 bytes of `part`, and needs no alignment.
                #[allow(unsafe_code)]
                unsafe {
                    _mm512_storeu_si512(part.as_mut_ptr().cast(), *vector);
                }
            }
        }
    }
}

/// Adds features of the same weight, `weight`: adds `weight * ones[i]` to sum i. `ones[i]` is the
/// number of features whose hash has bit i set.
#[inline(always)]
fn add_products(sums: &mut [u64; 64], ones: &[u64; 64], weight: u64) {
    for (sum, ones) in sums.iter_mut().zip(ones) {
        *sum += ones * weight;
    }
}

/// Returns a word in which bit i is set if `sums[i]` is more than half of `total`.
#[inline(always)]
fn above_half_portable(sums: &[u64; 64], total: u64) -> u64 {
    let bits = sums.iter().enumerate();
    bits.fold(0, |all, (bit, sum)| all | u64::from(2 * sum > total) << bit)
}

fn above_half(sums: &[u64; 64], total: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if crate::simd::has_avx512() {
        // SAFETY: the processor has AVX-512, as checked above.
        #[allow(unsafe_code)]
        return unsafe { avx512::above_half(sums, total) };
    }
    above_half_portable(sums, total)
}

/// Returns `W` words. Bit `bit` of word `word` is 1 if `is_set(word, bit)` is true.
pub(super) fn words<const W: usize>(is_set: impl Fn(usize, usize) -> bool) -> [u64; W] {
    std::array::from_fn(|word| {
        (0..64).fold(0, |all, bit| all | (u64::from(is_set(word, bit)) << bit))
    })
}

impl<const W: usize> Accumulator<W> {
    /// Adds one feature, given by its hash and its weight.
    #[inline(always)]
    pub fn add(&mut self, hash: [u64; W], weight: u64) {
        self.total += weight;
        add_where_set(&mut self.set, hash, weight);
    }

    /// Removes one feature that was added with the same hash and weight.
    pub fn remove(&mut self, hash: [u64; W], weight: u64) {
        self.total -= weight;
        for (set, word) in self.set.iter_mut().zip(hash) {
            for (bit, set) in set.iter_mut().enumerate() {
                *set -= weight * ((word >> bit) & 1);
            }
        }
    }

    /// Adds features to the sums, with vector instructions if the processor has them.
    pub(super) fn add_all(&mut self, features: &[Weighted<W>]) {
        self.total += features.iter().map(|feature| feature.weight).sum::<u64>();
        #[cfg(target_arch = "x86_64")]
        {
            if crate::simd::has_avx512() {
                // SAFETY: the processor has AVX-512, as checked above.
                #[allow(unsafe_code)]
                return unsafe { avx512::add_all(&mut self.set, features) };
            }
            if crate::simd::has_avx2() {
                // SAFETY: the processor has AVX2, as checked above.
                #[allow(unsafe_code)]
                return unsafe { add_all_avx2(&mut self.set, features) };
            }
        }
        add_all_portable(&mut self.set, features);
    }

    /// Adds a group of features to the sums. Each feature has the weight `weight`. `group` has one
    /// counter for each word of the hashes. The counter has counted, for each bit of the word, the
    /// features whose hash has this bit set.
    pub(super) fn add_group(&mut self, group: &mut [PositionalPopcount; W], weight: u64) {
        self.total += group[0].len * weight;
        for (set, counted) in self.set.iter_mut().zip(group) {
            let ones = counted.ones();
            #[cfg(target_arch = "x86_64")]
            if crate::simd::has_avx512() {
                // SAFETY: the processor has the features, as checked above.
                #[allow(unsafe_code)]
                unsafe {
                    avx512::add_products(set, ones, weight);
                }
                continue;
            }
            add_products(set, ones, weight);
        }
    }

    /// Returns the simhash, or `None` if the total weight is 0. A bit is 1 if the features with
    /// this bit in their hashes have more than half of the total weight. Otherwise it is 0, also if
    /// they have exactly half.
    pub fn simhash(&self) -> Option<[u64; W]> {
        (self.total > 0).then(|| (self.set.each_ref()).map(|sums| above_half(sums, self.total)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn implementations_agree(
            features in prop::collection::vec((any::<[u64; 2]>(), 0_u64..1 << 40), 0..100),
        ) {
            let weighted = |&(hash, weight): &([u64; 2], u64)| Weighted { hash, weight };
            let all: Vec<_> = features.iter().map(weighted).collect();
            let mut chosen = Accumulator::default();
            chosen.add_all(&all);
            let mut portable = [[0; 64]; 2];
            add_all_portable(&mut portable, &all);
            let mut expected = Accumulator::default();
            features.iter().for_each(|&(hash, weight)| expected.add(hash, weight));
            prop_assert_eq!(chosen.set, expected.set);
            prop_assert_eq!(chosen.total, expected.total);
            prop_assert_eq!(portable, expected.set);
            for sums in &expected.set {
                let bits = above_half_portable(sums, expected.total);
                prop_assert_eq!(above_half(sums, expected.total), bits);
                prop_assert_eq!([bits], words(|_, bit| 2 * sums[bit] > expected.total));
            }
            #[cfg(target_arch = "x86_64")]
            if crate::simd::has_avx2() {
                let mut avx2 = [[0; 64]; 2];
                // SAFETY: the processor has AVX2, as checked above.
                #[allow(unsafe_code)]
                unsafe { add_all_avx2(&mut avx2, &all) };
                prop_assert_eq!(avx2, expected.set);
            }
        }
    }
}
