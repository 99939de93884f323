//! Copies the words of blocks of ASCII text to a [`TokenBuffer`], in lower case and with one space
//! after each word.

use super::ascii_class::BLOCK;
use crate::token_buffer::TokenBuffer;

/// Masks of the words in a block of 64 bytes, with one bit for each byte. The first byte has the
/// lowest bit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Words {
    /// Bytes that belong to words.
    pub inside: u64,
    /// Bytes that directly follow a word. A space replaces each of them.
    pub ends: u64,
}

/// Maximum number of words that can end in a block.
const MAX_WORDS: usize = BLOCK / 2;
/// Number of token starts that are written at once. If fewer tokens start, the remaining elements
/// get meaningless values, which are not used.
const STARTS: usize = 8;

/// Adds the words of consecutive blocks, in lower case, to `tokens`. `words` has the masks of each
/// block. The first word may continue an open token, and the last word may stay open.
pub(super) fn pack(blocks: &[[u8; BLOCK]], words: &[Words], tokens: &mut TokenBuffer) {
    // The implementations write whole blocks and groups of [`STARTS`] starts, which takes more room
    // than the words need.
    tokens.make_room(
        (blocks.len() + 1) * BLOCK,
        blocks.len() * MAX_WORDS + STARTS,
    );
    #[cfg(target_arch = "x86_64")]
    {
        if crate::simd::has_avx512_vbmi2() {
            // SAFETY: the processor has the features, as checked above.
            #[allow(unsafe_code)]
            return unsafe { avx512::pack(blocks, words, tokens) };
        }
        if crate::simd::has_avx2() {
            // SAFETY: the processor has the features, as checked above.
            #[allow(unsafe_code)]
            return unsafe { pack_avx2(blocks, words, tokens) };
        }
    }
    pack_portable(blocks, words, tokens);
}

/// [`pack_portable`], compiled for AVX2 (vectors of 32 bytes).
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn pack_avx2(blocks: &[[u8; BLOCK]], words: &[Words], tokens: &mut TokenBuffer) {
    pack_portable(blocks, words, tokens);
}

#[inline(always)]
fn pack_portable(blocks: &[[u8; BLOCK]], words: &[Words], tokens: &mut TokenBuffer) {
    let mut padded = [0; 2 * BLOCK];
    for (block, words) in blocks.iter().zip(words) {
        padded[..BLOCK].copy_from_slice(&block.map(|byte| byte.to_ascii_lowercase()));
        let start = tokens.len;
        // Most bytes of a block are kept, so copying each run of kept bytes takes few steps.
        let (mut kept, mut ends) = (words.inside | words.ends, 0);
        while kept != 0 {
            let from = kept.trailing_zeros() as usize;
            let len = (!(kept >> from)).trailing_zeros() as usize;
            let part = u64::MAX >> (BLOCK - len);
            let out = tokens.len - start;
            tokens.bytes[tokens.len..][..BLOCK].copy_from_slice(&padded[from..from + BLOCK]);
            ends |= (words.ends >> from & part) << out;
            tokens.len += len;
            kept &= !(part << from);
        }
        add_ends(ends, start, tokens);
    }
}

/// Ends a token at each byte whose bit in `ends` is set: writes a space there, and appends the
/// start of the next token. The lowest bit belongs to the byte at offset `start` of `tokens`.
#[inline(always)]
fn add_ends(mut ends: u64, start: usize, tokens: &mut TokenBuffer) {
    let count = tokens.count + ends.count_ones() as usize;
    let mut at = tokens.count + 1;
    while ends != 0 {
        for out in &mut tokens.starts[at..at + STARTS] {
            // When no end is left, `trailing_zeros` returns 64, which is the offset of an unused
            // byte.
            let end = start + ends.trailing_zeros() as usize;
            tokens.bytes[end] = b' ';
            *out = end + 1;
            ends &= ends.wrapping_sub(1);
        }
        at += STARTS;
    }
    tokens.count = count;
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::{
        __m512i, _mm512_add_epi64, _mm512_alignr_epi64, _mm512_castsi512_si128,
        _mm512_cmplt_epu8_mask, _mm512_cvtepu8_epi64, _mm512_loadu_si512, _mm512_mask_add_epi8,
        _mm512_mask_mov_epi8, _mm512_maskz_compress_epi8, _mm512_set1_epi8, _mm512_set1_epi64,
        _mm512_setzero_si512, _mm512_storeu_si512, _mm512_sub_epi8, _pext_u64,
    };

    use super::{BLOCK, STARTS, Words};
    use crate::token_buffer::TokenBuffer;

    /// Numbers from 1 to 64: for each byte of a block, the offset after it.
    static NUMBERS: [u8; BLOCK] = {
        let mut numbers = [0; BLOCK];
        let mut at = 0;
        while at < BLOCK {
            numbers[at] = at as u8 + 1;
            at += 1;
        }
        numbers
    };

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load(bytes: &[u8; BLOCK]) -> __m512i {
        // SAFETY: the load reads the 64 bytes of `bytes`, and needs no alignment.
        #[allow(unsafe_code)]
        unsafe {
            _mm512_loadu_si512(bytes.as_ptr().cast())
        }
    }

    /// AVX-512 version of [`super::pack_portable`], which packs a whole block at once.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,bmi1,bmi2,popcnt")]
    pub fn pack(blocks: &[[u8; BLOCK]], words: &[Words], tokens: &mut TokenBuffer) {
        let all = |byte: u8| _mm512_set1_epi8(byte as i8);
        for (block, words) in blocks.iter().zip(words) {
            let kept = words.inside | words.ends;
            let text = load(block);
            let upper = _mm512_cmplt_epu8_mask(_mm512_sub_epi8(text, all(b'A')), all(26));
            let lower = _mm512_mask_add_epi8(text, upper, text, all(0x20));
            let spaced = _mm512_mask_mov_epi8(lower, words.ends, all(b' '));
            let out: &mut [u8; BLOCK] =
                (tokens.bytes[tokens.len..].first_chunk_mut()).expect("room for a block");
            // SAFETY: the store writes the 64 bytes of `out`, and needs no alignment.
            #[allow(unsafe_code)]
            unsafe {
                let packed = _mm512_maskz_compress_epi8(kept, spaced);
                _mm512_storeu_si512(out.as_mut_ptr().cast(), packed);
            }
            let ends = _pext_u64(words.ends, kept);
            add_ends(ends, tokens);
            tokens.len += kept.count_ones() as usize;
        }
    }

    /// Appends the start of the token after each byte whose bit in `ends` is set. The lowest bit
    /// belongs to the byte at the current length of `tokens`. The caller writes the spaces.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
    fn add_ends(ends: u64, tokens: &mut TokenBuffer) {
        let first = _mm512_set1_epi64(tokens.len as i64);
        let mut after = _mm512_maskz_compress_epi8(ends, load(&NUMBERS));
        let count = ends.count_ones() as usize;
        let free = &mut tokens.starts[tokens.count + 1..];
        for at in (0..count).step_by(STARTS) {
            let out: &mut [usize; STARTS] = free[at..].first_chunk_mut().expect("room for starts");
            let starts = _mm512_cvtepu8_epi64(_mm512_castsi512_si128(after));
            // SAFETY: the store writes the 64 bytes of `out`, and needs no alignment.
            #[allow(unsafe_code)]
            unsafe {
                _mm512_storeu_si512(out.as_mut_ptr().cast(), _mm512_add_epi64(first, starts));
            }
            after = _mm512_alignr_epi64::<1>(_mm512_setzero_si512(), after);
        }
        tokens.count += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Implementation of [`pack`] under test.
    type Implementation = fn(&[[u8; BLOCK]], &[Words], &mut TokenBuffer);

    fn packed(how: Implementation, text: &[u8], inside: &[u64], open: bool) -> Vec<Vec<u8>> {
        let mut tokens = TokenBuffer::default();
        if open {
            tokens.push_part(b"open");
        }
        let (blocks, _) = text.as_chunks::<BLOCK>();
        let mut before = open;
        let words: Vec<Words> = (inside.iter())
            .map(|&inside| {
                let ends = (inside << 1 | u64::from(before)) & !inside;
                before = inside >> (BLOCK - 1) == 1;
                Words { inside, ends }
            })
            .collect();
        tokens.make_room(
            (blocks.len() + 1) * BLOCK,
            blocks.len() * MAX_WORDS + STARTS,
        );
        how(blocks, &words, &mut tokens);
        let mut found: Vec<Vec<u8>> = (0..tokens.count)
            .map(|at| tokens.bytes[tokens.starts[at]..tokens.starts[at + 1]].to_vec())
            .collect();
        found.push(tokens.bytes[tokens.open_start()..tokens.len].to_vec());
        found
    }

    /// Reference implementation of [`pack`], one byte at a time. Returns the tokens, with the open
    /// token last.
    fn defined(text: &[u8], inside: &[u64], open: bool) -> Vec<Vec<u8>> {
        let mut found = vec![if open { b"open".to_vec() } else { Vec::new() }];
        for (at, byte) in text.iter().enumerate() {
            let last = found.last_mut().unwrap();
            if inside[at / BLOCK] >> (at % BLOCK) & 1 == 1 {
                last.push(byte.to_ascii_lowercase());
            } else if !last.is_empty() {
                last.push(b' ');
                found.push(Vec::new());
            }
        }
        found
    }

    proptest! {
        #[test]
        fn implementations_agree(
            text in prop::collection::vec(any::<u8>(), 0..5 * BLOCK),
            (a, b) in (any::<[u64; 5]>(), any::<[u64; 5]>()),
            how in 0_usize..4,
            open in any::<bool>(),
        ) {
            let blocks = text.len() / BLOCK;
            let text = &text[..blocks * BLOCK];
            // Words with few gaps, with many gaps, without gaps, or no words.
            let inside: Vec<u64> = (a.iter().zip(b).take(blocks))
                .map(|(a, b)| [a | b, a & b, u64::MAX, 0][how])
                .collect();
            let expected = defined(text, &inside, open);
            let got = |how: Implementation| packed(how, text, &inside, open);
            prop_assert_eq!(&got(pack), &expected);
            prop_assert_eq!(&got(pack_portable), &expected);
            #[cfg(target_arch = "x86_64")]
            if crate::simd::has_avx2() {
                // SAFETY: the processor has the features, as checked above.
                #[allow(unsafe_code)]
                let avx2: Implementation = |b, w, t| unsafe { pack_avx2(b, w, t) };
                prop_assert_eq!(&got(avx2), &expected);
            }
        }
    }
}
