//! Word tokenizer for Han and Hiragana, in which each character is a word, and for the punctuation
//! between them. Nearly all these characters have three bytes in UTF-8.

use crate::feature_sink::FeatureSink;
use crate::normalize::class::Class;
use crate::shingle::{SEPARATOR, Shingles};
use crate::token_buffer::TokenBuffer;

/// Approximate maximum number of bytes that one call of [`single_char_words`] reads.
const MAX_SIMPLE_BYTES: usize = 1 << 13;
/// Number of three-byte characters that are processed at once, as a group.
const GROUP: usize = 16;
/// Number of bytes loaded for a group: three for each character, and more to fill a 64-byte vector.
const GROUP_BYTES: usize = 64;

/// U+4E00, the first common Han character: its UTF-8 bytes as a big-endian number.
const FIRST_HAN: u32 = 0xE4_B8_80;
/// U+9FFF, the last common Han character: its UTF-8 bytes as a big-endian number.
const LAST_HAN: u32 = 0xE9_BF_BF;
/// First and last character of ranges that contain most Chinese punctuation, each as the big-endian
/// number of its UTF-8 bytes: U+3000 to U+3002, U+3008 to U+3011, U+FF08 to U+FF0F, U+FF1A to
/// U+FF20.
const SKIPPED: [(u32, u32); 4] = [
    (0xE3_80_80, 0xE3_80_82),
    (0xE3_80_88, 0xE3_80_91),
    (0xEF_BC_88, 0xEF_BC_8F),
    (0xEF_BC_9A, 0xEF_BC_A0),
];

/// Adds the leading characters of `text` that are words by themselves to `shingles`, and skips the
/// punctuation between them. Stops before any other character. Returns the number of bytes read, at
/// most some kilobytes.
pub(super) fn single_char_words(
    text: &str,
    shingles: &mut Shingles,
    sink: &mut impl FeatureSink,
) -> usize {
    let mut at = 0;
    while at < MAX_SIMPLE_BYTES {
        let groups = push_groups(&text.as_bytes()[at..], shingles.tokens());
        at += groups;
        let mut chars = text[at..].chars();
        let Some(c) = chars.next() else {
            break;
        };
        let class = Class::from_char(c);
        if groups > 0 && !class.never_combines() {
            // The next character may be a mark that changes the previous character.
            at -= 3;
            if class_of_three(&text.as_bytes()[at..]) == Class::SingleCharWord {
                shingles.tokens().drop_last();
            }
            break;
        }
        if !is_read(class)
            || chars
                .next()
                .is_some_and(|c| !Class::from_char(c).never_combines())
        {
            break;
        }
        if class == Class::SingleCharWord {
            shingles.push_char(c, sink);
        }
        at += c.len_utf8();
    }
    shingles.emit_full_batch(sink);
    at
}

/// Returns true for the classes of characters that [`single_char_words`] reads: single-character
/// words and the punctuation between them.
const fn is_read(class: Class) -> bool {
    matches!(class, Class::SingleCharWord | Class::Separator | Class::Mid)
}

/// Adds the leading three-byte characters of `text` that are words by themselves to `tokens`, and
/// skips punctuation, group by group. Returns the number of bytes read.
fn push_groups(text: &[u8], tokens: &mut TokenBuffer) -> usize {
    let mut at = 0;
    while at < MAX_SIMPLE_BYTES {
        let rest = &text[at..];
        let read = match rest.first_chunk() {
            Some(group) => push_group(group, tokens),
            None => {
                let mut group = [0; GROUP_BYTES];
                group[..rest.len()].copy_from_slice(rest);
                push_group(&group, tokens)
            }
        };
        at += 3 * read;
        if read < GROUP {
            break;
        }
    }
    at
}

/// Adds the leading characters of a group that are words by themselves to `tokens`, and skips
/// punctuation. Stops before any other character and before one that does not have three bytes.
/// Returns the number of characters read. `group` must begin at the start of a character, and may
/// be padded with zeroes.
fn push_group(group: &[u8; GROUP_BYTES], tokens: &mut TokenBuffer) -> usize {
    tokens.make_room(GROUP_BYTES, GROUP);
    #[cfg(target_arch = "x86_64")]
    if crate::simd::has_avx512() {
        // SAFETY: the processor has the features, as checked above.
        #[allow(unsafe_code)]
        return unsafe { avx512::push_group(group, tokens) };
    }
    push_group_portable(group, tokens)
}

fn push_group_portable(group: &[u8; GROUP_BYTES], tokens: &mut TokenBuffer) -> usize {
    let (threes, _) = group.as_chunks::<3>();
    let threes: &[[u8; 3]; GROUP] = threes.first_chunk().expect("a whole group");
    let numbers = threes.map(|[a, b, c]| u32::from_be_bytes([0, a, b, c]));
    let in_range = |first: u32, last: u32| {
        (numbers.iter().rev()).fold(0, |all, &number| {
            all << 1 | u16::from(number.wrapping_sub(first) <= last - first)
        })
    };
    let skipped = (SKIPPED.iter()).fold(0, |all, &(first, last)| all | in_range(first, last));
    let (words, read) = words_of_group(group, in_range(FIRST_HAN, LAST_HAN), skipped);
    for (at, &[a, b, c]) in threes.iter().enumerate() {
        // Punctuation is written too, and then overwritten, because a branch would be hard to
        // predict.
        tokens.bytes[tokens.len..][..4].copy_from_slice(&[a, b, c, SEPARATOR]);
        let word = usize::from(words >> at & 1);
        tokens.len += 4 * word;
        tokens.count += word;
        tokens.starts[tokens.count] = tokens.len;
    }
    read
}

/// Examines the three-byte characters of `group`. Returns a mask of those that are words, and the
/// number of leading characters that can be read. In a mask, bit i stands for the character at
/// index i. `han` is the mask of the characters from [`FIRST_HAN`] to [`LAST_HAN`], and `skipped`
/// is the mask of the characters in [`SKIPPED`].
#[inline(always)]
fn words_of_group(group: &[u8; GROUP_BYTES], han: u16, skipped: u16) -> (u16, usize) {
    let (mut words, mut others) = (han, !(han | skipped));
    while others != 0 {
        let at = others.trailing_zeros() as usize;
        let class = class_of_three(&group[3 * at..]);
        if !is_read(class) {
            return (words & !(u16::MAX << at), at);
        }
        words |= u16::from(class == Class::SingleCharWord) << at;
        others &= others - 1;
    }
    (words, GROUP)
}

/// Returns the class of the first character of `text`, or [`Class::Other`] if this character does
/// not have three bytes.
#[inline]
fn class_of_three(text: &[u8]) -> Class {
    let Some(&[first @ 0xE0..=0xEF, second, third]) = text.first_chunk() else {
        return Class::Other;
    };
    let bits = |byte: u8, mask: u8| u32::from(byte & mask);
    let code = bits(first, 0xF) << 12 | bits(second, 0x3F) << 6 | bits(third, 0x3F);
    char::from_u32(code).map_or(Class::Other, Class::from_char)
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::{
        _mm512_add_epi64, _mm512_cmple_epu32_mask, _mm512_loadu_si512, _mm512_maskz_compress_epi32,
        _mm512_or_si512, _mm512_permutexvar_epi32, _mm512_set1_epi32, _mm512_set1_epi64,
        _mm512_set4_epi32, _mm512_setr_epi32, _mm512_setr_epi64, _mm512_shuffle_epi8,
        _mm512_storeu_si512, _mm512_sub_epi32,
    };

    use super::{FIRST_HAN, GROUP, GROUP_BYTES, LAST_HAN, SEPARATOR, SKIPPED, words_of_group};
    use crate::token_buffer::TokenBuffer;

    /// AVX-512 version of [`super::push_group_portable`], which processes all characters of a group
    /// at once.
    #[target_feature(enable = "avx512f,avx512bw,bmi1,popcnt")]
    pub fn push_group(group: &[u8; GROUP_BYTES], tokens: &mut TokenBuffer) -> usize {
        // SAFETY: the load reads the 64 bytes of `group`, and needs no alignment.
        #[allow(unsafe_code)]
        let text = unsafe { _mm512_loadu_si512(group.as_ptr().cast()) };
        // Each quarter of the vector gets twelve bytes, and each 32-bit number three of these. The
        // first byte of a character is the highest byte of the number, so numbers have the order of
        // characters.
        let quarters = _mm512_setr_epi32(0, 1, 2, 0, 3, 4, 5, 0, 6, 7, 8, 0, 9, 10, 11, 0);
        let text = _mm512_permutexvar_epi32(quarters, text);
        let digits = _mm512_set4_epi32(
            0x80_09_0A_0Bu32 as i32,
            0x80_06_07_08u32 as i32,
            0x80_03_04_05u32 as i32,
            0x80_00_01_02u32 as i32,
        );
        let numbers = _mm512_shuffle_epi8(text, digits);
        let in_range = |first: u32, last: u32| {
            let above = _mm512_sub_epi32(numbers, _mm512_set1_epi32(first as i32));
            _mm512_cmple_epu32_mask(above, _mm512_set1_epi32((last - first) as i32))
        };
        let skipped = (SKIPPED.iter()).fold(0, |all, &(first, last)| all | in_range(first, last));
        let (words, read) = words_of_group(group, in_range(FIRST_HAN, LAST_HAN), skipped);
        // Each number again, now with the bytes in text order and a separator after them.
        let order = _mm512_set4_epi32(
            0x80_0B_0A_09u32 as i32,
            0x80_08_07_06u32 as i32,
            0x80_05_04_03u32 as i32,
            0x80_02_01_00u32 as i32,
        );
        let separator = _mm512_set1_epi32(i32::from(SEPARATOR) << 24);
        let spaced = _mm512_or_si512(_mm512_shuffle_epi8(text, order), separator);
        let packed = _mm512_maskz_compress_epi32(words, spaced);
        let ends = _mm512_add_epi64(
            _mm512_set1_epi64(tokens.len as i64),
            _mm512_setr_epi64(4, 8, 12, 16, 20, 24, 28, 32),
        );
        let out: &mut [u8; GROUP_BYTES] =
            (tokens.bytes[tokens.len..].first_chunk_mut()).expect("room for a group");
        let starts: &mut [usize; GROUP] =
            (tokens.starts[tokens.count + 1..].first_chunk_mut()).expect("room for starts");
        let (low, high) = starts.split_at_mut(GROUP / 2);
        // SAFETY: each store writes 64 bytes of `out`, `low` or `high`, and needs no alignment.
        #[allow(unsafe_code)]
        unsafe {
            _mm512_storeu_si512(out.as_mut_ptr().cast(), packed);
            _mm512_storeu_si512(low.as_mut_ptr().cast(), ends);
            let ends = _mm512_add_epi64(ends, _mm512_set1_epi64(32));
            _mm512_storeu_si512(high.as_mut_ptr().cast(), ends);
        }
        let count = words.count_ones() as usize;
        tokens.len += 4 * count;
        tokens.count += count;
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn implementations_agree(
            text in "[\u{4DFF}-\u{4E02}\u{9FFE}-\u{A001}中国。，、「」かカaé\u{20000}\u{3099}\
                \u{2FFF}-\u{3013}\u{FEFF}-\u{FF22}]{0,24}",
        ) {
            let mut group = [0; GROUP_BYTES];
            let len = text.len().min(GROUP_BYTES);
            group[..len].copy_from_slice(&text.as_bytes()[..len]);
            let pushed = |how: fn(&[u8; GROUP_BYTES], &mut TokenBuffer) -> usize| {
                let mut tokens = TokenBuffer::default();
                tokens.push_part(b"x");
                tokens.close(SEPARATOR);
                tokens.make_room(GROUP_BYTES, GROUP);
                let read = how(&group, &mut tokens);
                tokens.bytes.truncate(tokens.len);
                tokens.starts.truncate(tokens.count + 1);
                (read, tokens.bytes, tokens.starts)
            };
            // The expected words, by their definition.
            let whole = text.chars().take(GROUP).take_while(|&c| {
                c.len_utf8() == 3 && is_read(Class::from_char(c))
            });
            let chars: Vec<char> = whole.collect();
            let words = (chars.iter()).filter(|&&c| Class::from_char(c) == Class::SingleCharWord);
            let words: String = words.flat_map(|&c| [c, ' ']).collect();
            let starts = (0..=words.len() / 4).map(|at| 2 + 4 * at);
            let expected = (
                chars.len(),
                format!("x {words}").into_bytes(),
                std::iter::once(0).chain(starts).collect(),
            );
            prop_assert_eq!(&pushed(push_group), &expected);
            prop_assert_eq!(&pushed(push_group_portable), &expected);
        }
    }
}
