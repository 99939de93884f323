//! Finds stretches of Chinese text that jieba can split without normalisation. A stretch consists
//! of Han characters and separators (white space and punctuation). It starts and ends at cut
//! positions, where the text can be cut without changing a word.
//!
//! Most Chinese texts are Han and full-width punctuation. Normalisation does not change Han. It may
//! change punctuation, but punctuation only separates words. So a stretch of Han and punctuation
//! needs no normal form and no search for cut positions.

use crate::normalize::leading_han;

/// Number of bytes after which a stretch ends at the next cut position.
const MAX_STRETCH_BYTES: usize = 1 << 11;
/// Minimum bytes of a stretch. A shorter stretch is normalised like other text, unless it is the
/// whole text.
const MIN_STRETCH: usize = 1 << 6;
/// Maximum bytes of a run of Han characters in a stretch. A stretch ends before a longer run.
const MAX_RUN: usize = 1 << 11;

/// Returns true for separators: white space, and punctuation that jieba cannot join into words,
/// even after normalisation. A text can always be cut between a separator and a Han character.
pub(super) const fn separates(c: char) -> bool {
    matches!(
        c,
        ' ' | '\n'
            | '\r'
            | '\t'
            | '('
            | ')'
            | '!'
            | '?'
            | '/'
            | '"'
            | '\u{3000}'
            | '、'
            | '。'
            | '，'
            | '：'
            | '；'
            | '！'
            | '？'
            | '（'
            | '）'
            | '／'
            | '“'
            | '”'
            | '‘'
            | '’'
            | '—'
            | '《'
            | '》'
            | '「'
            | '」'
            | '『'
            | '』'
            | '【'
            | '】'
            | '〈'
            | '〉'
            | '〔'
            | '〕'
    )
}

/// Returns the length in bytes of the stretch of Han and separators at the start of `text`. Returns
/// `None` if the stretch is shorter than [`MIN_STRETCH`] and not the whole text. `text` must start
/// at a cut position, and the stretch ends at a cut position.
///
/// A text can be cut between a separator and a Han character, and between two separators. A cut
/// between two separators changes no word:
///
/// - A segment of UAX 29 that contains both separators is white space or a line end, which is not a
///   word.
/// - Some separators join letters (WB6, WB7, WB7b) or digits (WB11, WB12), but not next to another
///   separator, and not at the start of a text.
/// - Marks after the second separator belong to it, with and without the cut.
pub(super) fn stretch_len(text: &str) -> Option<usize> {
    let len = plain_len(text);
    (len >= text.len().min(MIN_STRETCH)).then_some(len)
}

/// Returns the length in bytes of the stretch of Han and separators at the start of `text`, up to a
/// cut position. Returns 0 if `text` does not start with a stretch.
fn plain_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut end, mut separated) = (0, 0, true);
    while at < text.len() {
        let run = leading_han(&bytes[at..bytes.len().min(at + MAX_RUN)]);
        if run > 0 {
            if separated {
                // The text can be cut between the separator and the Han character.
                end = at;
                if end >= MAX_STRETCH_BYTES {
                    return end;
                }
            }
            if run + 3 > MAX_RUN {
                return end;
            }
            at += run;
            separated = false;
            continue;
        }
        match text[at..].chars().next() {
            Some(c) if separates(c) => {
                if separated {
                    end = at;
                    if end >= MAX_STRETCH_BYTES {
                        return end;
                    }
                }
                at += c.len_utf8();
                separated = true;
            }
            _ => return end,
        }
    }
    text.len()
}

/// Returns the length in bytes of the text before the next stretch, and the length in bytes of this
/// stretch. Searches only the first kilobytes of `text`. If there is no stretch, the second result
/// is `None`, and the first result is the length of the searched text. The caller can search again
/// after it.
pub(super) fn other_len(text: &str) -> (usize, Option<usize>) {
    let mut end = 0;
    loop {
        end += next_plain(&text[end..]);
        let stretch = stretch_len(&text[end..]);
        if stretch.is_some() || end >= 4 * MAX_STRETCH_BYTES {
            return (end, stretch);
        }
    }
}

/// Returns the offset in bytes of the next position where a stretch may start: a Han character
/// after a separator, or the end of `text`. The result is not the start of `text`, unless `text` is
/// empty.
fn next_plain(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut separated) = (0, false);
    while let Some(&byte) = bytes.get(at) {
        if byte.is_ascii() {
            separated = separates(char::from(byte));
            at += 1;
            continue;
        }
        if separated && leading_han(&bytes[at..bytes.len().min(at + 3)]) > 0 {
            return at;
        }
        match byte {
            // Characters of three bytes, such as Han and Hangul, that are not separators.
            0xE4..=0xED => {
                separated = false;
                at += 3;
            }
            _ => {
                let c = text[at..].chars().next().expect("a character");
                separated = separates(c);
                at += c.len_utf8();
            }
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normalize::class::Class;
    use crate::normalize::normalized;
    use crate::tokens::jieba::{Dictionary, Scripts, TokenizeMode, is_jieba, split_part};

    #[test]
    fn separators_never_join_han() {
        for c in ('\0'..=char::MAX).filter(|&c| separates(c)) {
            let normal = normalized(&c.to_string());
            assert!(!normal.chars().any(is_jieba), "{c:?}");
            for c in normal.chars() {
                assert!(
                    Class::from_char(c).cut_before(Class::SingleCharWord),
                    "{c:?}"
                );
                assert!(
                    Class::SingleCharWord.cut_before(Class::from_char(c)),
                    "{c:?}"
                );
                assert!(!c.is_alphanumeric(), "{c:?}");
            }
        }
    }

    /// Cutting a text between two separators does not change its words, for any text after the
    /// second separator.
    #[test]
    fn separators_are_cut_apart() {
        let dictionary = Dictionary::current();
        let words = |text: &str| {
            let mut words = Vec::new();
            let each = &mut |word: &str| words.push(word.to_owned());
            let scripts = Scripts {
                pure: false,
                ..Scripts::CHINESE
            };
            split_part(
                &dictionary,
                TokenizeMode::Default,
                &normalized(text),
                scripts,
                each,
            );
            words
        };
        let all: Vec<char> = ('\0'..=char::MAX).filter(|&c| separates(c)).collect();
        let tails = [
            "a",
            "1",
            "א",
            "中b",
            "_a",
            "\u{301}a",
            "\u{345}",
            "\u{200D}中",
            "カ",
        ];
        for (first, second) in all.iter().flat_map(|a| all.iter().map(move |b| (a, b))) {
            for tail in tails {
                let (front, rest) = (format!("中国{first}"), format!("{second}{tail}"));
                let apart = [words(&front), words(&rest)].concat();
                assert_eq!(
                    words(&(front + &rest)),
                    apart,
                    "{first:?}{second:?}{tail:?}"
                );
            }
        }
    }

    #[test]
    fn stretches_end_where_the_text_is_cut() {
        let long = "中".repeat(MAX_RUN);
        for (text, len) in [
            ("", 0),
            ("中国", 6),
            ("中国，北京。", 18),
            ("中国，北京abc", 9),
            ("中国。abc", 0),
            ("“中国”，（北京）上海b", 27),
            ("中国，。b", 9),
            ("\n\n\u{301}", 1),
            ("abc", 0),
            ("中国\u{FE00}", 0),
            ("中国。\u{301}", 0),
            (long.as_str(), 0),
        ] {
            assert_eq!(plain_len(text), len, "{text:.40}");
        }
        for separators in ["\n", "，", "\r\n"] {
            let len = plain_len(&separators.repeat(MAX_STRETCH_BYTES));
            assert_eq!(len, MAX_STRETCH_BYTES.next_multiple_of(separators.len()));
        }
        let clauses = "中国，".repeat(1000);
        assert_eq!(plain_len(&clauses), MAX_STRETCH_BYTES.next_multiple_of(9));
        for (text, at) in [
            ("中国", 6),
            ("abc，中国", 6),
            ("，中，", 3),
            ("a中、 b c中", 14),
        ] {
            assert_eq!(next_plain(text), at, "{text}");
        }
    }
}
