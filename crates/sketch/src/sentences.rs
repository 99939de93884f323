//! Hash of the longest sentences of a text. With this hash, an ordinary index for equality finds
//! copies.
//!
//! Copies of a text that differ only in a title, a date, links or a short paragraph share their
//! longest sentences. A hash of these sentences therefore finds such copies with an ordinary index
//! for equality. A change of one word in these sentences changes the hash.
//!
//! The text in NFKC is divided into sentences by [UAX 29], with the terminators of all scripts:
//! `。`, `！` and `？` end a sentence, as does a full stop before a capital. In addition, a line end
//! ends a sentence, and so do 16 characters in a row that are neither letters nor digits. Sentences
//! are compared by their words ([`crate::tokens`]), so punctuation, spaces, case and width do not
//! count. The length of a sentence is the number of characters in its words.
//!
//! [UAX 29]: https://www.unicode.org/reports/tr29/#Sentence_Boundaries

use std::cmp::Reverse;
use std::collections::BTreeSet;

use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;

use crate::hash::feature_hash;
use crate::memory::{Grow, GrowString};
use crate::normalize::class::Class;
use crate::normalize::{ensure_reordering, normalized, piece_len};

/// Maximum number of sentences that a hash covers. The SQL function rejects a greater number.
pub const MAX_SENTENCES: usize = 1000;

/// Length of a gap that ends a sentence, in characters. A gap is a row of characters that are
/// neither letters nor digits. The limit bounds the time, because UAX 29 searches for the next
/// letter at each possible sentence end.
pub(crate) const MAX_GAP: usize = 16;

/// Number of bytes that are searched for sentence ends at once. A longer sentence is cut into
/// sentences of about this length.
pub(crate) const WINDOW: usize = 1 << 16;

/// Sentence: the number of characters in its words, and its words separated by spaces. Sentences
/// are ordered by length. Of two sentences of equal length, the one whose words are first in byte
/// order is greater.
type Sentence = (usize, Reverse<String>);

/// Returns a hash of the `number` longest distinct sentences of a text, wherever they are in the
/// text, or of all sentences if there are fewer. Returns `None` if the text has no word.
///
/// The hash is XXH3 (64 bits) of the sentences, the longest first, with their words separated by
/// spaces and a line break after each sentence. Calls `check` every few 10 kB. Time is linear in
/// the length of the text, and memory in the length of the hashed sentences.
///
/// ```
/// use neardup_sketch::longest_sentences_hash;
///
/// let hash = |text| longest_sentences_hash(text, 1, &mut || ());
/// assert_eq!(hash("A title. The sentence that counts!"), hash("The sentence THAT counts. The
/// end."));
/// ```
pub fn longest_sentences_hash(text: &str, number: usize, check: &mut dyn FnMut()) -> Option<u64> {
    let mut longest: BTreeSet<Sentence> = BTreeSet::new();
    each_sentence(text, check, |sentence| {
        if longest.len() == number
            && (longest.first()).is_some_and(|(shortest, _)| most_characters(sentence) < *shortest)
        {
            return;
        }
        let words = words(sentence);
        if words.is_empty() {
            return;
        }
        longest.insert((words.chars().filter(|&c| c != ' ').count(), Reverse(words)));
        if longest.len() > number {
            longest.pop_first();
        }
    });
    if longest.is_empty() {
        return None;
    }
    let mut all = String::new();
    for (_, Reverse(sentence)) in longest.iter().rev() {
        all.grow_str(sentence);
        all.grow_char('\n');
    }
    Some(feature_hash(all.as_bytes()))
}

/// Calls `each` with each sentence of `text`, in NFKC.
fn each_sentence(text: &str, check: &mut dyn FnMut(), mut each: impl FnMut(&str)) {
    let mut rest = text;
    let mut normal = String::new();
    let mut buffer = SentenceBuffer::default();
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(piece_len(rest));
        rest = after;
        normal.clear();
        ensure_reordering(piece);
        normal.grow_chars(piece.nfkc());
        for c in normal.chars() {
            buffer.push(c, &mut each);
        }
        check();
    }
    buffer.end(&mut each);
}

/// Text in NFKC whose sentences were not passed on to the caller's `each` yet.
#[derive(Default)]
struct SentenceBuffer {
    text: String,
    /// Number of characters since the last letter or digit.
    gap: usize,
}

impl SentenceBuffer {
    /// Adds a character. After [`MAX_GAP`] characters without a letter or digit, passes all
    /// sentences of the buffer to `each`, and drops characters until the next letter or digit. If
    /// the buffer has [`WINDOW`] bytes, passes all sentences but the last.
    fn push(&mut self, c: char, each: &mut impl FnMut(&str)) {
        if is_letter_or_digit(c) {
            self.gap = 0;
        } else {
            self.gap += 1;
            if self.gap >= MAX_GAP {
                if self.gap == MAX_GAP {
                    self.end(each);
                }
                return;
            }
        }
        self.text.grow_char(c);
        if self.text.len() >= WINDOW {
            self.end_but_last(each);
        }
    }

    /// Passes all sentences of the buffer to `each`, and empties the buffer.
    fn end(&mut self, each: &mut impl FnMut(&str)) {
        self.text.split_sentence_bounds().for_each(&mut *each);
        self.text.clear();
    }

    /// Passes all sentences of the buffer to `each`, except the last one, which may continue. If
    /// the buffer has only one sentence, passes this sentence too, so that the buffer does not
    /// grow.
    fn end_but_last(&mut self, each: &mut impl FnMut(&str)) {
        let mut last = None;
        for sentence in self.text.split_sentence_bounds() {
            if let Some(sentence) = last.replace(sentence) {
                each(sentence);
            }
        }
        let kept = last.map_or(0, str::len);
        if kept == self.text.len() {
            self.end(each);
        } else {
            self.text.drain(..self.text.len() - kept);
        }
    }
}

/// Returns the words of a sentence in normal form, separated by spaces.
fn words(sentence: &str) -> String {
    let normal = normalized(sentence);
    let mut words = String::new();
    words.ensure_room(normal.len());
    for word in normal.unicode_words() {
        if word.starts_with([' ', '\u{1680}']) {
            continue;
        }
        if !words.is_empty() {
            words.grow_char(' ');
        }
        words.grow_str(word);
    }
    words
}

/// Returns an upper bound of the number of characters in the words of a sentence, without computing
/// the sentence's normal form.
fn most_characters(sentence: &str) -> usize {
    sentence.chars().map(most_folded).sum()
}

/// Returns an upper bound of the number of characters that a character of a text in NFKC becomes in
/// the words of the text's normal form.
fn most_folded(c: char) -> usize {
    match Class::from_char(c) {
        Class::AsciiBreak | Class::Separator => 0,
        Class::Other => 3,
        // The only letter of these classes whose case folding is longer: "ss".
        _ if c == 'ß' => 2,
        _ => 1,
    }
}

/// Returns true if UAX 29 counts a segment with this character as a word: if the character is
/// Alphabetic, or of general category N (numbers).
pub(crate) fn is_letter_or_digit(c: char) -> bool {
    match Class::from_char(c) {
        Class::AsciiWord => c.is_ascii_alphanumeric(),
        Class::Letter | Class::OtherLetter | Class::SingleCharWord => true,
        Class::AsciiBreak | Class::Separator | Class::Mid => false,
        Class::Other => c.encode_utf8(&mut [0; 4]).unicode_words().next().is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sentences(text: &str) -> Vec<String> {
        let mut sentences = Vec::new();
        each_sentence(text, &mut || (), |sentence| sentences.push(words(sentence)));
        sentences.retain(|words| !words.is_empty());
        sentences
    }

    fn hash(text: &str, number: usize) -> Option<u64> {
        longest_sentences_hash(text, number, &mut || ())
    }

    #[test]
    fn sentences_of_several_scripts() {
        for (text, expected) in [
            ("", vec![]),
            ("... !? \n", vec![]),
            (
                "One two. Three! Four? \"Five.\" Six",
                vec!["one two", "three", "four", "five", "six"],
            ),
            (
                "It is 3.14, e.g. pi. Mr. Smith knows.",
                vec!["it is 3.14 e.g pi", "mr", "smith knows"],
            ),
            (
                "First line\nsecond line\r\nthird",
                vec!["first line", "second line", "third"],
            ),
            (
                "你好，世界。再见！真的？是的……好",
                vec!["你 好 世 界", "再 见", "真 的", "是 的", "好"],
            ),
            (
                "「行こう。」彼は言った。ﾊﾟﾝ",
                vec!["行 こ う", "彼 は 言 っ た", "パン"],
            ),
            (
                "यह एक वाक्य है। यह दूसरा है।",
                vec!["यह एक वाक्य है", "यह दूसरा है"],
            ),
            ("هل هذا سؤال؟ نعم.", vec!["هل هذا سؤال", "نعم"]),
            (
                "Title ---------------- Text of it.",
                vec!["title", "text of it"],
            ),
            ("a ------------- b", vec!["a b"]),
        ] {
            let expected: Vec<String> = expected.into_iter().map(normalized).collect();
            assert_eq!(sentences(text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_longest_count() {
        let of = |lines: &[&str]| Some(feature_hash((lines.join("\n") + "\n").as_bytes()));
        let text = "A short one. This is the longest sentence. Middling, this one? One of eight. \
                    Two of four.";
        assert_eq!(hash(text, 1), of(&["this is the longest sentence"]));
        assert_eq!(
            hash(text, 3),
            of(&[
                "this is the longest sentence",
                "middling this one",
                "one of eight"
            ])
        );
        // Of sentences of equal length, the first ones in byte order count.
        assert_eq!(hash("Bb cc. Bb aa. Bb bb.", 2), of(&["bb aa", "bb bb"]));
        // A repeated sentence counts once.
        assert_eq!(hash("Bb cc. Bb CC! Aa", 2), of(&["bb cc", "aa"]));
        assert_eq!(hash("...", 3), None);
        // Text around the sentences, and the way they are written, does not matter.
        let copy = "News!\n TWO OF FOUR.\nThis is the longest sentence! MIDDLING this one ? \
                    (One of eight.) End";
        assert_eq!(hash(copy, 3), hash(text, 3));
        assert_ne!(hash(&copy.replace("longest", "largest"), 3), hash(text, 3));
    }

    /// Case folding makes some sentences longer. They are not rejected by their original length.
    #[test]
    fn sentences_that_folding_makes_longer_count() {
        assert_eq!(hash("אı\rß", 1), hash("ß", 1));
        assert_eq!(hash("Abcde\nßßß", 1), hash("ssssss", 1));
        for c in '\0'..=char::MAX {
            let nfkc: String = c.nfkc().collect();
            for c in nfkc.chars() {
                let folded = normalized(c.encode_utf8(&mut [0; 4]));
                let least = match words(&folded).is_empty() {
                    true => 0,
                    false => folded.chars().count(),
                };
                assert!(most_folded(c) >= least, "{c:?} becomes {folded:?}");
            }
        }
    }

    /// If these hashes changed, stored keys would be invalid.
    #[test]
    fn keys_never_change() {
        for (text, expected) in [
            (
                "The quick brown fox jumps over the lazy dog. It sleeps! Why? Straße 12.",
                0x497c_d04e_ebba_8ba9,
            ),
            (
                "图书馆昨天宣布，新的阅览室将开放。读者很多！停车位不足？是的。",
                0x9ad4_f25d_9a1b_d04e,
            ),
            ("これは文です。もう一つ。はい！", 0x1d17_362e_2965_b5fc),
            (
                "Первое предложение. Второе, подлиннее! Третье?",
                0xffe6_d06e_3c87_a7f8,
            ),
            ("이것은 문장입니다. 둘째 문장. 셋", 0x6ee6_e492_9880_d638),
            (
                "one line\nanother line without an end\n\n1. item",
                0x8043_539a_5675_9411,
            ),
        ] {
            assert_eq!(
                hash(text, 3),
                Some(expected),
                "{text:?}: {:#x}",
                hash(text, 3).unwrap()
            );
        }
    }

    proptest! {
        #[test]
        fn is_what_it_says(text in crate::test_texts::any_text(), number in 1_usize..6) {
            let mut all = sentences(&text);
            all.sort_by_key(|s| (Reverse(s.chars().filter(|&c| c != ' ').count()), s.clone()));
            all.dedup();
            all.truncate(number);
            let joined: String = all.iter().map(|s| s.clone() + "\n").collect();
            let expected = (!all.is_empty()).then(|| feature_hash(joined.as_bytes()));
            prop_assert_eq!(hash(&text, number), expected);
        }

        /// Texts that are too short for a gap of [`MAX_GAP`] characters have the sentences of UAX
        /// 29.
        #[test]
        fn short_texts_are_cut_by_the_standard(text in "[a-cA-C1。！.?!,)» é中\n]{0,15}") {
            let normal: String = text.nfkc().collect();
            let mut expected = Vec::new();
            expected.extend(normal.split_sentence_bounds().map(words));
            expected.retain(|words: &String| !words.is_empty());
            prop_assert_eq!(sentences(&text), expected);
        }
    }

    /// Texts in which UAX 29 searches far ahead for the next letter are read in windows of about
    /// [`WINDOW`] bytes: `check` is called meanwhile, and no sentence is much longer than a window.
    /// Without windows, the time would be quadratic.
    #[test]
    fn hostile_texts_are_read_in_windows() {
        for unit in [
            "(",
            ".(",
            ". ",
            "1",
            ". (1",
            "\u{301}",
            "a.\u{AD}",
            "a",
            "é ",
            "中",
            "。",
            "ໆ",
            "a. b",
            "A. ",
            "\n",
            "...............1",
        ] {
            let text = unit.repeat(1_000_000 / unit.len()) + "x";
            let mut checks = 0;
            let mut longest = 0;
            each_sentence(&text, &mut || checks += 1, |sentence| {
                longest = longest.max(sentence.len())
            });
            assert!(
                checks >= 1 && longest <= 6 * WINDOW,
                "{unit:?}: {checks}, {longest}"
            );
        }
    }
}
