//! Word tokenizer for ASCII text, which processes blocks of 64 characters.
//!
//! ASCII needs no normalisation except lower case. For ASCII, the word-break rules of UAX 29 reduce
//! to this: letters, digits and `_` belong to words. A single `'` `.` `:` between two letters (WB6,
//! WB7) and a single `'` `.` `,` `;` between two digits (WB11, WB12) also belong to the word. With
//! one bit mask per character class, a few shifts find all characters of words in a block.
//!
//! The text may also contain non-ASCII letters ([`super::simple_text`]). Each UTF-8 byte of such a
//! letter counts as a letter.

use super::ascii_class::{BLOCK, Masks, classify};
use super::pack::{Words, pack};
use crate::feature_sink::FeatureSink;
use crate::shingle::Shingles;

/// Maximum number of 64-byte blocks that one call of [`add_words`] processes.
const BLOCKS: usize = 16;
/// Bytes of text between two calls of the cancellation check `check`.
const CHECK_BYTES: usize = 1 << 18;

/// Properties of the last character of a block, which the next block depends on.
#[derive(Clone, Copy, Default)]
struct Before {
    /// True if the character is a letter, or a byte of a non-ASCII letter.
    letter: bool,
    /// True if the character is a digit.
    digit: bool,
    /// True if the character belongs to a word, which the next block may continue.
    word: bool,
}

/// Adds the words of `text`, in lower case, to `shingles`, which passes features to `sink`. Calls
/// the cancellation check `check` every 256 kB. `text` must consist of ASCII and of lower-case
/// letters that behave like ASCII letters, and have word boundaries at its ends.
pub(super) fn tokenize(
    text: &[u8],
    shingles: &mut Shingles,
    sink: &mut impl FeatureSink,
    check: &mut dyn FnMut(),
) {
    let mut before = Before::default();
    let (blocks, rest) = text.as_chunks::<BLOCK>();
    // The last block is padded with at least one space, which ends the last word.
    let mut last = [b' '; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    let mut done = 0;
    for blocks in blocks.chunks(BLOCKS).chain([&[last][..]]) {
        done += blocks.len() * BLOCK;
        let after = text.get(done).copied().unwrap_or(b' ');
        match blocks.len() {
            1 => add_words::<1>(blocks, after, &mut before, shingles),
            _ => add_words::<BLOCKS>(blocks, after, &mut before, shingles),
        }
        shingles.emit_full_batch(sink);
        if done.is_multiple_of(CHECK_BYTES) {
            check();
        }
    }
}

/// Adds the words of `blocks`, up to `N` consecutive blocks, to `shingles`. `after` is the byte
/// after the last block. `before` describes the character before the first block. The function
/// changes it to describe the last character of the last block.
fn add_words<const N: usize>(
    blocks: &[[u8; BLOCK]],
    after: u8,
    before: &mut Before,
    shingles: &mut Shingles,
) {
    let mut masks = [Masks::default(); N];
    classify(blocks, &mut masks);
    let after = Masks {
        letter: (after.is_ascii_alphabetic() || !after.is_ascii()).into(),
        digit: after.is_ascii_digit().into(),
        ..Masks::default()
    };
    let mut all = [Words::default(); N];
    let mut underscores = 0;
    for (at, words) in all.iter_mut().take(blocks.len()).enumerate() {
        let masks_after = masks[..blocks.len()].get(at + 1).unwrap_or(&after);
        let masks = &masks[at];
        let inside = word_characters(masks, *before, masks_after);
        *words = Words {
            inside,
            ends: (inside << 1 | u64::from(before.word)) & !inside,
        };
        underscores |= masks.underscore;
        *before = Before {
            letter: masks.letter >> (BLOCK - 1) == 1,
            digit: masks.digit >> (BLOCK - 1) == 1,
            word: inside >> (BLOCK - 1) == 1,
        };
    }
    let tokens = shingles.tokens();
    let first = tokens.count;
    let underscore = underscores != 0
        || tokens.len > tokens.open_start() && tokens.bytes[tokens.open_start()] == b'_';
    pack(blocks, &all, tokens);
    if underscore {
        // A segment that consists of `_` alone is not a word.
        tokens.drop_underscores(first);
    }
}

/// Returns a mask of the characters of a block that belong to words. `masks` has the classes of the
/// characters of the block. `before` describes the character before the block. The lowest bits of
/// `after` have the classes of the character after the block.
#[inline(always)]
fn word_characters(masks: &Masks, before: Before, after: &Masks) -> u64 {
    let between = |mask: u64, before: bool, after: u64| {
        (mask << 1 | u64::from(before)) & (mask >> 1 | after << (BLOCK - 1))
    };
    masks.letter
        | masks.digit
        | masks.underscore
        | masks.mid_letter & between(masks.letter, before.letter, after.letter)
        | masks.mid_num & between(masks.digit, before.digit, after.digit)
}
