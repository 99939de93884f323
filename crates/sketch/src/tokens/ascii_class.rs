//! Classes of ASCII characters that the word-break rules distinguish, as bit masks.
//!
//! All other bytes count as letters, for text in which all other characters are letters.

const LETTER: u8 = 1;
const DIGIT: u8 = 2;
const UNDERSCORE: u8 = 4;
const MID_LETTER: u8 = 8;
const MID_NUM: u8 = 16;

/// Characters of a block.
pub(super) const BLOCK: usize = crate::shingle::BLOCK;

/// Classes of the characters of a block, a bit for each, the first in the lowest bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Masks {
    /// Letters, and all bytes of non-ASCII characters.
    pub letter: u64,
    /// Digits.
    pub digit: u64,
    /// `_`.
    pub underscore: u64,
    /// `'` `.` `:`, which join letters.
    pub mid_letter: u64,
    /// `'` `.` `,` `;`, which join digits.
    pub mid_num: u64,
}

/// Classifies the characters of each block.
pub(super) fn classify(blocks: &[[u8; BLOCK]], masks: &mut [Masks]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, as checked above.
        #[allow(unsafe_code)]
        unsafe {
            avx2::classify(blocks, masks);
        }
        return;
    }
    classify_portable(blocks, masks);
}

fn classify_portable(blocks: &[[u8; BLOCK]], masks: &mut [Masks]) {
    for (masks, block) in masks.iter_mut().zip(blocks) {
        *masks = portable(block);
    }
}

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
            // Moves the flags of eight bytes into the highest byte, the first one lowest.
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

    /// Bytes of a vector.
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
        // Unsigned x < n, as min(x, n - 1) == x.
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
            // Bytes of 128 and more have the highest bit set, which is the one that is taken.
            _mm256_or_si256(letter, text),
            range(text, b'0', 10),
            equal(b'_'),
            _mm256_or_si256(both, equal(b':')),
            _mm256_or_si256(both, _mm256_or_si256(equal(b','), equal(b';'))),
        ]
        .map(|plane| _mm256_movemask_epi8(plane) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Independent of `class`: character by character, as the documentation of [`Masks`] says.
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
