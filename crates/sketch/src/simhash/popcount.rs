//! Positional population count: how often each bit position is set in a list of words.

/// Counts, for each of the 64 bit positions, the words that have this bit set.
///
/// The portable code collects pending counts, which it later adds to the counts in `wide`. Their
/// lowest four digits are bit-sliced: one word holds the same binary digit of all 64 counts. A
/// Harley-Seal tree of carry-save adders adds 16 words to these digits, and returns one carry word,
/// in which each set bit counts 16 (Mula, Kurz, Lemire, "Faster population counts using AVX2
/// instructions", 2018). Only the carry word is added to byte counters. These are plain 64-bit
/// operations, about three cycles for each added word.
///
/// With AVX-512, each word of a short list is a mask that adds 1 to some of 64 byte counters, one
/// cycle each. For a long list, the AVX-512 code runs the tree on eight words at once.
#[derive(Clone)]
pub(super) struct PositionalPopcount {
    /// Lowest binary digit (value 1) of each pending count. Bit i belongs to bit position i.
    ones: u64,
    /// Second binary digit (value 2) of each pending count. Bit i belongs to bit position i.
    twos: u64,
    /// Third binary digit (value 4) of each pending count. Bit i belongs to bit position i.
    fours: u64,
    /// Fourth binary digit (value 8) of each pending count. Bit i belongs to bit position i.
    eights: u64,
    /// Pending counts in units of 16, as byte counters. Byte j of element i belongs to bit position
    /// 8 * i + j.
    sixteens: [u64; 8],
    /// Number of additions to `sixteens` since it was last emptied, at most 255, so that no byte
    /// overflows.
    sixteens_added: u32,
    /// For each bit position, the number of added words with this bit set. Does not include the
    /// pending counts, which are in the other fields.
    wide: [u64; 64],
    /// Number of words added.
    pub len: u64,
}

/// Minimum number of hashes for which the AVX-512 tree is faster than adding word by word.
#[cfg(target_arch = "x86_64")]
const MIN_TREE_HASHES: usize = 128;

/// For each value of a byte, a word that spreads its bits over eight bytes: byte j of the word is
/// bit j of the value, 0 or 1.
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

/// Carry-save adder, for each bit position: adds three bits of equal value. Returns a bit of the
/// same value and a carry of twice the value.
#[inline(always)]
const fn add3(a: u64, b: u64, c: u64) -> (u64, u64) {
    let half = a ^ b;
    (half ^ c, (a & b) | (half & c))
}

impl PositionalPopcount {
    /// Counter to which no words were added.
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

    /// Adds the word at index `word` of each hash. Fastest for a multiple of 16 hashes.
    pub fn add<const W: usize>(&mut self, hashes: &[[u64; W]], word: usize) {
        self.len += hashes.len() as u64;
        #[cfg(target_arch = "x86_64")]
        if crate::simd::has_avx512() {
            // SAFETY: the processor has the features, as checked above.
            #[allow(unsafe_code)]
            return unsafe {
                match hashes.len() {
                    MIN_TREE_HASHES.. => avx512::add_many(&mut self.wide, hashes, word),
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

    /// Moves the counts in `sixteens` to `wide`.
    fn widen(&mut self) {
        for (byte, counters) in self.sixteens.iter_mut().enumerate() {
            for (bit, count) in counters.to_le_bytes().into_iter().enumerate() {
                self.wide[8 * byte + bit] += 16 * u64::from(count);
            }
            *counters = 0;
        }
        self.sixteens_added = 0;
    }

    /// Returns, for each bit position, the number of added words with this bit set.
    pub fn ones(&mut self) -> &[u64; 64] {
        // Even if `sixteens` has just been emptied, the fields `ones`, `twos`, `fours` and `eights`
        // may hold counts.
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

    /// Number of 64-byte vectors in a group, which [`add_group`] adds in one step.
    const GROUP: usize = 8;
    /// Maximum number of groups that [`add_group`] adds before the sums are moved to the counts.
    /// The sums of more groups may not fit in [`PLANES`] bits.
    const GROUPS: usize = 15;
    /// Number of bits of each sum. Each bit position of a vector has a sum: the number of vectors
    /// with this bit set. The sums are bit-sliced: a plane is a vector with the same binary digit
    /// of all sums.
    const PLANES: usize = 7;

    /// Takes the word at index `word` of each hash, and adds the number of words with bit i set to
    /// `counts[i]`. Reads eight words at once.
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
            // The total of the lowest four planes fits in a byte: it is at most 8 lanes times 15.
            let (low, high) = lanes.split_at(4);
            let (low, high) = (sums::<W>(low, word), sums::<W>(high, word));
            for ((count, low), high) in counts.iter_mut().zip(low).zip(high) {
                *count += u64::from(low) + 16 * u64::from(high);
            }
        }
    }

    /// Adds the vectors of a group to the bit-sliced sums. Each bit position of a vector has its
    /// own sum.
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

    /// Returns, for each bit position, the total of the bit-sliced sums in `planes`. A plane has
    /// eight lanes of 64 bits, and the words of the hashes alternate in the lanes. Only the lanes
    /// for the word at index `word` of a hash are added.
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

    /// Adds the word at index `word` of each hash to `counts`, one word at a time.
    #[target_feature(enable = "avx512f,avx512bw")]
    pub fn add<const W: usize>(counts: &mut [u64; 64], hashes: &[[u64; W]], word: usize) {
        let one = _mm512_set1_epi8(1);
        // More than 255 hashes would overflow a byte counter.
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
        // Adds the words one by one, and all words at once.
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
