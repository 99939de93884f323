//! Words of ASCII text, 64 characters at a time.
//!
//! ASCII needs no normalisation, and the word-break rules of UAX 29 come down to this: letters,
//! digits and `_` belong to words, and a single character between two of them does when it is
//! `'` `.` `:` between letters (WB6, WB7) or `'` `.` `,` `;` between digits (WB11, WB12). With a bit
//! per character for each kind that is a handful of shifts.

use crate::shingle::{HashSink, Shingles};

const LETTER: u8 = 1;
const DIGIT: u8 = 2;
const UNDERSCORE: u8 = 4;
/// Joins letters.
const MID_LETTER: u8 = 8;
/// Joins digits.
const MID_NUM: u8 = 16;

#[inline(always)]
const fn kind(byte: u8) -> u8 {
    let letter = ((byte | 0x20).wrapping_sub(b'a') < 26) as u8;
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

const BLOCK: usize = 64;

/// A bit per character of a block for each kind.
struct Masks {
    letter: u64,
    digit: u64,
    underscore: u64,
    mid_letter: u64,
    mid_num: u64,
}

impl Masks {
    #[inline(always)]
    fn of(block: &[u8; BLOCK]) -> Self {
        let mut kinds = [0; BLOCK];
        for (kind_of, &byte) in kinds.iter_mut().zip(block) {
            *kind_of = kind(byte);
        }
        let plane = |which: u8| {
            kinds
                .chunks_exact(8)
                .enumerate()
                .fold(0, |mask, (at, eight)| {
                    let eight = u64::from_le_bytes([
                        eight[0], eight[1], eight[2], eight[3], eight[4], eight[5], eight[6],
                        eight[7],
                    ]);
                    let flags = (eight >> which.trailing_zeros()) & 0x0101_0101_0101_0101;
                    // Moves the flags of eight bytes into the highest byte, the first one lowest.
                    mask | (flags.wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * at)
                })
        };
        Self {
            letter: plane(LETTER),
            digit: plane(DIGIT),
            underscore: plane(UNDERSCORE),
            mid_letter: plane(MID_LETTER),
            mid_num: plane(MID_NUM),
        }
    }
}

/// Bytes of text between two calls of `check`.
const CHECK_BYTES: usize = 1 << 18;

/// Feeds the words of ASCII `text`, in lower case, to `shingles`. At both ends of `text` there must
/// be a word boundary.
pub(super) fn tokenize(
    text: &[u8],
    shingles: &mut Shingles,
    sink: &mut impl HashSink,
    check: &mut dyn FnMut(),
) {
    let mut in_word = false;
    let mut last = 0;
    for (at, chunk) in text.chunks(BLOCK).enumerate() {
        let mut block = [b' '; BLOCK];
        match <&[u8; BLOCK]>::try_from(chunk) {
            Ok(whole) => block = *whole,
            Err(_) => block[..chunk.len()].copy_from_slice(chunk),
        }
        let next = text.get((at + 1) * BLOCK).map_or(0, |&byte| kind(byte));
        let word = words(&Masks::of(&block), last, next);
        let mut edges = word ^ (word << 1 | u64::from(in_word));
        last = kind(block[BLOCK - 1]);
        block.make_ascii_lowercase();
        let mut start = 0;
        while edges != 0 {
            let edge = edges.trailing_zeros() as usize;
            edges &= edges - 1;
            if in_word {
                shingles.push_part(&block[start..edge]);
                end_word(shingles, sink);
            }
            in_word = !in_word;
            start = edge;
        }
        if in_word {
            shingles.push_part(&block[start..]);
        }
        if (at + 1) % (CHECK_BYTES / BLOCK) == 0 {
            check();
        }
    }
    if in_word {
        end_word(shingles, sink);
    }
}

/// The characters that belong to words; `last` and `next` are the kinds of the characters around.
#[inline(always)]
fn words(m: &Masks, last: u8, next: u8) -> u64 {
    let between = |mask: u64, kind: u8| {
        (mask << 1 | u64::from(last & kind != 0)) & (mask >> 1 | u64::from(next & kind != 0) << 63)
    };
    let join = m.mid_letter & between(m.letter, LETTER) | m.mid_num & between(m.digit, DIGIT);
    m.letter | m.digit | m.underscore | join
}

#[inline]
fn end_word(shingles: &mut Shingles, sink: &mut impl HashSink) {
    let word = shingles.open_token();
    // A segment without letter or digit is not a word; of the above, only `_` alone can be one.
    if word[0] == b'_' && !word.iter().any(u8::is_ascii_alphanumeric) {
        shingles.abandon_token();
    } else {
        shingles.end_token(sink);
    }
}
