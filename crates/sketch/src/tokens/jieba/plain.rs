//! Chinese that jieba splits as it is.
//!
//! Most Chinese texts are Han and full-width punctuation. Normalisation leaves Han alone, and what
//! it makes of the punctuation does not matter, since that only separates words. So a stretch of
//! both needs no normal form and no search for the places to cut.

use crate::normalize::leading_han;

/// Bytes of a stretch, about: it ends at the next place where the text is cut.
const STRETCH: usize = 1 << 11;
/// Bytes of a stretch at least, unless it is all of the text: shorter ones are not worth it.
const MIN_STRETCH: usize = 1 << 6;
/// Bytes of a run of Han in a stretch, at most.
const MAX_RUN: usize = 1 << 11;

/// Returns true for characters that jieba does not know and does not come to know by
/// normalisation, and between which and a Han character the text is always cut.
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

/// Length of the stretch of Han and punctuation at the start of `text`, which must be a place where
/// the text is cut; `None` if it is not worth it. There is such a place after it too.
///
/// The text is cut between a separator and a Han character, and between two separators. A segment
/// of UAX 29 that has both separators is white space or a line end, which is not a word. A
/// separator that joins letters (WB6, WB7, WB7b) or digits (WB11, WB12) joins none if another
/// separator is beside it, nor at the start of a text. What follows the second separator is the
/// same in both cases, and its marks stay with it.
pub(super) fn stretch_len(text: &str) -> Option<usize> {
    let len = plain_len(text);
    (len >= text.len().min(MIN_STRETCH)).then_some(len)
}

fn plain_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut end, mut separated) = (0, 0, true);
    while at < text.len() {
        let run = leading_han(&bytes[at..bytes.len().min(at + MAX_RUN)]);
        if run > 0 {
            if separated {
                // Between punctuation and Han.
                end = at;
                if end >= STRETCH {
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
                    if end >= STRETCH {
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

/// Length of the start of `text` before the next stretch that is worth it, and the length of that;
/// or before a place where one could begin, after some kilobytes.
pub(super) fn other_len(text: &str) -> (usize, Option<usize>) {
    let mut end = 0;
    loop {
        end += next_plain(&text[end..]);
        let stretch = stretch_len(&text[end..]);
        if stretch.is_some() || end >= 4 * STRETCH {
            return (end, stretch);
        }
    }
}

/// The next position in `text`, after its first character, from which [`plain_len`] may count: a
/// Han character after punctuation. The end of the text if there is none.
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
            // Han and Hangul, no punctuation.
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
    use crate::tokens::jieba::{Dictionary, Scripts, TokenizeMode, is_jieba, split};

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

    /// The text is cut between two separators, whatever follows the second.
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
            split(
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
            let len = plain_len(&separators.repeat(STRETCH));
            assert_eq!(len, STRETCH.next_multiple_of(separators.len()));
        }
        let clauses = "中国，".repeat(1000);
        assert_eq!(plain_len(&clauses), STRETCH.next_multiple_of(9));
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
