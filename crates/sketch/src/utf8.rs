//! Validation of UTF-8, 64 bytes at a time.
//!
//! Each byte is compared with the bounds that well-formed sequences have (The Unicode Standard,
//! table 3-7), and each bound gives a mask with a bit for each byte. Continuation bytes have to
//! stand exactly where the lead bytes before them ask for them; lead bytes that need more have it
//! asked of the byte that follows.

use std::str::Utf8Error;

/// Bytes that are checked at once.
const BLOCK: usize = 64;

/// Returns the bytes as text: [`std::str::from_utf8`], several times as fast for text that is
/// mostly not ASCII, where the processor has AVX2.
///
/// # Errors
///
/// As [`std::str::from_utf8`], if the bytes are not UTF-8.
#[inline]
pub fn from_utf8(bytes: &[u8]) -> Result<&str, Utf8Error> {
    if bytes.len() >= BLOCK && is_valid(bytes) {
        // SAFETY: the bytes are valid UTF-8, as has been checked.
        #[allow(unsafe_code)]
        return Ok(unsafe { std::str::from_utf8_unchecked(bytes) });
    }
    std::str::from_utf8(bytes)
}

/// Returns true for valid UTF-8; may return false for any text.
#[inline]
fn is_valid(bytes: &[u8]) -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        // SAFETY: the processor has the features, as checked.
        #[allow(unsafe_code)]
        unsafe {
            if has!("avx512f") && has!("avx512bw") {
                return x86::is_valid_avx512(bytes);
            }
            if has!("avx2") {
                return x86::is_valid_avx2(bytes);
            }
        }
    }
    let _ = bytes;
    false
}

/// What a block asks of the next one; in the lowest bits.
#[cfg(any(test, target_arch = "x86_64"))]
#[derive(Clone, Copy, Default)]
struct Carry {
    /// Positions of continuation bytes.
    continuations: u64,
    /// Position of a byte that must be `A0` or above, `90` or above, below `A0`, below `90`.
    from_a0: u64,
    from_90: u64,
    below_a0: u64,
    below_90: u64,
}

/// Returns true if the bytes are valid. `block_is_valid` checks a block after what is carried.
#[cfg(any(test, target_arch = "x86_64"))]
#[inline(always)]
fn all_blocks(
    bytes: &[u8],
    mut block_is_valid: impl FnMut(&[u8; BLOCK], &mut Carry) -> bool,
) -> bool {
    let mut carry = Carry::default();
    let (blocks, rest) = bytes.as_chunks();
    for block in blocks {
        if !block_is_valid(block, &mut carry) {
            return false;
        }
    }
    // At least one ASCII character, which cannot continue anything.
    let mut last = [0; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    block_is_valid(&last, &mut carry)
}

/// Returns true if a block is valid after what is carried. `from` gives the bytes of a value or
/// above, a bit for each.
#[cfg(any(test, target_arch = "x86_64"))]
#[inline(always)]
fn block_is_valid(from: impl Fn(u8) -> u64, carry: &mut Carry) -> bool {
    let not_ascii = from(0x80);
    if not_ascii == 0 {
        return std::mem::take(carry).continuations == 0;
    }
    let (from_90, from_a0, leads) = (from(0x90), from(0xA0), from(0xC0));
    let (threes, fours) = (from(0xE0), from(0xF0));
    let [e0, ed] = [0xE0, 0xED].map(|lead| from(lead) & !from(lead + 1));
    let [f0, f4] = [0xF0, 0xF4].map(|lead| from(lead) & !from(lead + 1));
    // Those lead to nothing but what a shorter sequence has, or beyond U+10FFFF.
    let invalid = leads & !from(0xC2) | from(0xF5);
    let next = |leads: u64, carried: u64| leads << 1 | carried;
    let continuations = leads << 1 | threes << 2 | fours << 3 | carry.continuations;
    let wrong = next(e0, carry.from_a0) & !from_a0
        | next(f0, carry.from_90) & !from_90
        | next(ed, carry.below_a0) & from_a0
        | next(f4, carry.below_90) & from_90;
    *carry = Carry {
        continuations: leads >> 63 | threes >> 62 | fours >> 61,
        from_a0: e0 >> 63,
        from_90: f0 >> 63,
        below_a0: ed >> 63,
        below_90: f4 >> 63,
    };
    invalid | wrong | continuations ^ not_ascii & !leads == 0
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256i, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_max_epu8, _mm256_movemask_epi8,
        _mm256_set1_epi8, _mm512_cmpge_epu8_mask, _mm512_loadu_si512, _mm512_set1_epi8,
    };

    use super::{BLOCK, all_blocks, block_is_valid};

    #[target_feature(enable = "avx512f,avx512bw")]
    pub fn is_valid_avx512(bytes: &[u8]) -> bool {
        all_blocks(bytes, |block, carry| {
            // SAFETY: 64 bytes are what is loaded, without a need for alignment.
            #[allow(unsafe_code)]
            let text = unsafe { _mm512_loadu_si512(block.as_ptr().cast()) };
            let from = |byte: u8| _mm512_cmpge_epu8_mask(text, _mm512_set1_epi8(byte as i8));
            block_is_valid(from, carry)
        })
    }

    #[target_feature(enable = "avx2")]
    pub fn is_valid_avx2(bytes: &[u8]) -> bool {
        all_blocks(bytes, |block, carry| {
            let (halves, _) = block.as_chunks::<{ BLOCK / 2 }>();
            // SAFETY: 32 bytes are what is loaded, without a need for alignment.
            #[allow(unsafe_code)]
            let load = |half: &[u8; 32]| unsafe { _mm256_loadu_si256(half.as_ptr().cast()) };
            let (low, high) = (load(&halves[0]), load(&halves[1]));
            let from = |byte: u8| {
                let bound = _mm256_set1_epi8(byte as i8);
                let mask = |text: __m256i| {
                    let above = _mm256_cmpeq_epi8(_mm256_max_epu8(text, bound), text);
                    u64::from(_mm256_movemask_epi8(above) as u32)
                };
                mask(low) | mask(high) << 32
            };
            block_is_valid(from, carry)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn portable(bytes: &[u8]) -> bool {
        all_blocks(bytes, |block, carry| {
            let from = |bound: u8| {
                (block.iter().enumerate())
                    .fold(0, |all, (at, &byte)| all | u64::from(byte >= bound) << at)
            };
            block_is_valid(from, carry)
        })
    }

    /// Checks all implementations against the standard library.
    fn assert_like_std(bytes: &[u8]) {
        let expected = std::str::from_utf8(bytes);
        assert_eq!(from_utf8(bytes), expected, "{bytes:02X?}");
        assert_eq!(portable(bytes), expected.is_ok(), "{bytes:02X?}");
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            // SAFETY: the processor has the features, as checked.
            #[allow(unsafe_code)]
            unsafe {
                if has!("avx512f") && has!("avx512bw") {
                    assert_eq!(
                        x86::is_valid_avx512(bytes),
                        expected.is_ok(),
                        "{bytes:02X?}"
                    );
                }
                if has!("avx2") {
                    assert_eq!(x86::is_valid_avx2(bytes), expected.is_ok(), "{bytes:02X?}");
                }
            }
        }
    }

    /// Bytes at and beside every bound.
    const BOUNDS: [u8; 24] = [
        0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC,
        0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF,
    ];

    /// All sequences of five of these, wherever the border of a block may cut them.
    #[test]
    fn every_short_sequence() {
        let mut bytes = [b' '; 2 * BLOCK + 3];
        for code in 0..BOUNDS.len().pow(5) {
            let at = BLOCK - 6 + code % 7;
            for (place, byte) in bytes[at..at + 5].iter_mut().enumerate() {
                *byte = BOUNDS[code / BOUNDS.len().pow(place as u32) % BOUNDS.len()];
            }
            let expected = std::str::from_utf8(&bytes).is_ok();
            assert_eq!(from_utf8(&bytes).is_ok(), expected, "{bytes:02X?}");
            if expected || code % 97 == 0 {
                assert_like_std(&bytes);
            }
            bytes[at..at + 5].fill(b' ');
        }
    }

    #[test]
    fn every_character_and_its_parts() {
        for c in '\u{80}'..=char::MAX {
            let mut bytes = [b'a'; BLOCK + 8];
            let at = BLOCK - 4 + c as usize % 5;
            let len = c.encode_utf8(&mut bytes[at..]).len();
            assert!(from_utf8(&bytes).is_ok(), "{c:?}");
            if c as usize % 1009 < 9 {
                assert_like_std(&bytes);
                // Cut off at the end of the bytes, and at its start.
                (1..len).for_each(|part| assert_like_std(&bytes[..at + part]));
                (1..len).for_each(|part| assert_like_std(&bytes[at + part..]));
            }
        }
    }

    proptest! {
        #[test]
        fn damaged_text(
            text in "[\\PCé中\u{10FFFF}\u{D7FF}\u{E000}\u{800}]{0,120}",
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut bytes = text.into_bytes();
            assert_like_std(&bytes);
            for (at, byte) in damage {
                if !bytes.is_empty() {
                    let at = at.index(bytes.len());
                    bytes[at] = byte;
                }
            }
            assert_like_std(&bytes);
            let cut = cut.index(bytes.len() + 1);
            assert_like_std(&bytes[..cut]);
            assert_like_std(&bytes[cut..]);
        }
    }
}
