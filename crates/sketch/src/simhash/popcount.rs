//! Positional population count: how often each bit position is set in a list of words.

/// Number of 64-bit words that have each bit set.
///
/// Words are added bit-sliced. A Harley-Seal tree of carry-save adders reduces 16 words to one
/// word of sixteens (Mula, Kurz, Lemire, "Faster population counts using AVX2 instructions",
/// 2018), and only the sixteens are spread to byte counters. These are plain 64-bit operations,
/// about three cycles a word on any platform. With AVX-512, a short list uses each word as a mask
/// that adds 1 to 64 byte counters, one cycle each. A long list uses the tree for eight words at
/// once.
#[derive(Clone)]
pub(super) struct PositionalPopcount {
    ones: u64,
    twos: u64,
    fours: u64,
    eights: u64,
    /// Counts of sixteens, one byte each, for the eight bits of each byte of the word.
    sixteens: [u64; 8],
    /// Number of additions to `sixteens` since it was last emptied, at most 255.
    sixteens_added: u32,
    /// Number of words with each bit set, without the words counted above.
    wide: [u64; 64],
    pub len: u64,
}

/// Minimum number of words for which processing eight at once is faster.
#[cfg(target_arch = "x86_64")]
const MANY: usize = 128;

/// For each byte, a word with bit j of the byte in byte j.
const SPREAD: [u64; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut bit = 0;
        while bit < 8 {
            table[byte] |= ((byte as u64 >> bit) & 1) << (8 * bit);
            bit += 1;
        }
        byte += 1;
    }
    table
};

/// Carry-save adder: adds three bits of equal value. Returns a bit of the same value and a carry.
#[inline(always)]
const fn add3(a: u64, b: u64, c: u64) -> (u64, u64) {
    let half = a ^ b;
    (half ^ c, (a & b) | (half & c))
}

impl PositionalPopcount {
    /// No words counted.
    pub const EMPTY: Self = Self {
        ones: 0,
        twos: 0,
        fours: 0,
        eights: 0,
        sixteens: [0; 8],
        sixteens_added: 0,
        wide: [0; 64],
        len: 0,
    };

    /// Adds one word of each hash. Fastest for a multiple of 16 hashes.
    pub fn add<const W: usize>(&mut self, hashes: &[[u64; W]], word: usize) {
        self.len += hashes.len() as u64;
        #[cfg(target_arch = "x86_64")]
        if crate::simd::has_avx512() {
            // SAFETY: the processor has the features, as checked above.
            #[allow(unsafe_code)]
            return unsafe {
                match hashes.len() {
                    MANY.. => avx512::add_many(&mut self.wide, hashes, word),
                    _ => avx512::add(&mut self.wide, hashes, word),
                }
            };
        }
        self.add_portable(hashes, word);
    }

    fn add_portable<const W: usize>(&mut self, hashes: &[[u64; W]], word: usize) {
        let (sixteens, rest) = hashes.as_chunks::<16>();
        for sixteen in sixteens {
            self.add_sixteen(&sixteen.map(|hash| hash[word]));
        }
        if !rest.is_empty() {
            let word_of = |n| rest.get(n).map_or(0, |hash: &[u64; W]| hash[word]);
            self.add_sixteen(&std::array::from_fn(word_of));
        }
    }

    #[inline(always)]
    fn add_sixteen(&mut self, w: &[u64; 16]) {
        let quarter = |ones, twos, at: usize| {
            let (ones, a) = add3(ones, w[at], w[at + 1]);
            let (ones, b) = add3(ones, w[at + 2], w[at + 3]);
            let (twos, fours) = add3(twos, a, b);
            (ones, twos, fours)
        };
        let (ones, twos, a) = quarter(self.ones, self.twos, 0);
        let (ones, twos, b) = quarter(ones, twos, 4);
        let (fours, c) = add3(self.fours, a, b);
        let (ones, twos, a) = quarter(ones, twos, 8);
        let (ones, twos, b) = quarter(ones, twos, 12);
        let (fours, d) = add3(fours, a, b);
        let (eights, sixteens) = add3(self.eights, c, d);
        (self.ones, self.twos, self.fours, self.eights) = (ones, twos, fours, eights);
        for (counters, byte) in self.sixteens.iter_mut().zip(sixteens.to_le_bytes()) {
            *counters += SPREAD[usize::from(byte)];
        }
        self.sixteens_added += 1;
        if self.sixteens_added == 255 {
            self.widen();
        }
    }

    fn widen(&mut self) {
        for (byte, counters) in self.sixteens.iter_mut().enumerate() {
            for (bit, count) in counters.to_le_bytes().into_iter().enumerate() {
                self.wide[8 * byte + bit] += 16 * u64::from(count);
            }
            *counters = 0;
        }
        self.sixteens_added = 0;
    }

    /// Returns the number of words with each bit set.
    pub fn ones(&mut self) -> &[u64; 64] {
        // The planes may hold words even if the counts of sixteens were just widened.
        if self.sixteens_added > 0 {
            self.widen();
        }
        if self.ones | self.twos | self.fours | self.eights != 0 {
            let planes = [
                &mut self.ones,
                &mut self.twos,
                &mut self.fours,
                &mut self.eights,
            ];
            for (value, plane) in planes.into_iter().enumerate() {
                let plane = std::mem::take(plane);
                for (bit, count) in self.wide.iter_mut().enumerate() {
                    *count += (plane >> bit & 1) << value;
                }
            }
        }
        &self.wide
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::{
        __m512i, _mm512_add_epi8, _mm512_and_si512, _mm512_loadu_si512, _mm512_mask_add_epi8,
        _mm512_set1_epi8, _mm512_setzero_si512, _mm512_storeu_si512, _mm512_ternarylogic_epi64,
        _mm512_xor_si512,
    };

    /// Number of vectors added in one step.
    const GROUP: usize = 8;
    /// Maximum number of groups for sums of [`PLANES`] bits.
    const GROUPS: usize = 15;
    /// Number of bits of a sum.
    const PLANES: usize = 7;

    /// Adds one word of each hash to the counts of its bits. Adds eight words at once to sums that
    /// are stored bit-sliced, with one bit of each sum in each plane.
    #[target_feature(enable = "avx512f,avx512bw")]
    pub fn add_many<const W: usize>(counts: &mut [u64; 64], hashes: &[[u64; W]], word: usize) {
        const { assert!(8 % W == 0) };
        let words = hashes.as_flattened();
        for words in words.chunks(8 * GROUP * GROUPS) {
            let mut planes = [_mm512_setzero_si512(); PLANES];
            for words in words.chunks(8 * GROUP) {
                let mut group = [[0; 8]; GROUP];
                let group = match words.as_chunks::<8>().0.first_chunk() {
                    Some(whole) => whole,
                    None => {
                        group.as_flattened_mut()[..words.len()].copy_from_slice(words);
                        &group
                    }
                };
                add_group(&mut planes, group);
            }
            let mut lanes = [[0; 8]; PLANES];
            for (lanes, plane) in lanes.iter_mut().zip(planes) {
                // SAFETY: the store writes the 64 bytes of `lanes`, and needs no alignment.
                #[allow(unsafe_code)]
                unsafe {
                    _mm512_storeu_si512(lanes.as_mut_ptr().cast(), plane);
                }
            }
            // A sum of four planes fits a byte: it is at most 8 times 15.
            let (low, high) = lanes.split_at(4);
            let (low, high) = (sums::<W>(low, word), sums::<W>(high, word));
            for ((count, low), high) in counts.iter_mut().zip(low).zip(high) {
                *count += u64::from(low) + 16 * u64::from(high);
            }
        }
    }

    /// Adds one bit of each vector to each sum.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn add_group(planes: &mut [__m512i; PLANES], group: &[[u64; 8]; GROUP]) {
        let add3 = |a: __m512i, b: __m512i, c: __m512i| {
            let sum = _mm512_ternarylogic_epi64::<0x96>(a, b, c);
            (sum, _mm512_ternarylogic_epi64::<0xE8>(a, b, c))
        };
        // SAFETY: each load reads the 64 bytes of `group[at]`, and needs no alignment.
        #[allow(unsafe_code)]
        let load = |at: usize| unsafe { _mm512_loadu_si512(group[at].as_ptr().cast()) };
        let [ones, twos, fours, rest @ ..] = planes;
        let mut half = |at: usize| {
            let (sum, a) = add3(*ones, load(at), load(at + 1));
            let (sum, b) = add3(sum, load(at + 2), load(at + 3));
            *ones = sum;
            let (sum, carry) = add3(*twos, a, b);
            *twos = sum;
            carry
        };
        let (a, b) = (half(0), half(4));
        let (sum, mut carry) = add3(*fours, a, b);
        *fours = sum;
        for plane in rest {
            let next = _mm512_and_si512(*plane, carry);
            *plane = _mm512_xor_si512(*plane, carry);
            carry = next;
        }
    }

    /// Returns, for each bit, the total of the sums in the lanes of one word.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn sums<const W: usize>(planes: &[[u64; 8]], word: usize) -> [u8; 64] {
        let mut sums = [_mm512_setzero_si512(); 2];
        for (value, lanes) in planes.iter().enumerate() {
            // Planes of high values are empty in short texts.
            if *lanes == [0; 8] {
                continue;
            }
            let value = _mm512_set1_epi8(1 << value);
            for (at, &lane) in lanes.iter().skip(word).step_by(W).enumerate() {
                let sum = &mut sums[at % 2];
                *sum = _mm512_mask_add_epi8(*sum, lane, *sum, value);
            }
        }
        let mut bytes = [0; 64];
        // SAFETY: the store writes the 64 bytes of `bytes`, and needs no alignment.
        #[allow(unsafe_code)]
        unsafe {
            let sum = _mm512_add_epi8(sums[0], sums[1]);
            _mm512_storeu_si512(bytes.as_mut_ptr().cast(), sum);
        }
        bytes
    }

    /// Adds one word of each hash to the counts of its bits.
    #[target_feature(enable = "avx512f,avx512bw")]
    pub fn add<const W: usize>(counts: &mut [u64; 64], hashes: &[[u64; W]], word: usize) {
        let one = _mm512_set1_epi8(1);
        // Larger counts would overflow a byte.
        for hashes in hashes.chunks(255) {
            // Two sums, so that no addition waits for the previous one.
            let mut sums = [_mm512_setzero_si512(); 2];
            let (pairs, last) = hashes.as_chunks::<2>();
            for pair in pairs {
                for (sum, hash) in sums.iter_mut().zip(pair) {
                    *sum = _mm512_mask_add_epi8(*sum, hash[word], *sum, one);
                }
            }
            for hash in last {
                sums[0] = _mm512_mask_add_epi8(sums[0], hash[word], sums[0], one);
            }
            let mut bytes = [0_u8; 64];
            // SAFETY: the store writes the 64 bytes of `bytes`, and needs no alignment.
            #[allow(unsafe_code)]
            unsafe {
                let sum = _mm512_add_epi8(sums[0], sums[1]);
                _mm512_storeu_si512(bytes.as_mut_ptr().cast(), sum);
            }
            for (count, byte) in counts.iter_mut().zip(bytes) {
                *count += u64::from(byte);
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
        fn positional_count_is_a_count_per_bit(
            words in prop::collection::vec(any::<[u64; 1]>(), 0..2500),
            repeat in 1_usize..12,
        ) {
            let mut expected = [0_u64; 64];
            for &[word] in words.iter().cycle().take(words.len() * repeat) {
                for (bit, n) in expected.iter_mut().enumerate() {
                    *n += (word >> bit) & 1;
                }
            }
            let (mut chosen, mut portable) = (PositionalPopcount::EMPTY, PositionalPopcount::EMPTY);
            for _ in 0..repeat {
                chosen.add(&words, 0);
                portable.add_portable(&words, 0);
            }
            prop_assert_eq!(chosen.ones(), &expected);
            let mut wide = PositionalPopcount::EMPTY;
            let both: Vec<_> = words.iter().map(|&[word]| [!word, word]).collect();
            (0..repeat).for_each(|_| wide.add(&both, 1));
            prop_assert_eq!(wide.ones(), &expected);
            prop_assert_eq!(chosen.len, (words.len() * repeat) as u64);
            prop_assert_eq!(portable.ones(), &expected);
            // Reading the counts does not change them.
            portable.add_portable(&words, 0);
            chosen.add(&words, 0);
            prop_assert_eq!(portable.ones(), chosen.ones());
        }
    }

    #[test]
    fn every_number_of_words_counts() {
        // One by one, and all words at once.
        let words: Vec<_> = (0..9_000_u64)
            .map(|n| [n.wrapping_mul(0x9E37_79B9_7F4A_7C15)])
            .collect();
        let (mut one_by_one, mut expected) = (PositionalPopcount::EMPTY, [0_u64; 64]);
        for (at, word) in words.iter().enumerate() {
            one_by_one.add_portable(&[*word], 0);
            for (bit, count) in expected.iter_mut().enumerate() {
                *count += (word[0] >> bit) & 1;
            }
            assert_eq!(one_by_one.clone().ones(), &expected, "{at}");
            let mut at_once = PositionalPopcount::EMPTY;
            at_once.add_portable(&words[..=at], 0);
            assert_eq!(at_once.ones(), &expected, "{at}");
        }
    }

    #[test]
    fn byte_counters_do_not_overflow() {
        let words = [[u64::MAX]; 100_000];
        let (mut chosen, mut portable) = (PositionalPopcount::EMPTY, PositionalPopcount::EMPTY);
        chosen.add(&words, 0);
        portable.add_portable(&words, 0);
        assert_eq!(chosen.ones(), &[100_000; 64]);
        assert_eq!(portable.ones(), &[100_000; 64]);
    }
}
