//! Words of ASCII text, 64 characters at a time.
//!
//! ASCII needs no normalisation. For ASCII, the word-break rules of UAX 29 reduce to this:
//! letters, digits and `_` belong to words. A single `'` `.` `:` between letters (WB6, WB7) or `'`
//! `.` `,` `;` between digits (WB11, WB12) also does. With a bit per character for each class,
//! this takes a few shifts.
//!
//! Letters may have several bytes. Each of these bytes counts as a letter.

use super::ascii_class::{BLOCK, Masks, classify};
use super::pack::{Words, pack};
use crate::feature_sink::FeatureSink;
use crate::shingle::Shingles;

/// Number of blocks classified at once.
const BLOCKS: usize = 16;
/// Bytes of text between two calls of `check`.
const CHECK_BYTES: usize = 1 << 18;

/// State at the end of the previous block.
#[derive(Clone, Copy, Default)]
struct Before {
    letter: bool,
    digit: bool,
    /// True if a word is open.
    word: bool,
}

/// Adds the words of `text`, in lower case, to `shingles`. The text must consist of ASCII and of
/// lower-case letters that behave like ASCII letters, with word boundaries at its ends.
pub(super) fn tokenize(
    text: &[u8],
    shingles: &mut Shingles,
    sink: &mut impl FeatureSink,
    check: &mut dyn FnMut(),
) {
    let mut before = Before::default();
    let (blocks, rest) = text.as_chunks::<BLOCK>();
    // Has at least one space, which ends the last word.
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

/// Adds the words of up to `N` blocks, which are followed by the byte `after`.
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
    let underscore =
        underscores != 0 || tokens.len > tokens.open() && tokens.bytes[tokens.open()] == b'_';
    pack(blocks, &all, tokens);
    if underscore {
        // A segment without a letter or digit is not a word.
        tokens.drop_underscores(first);
    }
}

/// Returns a bit for each character that belongs to a word.
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
