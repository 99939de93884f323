//! Classifies blocks of 64 ASCII characters by the classes that the word-break rules of UAX 29
//! distinguish. The result has one bit mask for each class.
//!
//! Bytes of 128 and more count as letters. So all non-ASCII characters of the text must be letters
//! that behave like ASCII letters.

const LETTER: u8 = 1;
const DIGIT: u8 = 2;
const UNDERSCORE: u8 = 4;
const MID_LETTER: u8 = 8;
const MID_NUM: u8 = 16;

/// Number of bytes of a block: one for each bit of a mask.
pub(super) const BLOCK: usize = 64;

/// Classes of the bytes of a block: one mask for each class, with one bit for each byte. The first
/// byte has the lowest bit. A byte may be in several classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Masks {
    /// ASCII letters, and all bytes of non-ASCII characters.
    pub letter: u64,
    /// Digits `0` to `9`.
    pub digit: u64,
    /// The underscore `_`.
    pub underscore: u64,
    /// Punctuation that joins letters: `'` `.` `:`.
    pub mid_letter: u64,
    /// Punctuation that joins digits: `'` `.` `,` `;`.
    pub mid_num: u64,
}

/// Writes the class masks of each block to the element of `masks` at the same index.
pub(super) fn classify(blocks: &[[u8; BLOCK]], masks: &mut [Masks]) {
    #[cfg(target_arch = "x86_64")]
    if crate::simd::has_avx2() {
        // SAFETY: the processor has AVX2, as checked above.
        #[allow(unsafe_code)]
        unsafe {
            avx2::classify(blocks, masks);
        }
        return;
    }
    #[cfg(target_arch = "aarch64")]
    if crate::simd::has_neon() {
        // SAFETY: every 64-bit ARM processor has NEON.
        #[allow(unsafe_code)]
        return unsafe { neon::classify(blocks, masks) };
    }
    classify_portable(blocks, masks);
}

fn classify_portable(blocks: &[[u8; BLOCK]], masks: &mut [Masks]) {
    for (masks, block) in masks.iter_mut().zip(blocks) {
        *masks = portable(block);
    }
}

/// Returns the classes of a byte as a sum of flags: the constants from [`LETTER`] to [`MID_NUM`].
#[inline(always)]
const fn class(byte: u8) -> u8 {
    let letter = ((byte | 0x20).wrapping_sub(b'a') < 26) as u8 | byte >> 7;
    let digit = (byte.wrapping_sub(b'0') < 10) as u8;
    let both = ((byte == b'\'') as u8) | ((byte == b'.') as u8);
    let mid_letter = both | (byte == b':') as u8;
    let mid_num = both | (byte == b',') as u8 | (byte == b';') as u8;
    (letter * LETTER)
        | (digit * DIGIT)
        | ((byte == b'_') as u8 * UNDERSCORE)
        | (mid_letter * MID_LETTER)
        | (mid_num * MID_NUM)
}

fn portable(block: &[u8; BLOCK]) -> Masks {
    let classes = block.map(class);
    let (eights, _) = classes.as_chunks::<8>();
    let plane = |which: u8| {
        eights.iter().enumerate().fold(0, |mask, (at, &eight)| {
            let flags =
                (u64::from_le_bytes(eight) >> which.trailing_zeros()) & 0x0101_0101_0101_0101;
            // The highest byte of the product has the flags of all eight bytes. Its lowest bit is
            // the flag of the first byte.
            mask | (flags.wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * at)
        })
    };
    Masks {
        letter: plane(LETTER),
        digit: plane(DIGIT),
        underscore: plane(UNDERSCORE),
        mid_letter: plane(MID_LETTER),
        mid_num: plane(MID_NUM),
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{
        __m256i, _mm256_cmpeq_epi8, _mm256_min_epu8, _mm256_movemask_epi8, _mm256_or_si256,
        _mm256_set_epi64x, _mm256_set1_epi8, _mm256_sub_epi8,
    };

    use super::{BLOCK, Masks};

    /// Number of bytes in an AVX2 vector: half of a block.
    const HALF: usize = BLOCK / 2;

    #[target_feature(enable = "avx2")]
    pub fn classify(blocks: &[[u8; BLOCK]], masks: &mut [Masks]) {
        for (masks, block) in masks.iter_mut().zip(blocks) {
            let (halves, _) = block.as_chunks::<HALF>();
            let (low, high) = (class_masks(&halves[0]), class_masks(&halves[1]));
            let join = |plane: usize| u64::from(low[plane]) | u64::from(high[plane]) << HALF;
            *masks = Masks {
                letter: join(0),
                digit: join(1),
                underscore: join(2),
                mid_letter: join(3),
                mid_num: join(4),
            };
        }
    }

    #[target_feature(enable = "avx2")]
    fn class_masks(half: &[u8; HALF]) -> [u32; 5] {
        let (words, _) = half.as_chunks::<8>();
        let word = |at: usize| i64::from_le_bytes(words[at]);
        let text = _mm256_set_epi64x(word(3), word(2), word(1), word(0));
        let equal = |byte: u8| _mm256_cmpeq_epi8(text, _mm256_set1_epi8(byte as i8));
        // AVX2 has no unsigned comparison: x < n is tested as min(x, n - 1) == x.
        let range = |text: __m256i, first: u8, n: u8| {
            let from_first = _mm256_sub_epi8(text, _mm256_set1_epi8(first as i8));
            _mm256_cmpeq_epi8(
                _mm256_min_epu8(from_first, _mm256_set1_epi8(n as i8 - 1)),
                from_first,
            )
        };
        let letter = range(_mm256_or_si256(text, _mm256_set1_epi8(0x20)), b'a', 26);
        let both = _mm256_or_si256(equal(b'\''), equal(b'.'));
        [
            // Bytes of 128 and more count as letters: they have the highest bit set, and `movemask`
            // takes this bit of each byte.
            _mm256_or_si256(letter, text),
            range(text, b'0', 10),
            equal(b'_'),
            _mm256_or_si256(both, equal(b':')),
            _mm256_or_si256(both, _mm256_or_si256(equal(b','), equal(b';'))),
        ]
        .map(|plane| _mm256_movemask_epi8(plane) as u32)
    }
}

#[cfg(target_arch = "aarch64")]
mod neon {
    use std::arch::aarch64::*;

    use super::{BLOCK, Masks};

    /// Number of bytes in a NEON vector: a quarter of a block.
    const QUARTER: usize = BLOCK / 4;

    #[target_feature(enable = "neon")]
    pub fn classify(blocks: &[[u8; BLOCK]], masks: &mut [Masks]) {
        for (masks, block) in masks.iter_mut().zip(blocks) {
            let (quarters, _) = block.as_chunks::<QUARTER>();
            // SAFETY: each load reads the 16 bytes of a quarter, and needs no alignment.
            #[allow(unsafe_code)]
            let text: [uint8x16_t; 4] =
                std::array::from_fn(|at| unsafe { vld1q_u8(quarters[at].as_ptr()) });
            *masks = Masks {
                letter: mask(text, |text| {
                    let letter = range(vorrq_u8(text, vdupq_n_u8(0x20)), b'a', 26);
                    vorrq_u8(letter, vcltzq_s8(vreinterpretq_s8_u8(text)))
                }),
                digit: mask(text, |text| range(text, b'0', 10)),
                underscore: mask(text, |text| equal(text, b'_')),
                mid_letter: mask(text, |text| vorrq_u8(both(text), equal(text, b':'))),
                mid_num: mask(text, |text| {
                    vorrq_u8(both(text), vorrq_u8(equal(text, b','), equal(text, b';')))
                }),
            };
        }
    }

    #[inline]
    #[target_feature(enable = "neon")]
    fn equal(text: uint8x16_t, byte: u8) -> uint8x16_t {
        vceqq_u8(text, vdupq_n_u8(byte))
    }

    #[inline]
    #[target_feature(enable = "neon")]
    fn range(text: uint8x16_t, first: u8, n: u8) -> uint8x16_t {
        vcltq_u8(vsubq_u8(text, vdupq_n_u8(first)), vdupq_n_u8(n))
    }

    /// Returns a vector in which the bytes that are `'` or `.` have all bits set. These characters
    /// join letters and also digits.
    #[inline]
    #[target_feature(enable = "neon")]
    fn both(text: uint8x16_t) -> uint8x16_t {
        vorrq_u8(equal(text, b'\''), equal(text, b'.'))
    }

    /// Returns a mask with one bit for each of 64 bytes: 1 if `is_in` sets all bits of the byte.
    /// The first byte has the lowest bit.
    #[inline]
    #[target_feature(enable = "neon")]
    fn mask(text: [uint8x16_t; 4], is_in: impl Fn(uint8x16_t) -> uint8x16_t) -> u64 {
        let bits = vreinterpretq_u8_u64(vdupq_n_u64(0x8040_2010_0804_0201));
        let [a, b, c, d] = text.map(|text| vandq_u8(is_in(text), bits));
        // Three pairwise additions combine the bits of each eight neighbouring bytes in one byte.
        let sums = vpaddq_u8(vpaddq_u8(a, b), vpaddq_u8(c, d));
        vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(sums, sums)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reference implementation: classifies each byte as documented at [`Masks`], without using
    /// `class`.
    fn plain(block: &[u8; BLOCK]) -> Masks {
        let mask = |is: fn(char) -> bool| {
            (0..BLOCK)
                .filter(|&at| is(char::from(block[at])))
                .map(|at| 1 << at)
                .sum()
        };
        Masks {
            letter: mask(|c| c.is_ascii_alphabetic() || !c.is_ascii()),
            digit: mask(|c| c.is_ascii_digit()),
            underscore: mask(|c| c == '_'),
            mid_letter: mask(|c| "'.:".contains(c)),
            mid_num: mask(|c| "'.,;".contains(c)),
        }
    }

    fn assert_implementations_agree(block: [u8; BLOCK]) {
        let expected = [plain(&block); 2];
        let mut got = [Masks::default(); 2];
        classify(&[block; 2], &mut got);
        assert_eq!(got, expected);
        got = Default::default();
        classify_portable(&[block; 2], &mut got);
        assert_eq!(got, expected);
    }

    #[test]
    fn every_byte_everywhere() {
        for byte in 0..=u8::MAX {
            assert_implementations_agree(std::array::from_fn(|at| byte.wrapping_add(at as u8)));
            assert_implementations_agree([byte; BLOCK]);
        }
    }

    proptest! {
        #[test]
        fn random_blocks(block in prop::array::uniform32(any::<[u8; 2]>())) {
            assert_implementations_agree(*block.as_flattened().first_chunk().unwrap());
        }
    }
}
