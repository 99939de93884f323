//! Classes of characters, which decide where a text can be cut. Such a cut does not change the
//! words: normalising and splitting each part separately gives the same words as for the whole
//! text.
//!
//! The classes follow from the Unicode tables in use. Tests check each character of each class by
//! experiment.

/// Classes of the characters of the Basic Multilingual Plane, by code point.
static BASIC: [Class; 0x1_0000] = {
    let mut table = [Class::Other; _];
    let mut c = 0;
    while c < table.len() {
        if let Some(c) = char::from_u32(c as u32) {
            table[c as usize] = Class::by_range(c);
        }
        c += 1;
    }
    table
};

/// Class of a character, which decides where a text can be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Class {
    /// ASCII that can be part of a word: letters, digits, `_`, and `'` `.` `:` `,` `;` `"`. The
    /// punctuation joins words in some contexts.
    AsciiWord,
    /// Other ASCII. The text can be cut before and after such a character, unless a mark follows
    /// it.
    AsciiBreak,
    /// Character that is a word by itself unless a mark follows: Han, Hiragana.
    SingleCharWord,
    /// Non-ASCII character that is never part of a word unless a mark follows: most punctuation.
    Separator,
    /// Non-ASCII punctuation that joins the words around it in some contexts. At the start of a
    /// text it joins nothing, and so it joins nothing directly after a cut.
    Mid,
    /// Letter that the word-break rules treat like an ASCII letter (ALetter). Normalisation only
    /// folds its case, whatever characters surround it, and keeps its length in UTF-8.
    Letter,
    /// Other letter that normalisation never changes: Hebrew, Katakana.
    OtherLetter,
    /// All other characters: marks, compatibility characters, digits, symbols, rarer scripts.
    Other,
}

impl Class {
    /// Returns the class of a character.
    #[inline]
    pub fn from_char(c: char) -> Self {
        match BASIC.get(c as usize) {
            Some(&class) => class,
            None => Self::by_range(c),
        }
    }

    /// Returns the class of a character by ranges of code points, which is slower than the table.
    const fn by_range(c: char) -> Self {
        use Class::{
            AsciiBreak, AsciiWord, Letter, Mid, Other, OtherLetter, Separator, SingleCharWord,
        };
        match c {
            '0'..='9' | 'A'..='Z' | 'a'..='z' | '_' | '\'' | '.' | ':' | ',' | ';' | '"' => {
                AsciiWord
            }
            '\0'..='\x7F' => AsciiBreak,
            '\u{4E00}'..='\u{9FFF}' => SingleCharWord,
            'À'..='Ö' | 'Ø'..='ö' | 'ø'..='į' | 'ı' | 'Ĵ'..='ľ' | 'Ł'..='ň' | 'Ŋ'..='ž' => {
                Letter
            }
            '\u{180}'..='\u{1C3}'
            | '\u{1CD}'..='\u{1F0}'
            | '\u{1F4}'..='\u{239}'
            | '\u{250}'..='\u{2AF}' => Letter,
            'Ά' | 'Έ'..='Ί' | 'Ό' | 'Ύ'..='Ρ' | 'Σ'..='ώ' => Letter,
            '\u{400}'..='\u{481}' | '\u{48A}'..='\u{52F}' => Letter,
            '\u{531}'..='\u{556}' | '\u{561}'..='\u{586}' => Letter,
            '\u{620}'..='\u{64A}' | '\u{679}'..='\u{6D3}' => Letter,
            '\u{5D0}'..='\u{5EA}' | '\u{30A1}'..='\u{30FA}' => OtherLetter,
            '\u{904}'..='\u{939}' | '\u{10D0}'..='\u{10FA}' => Letter,
            '\u{1E00}'..='\u{1E99}' | '\u{1EA0}'..='\u{1EF9}' => Letter,
            '\u{AC00}'..='\u{D7A3}' => Letter,
            '\u{3041}'..='\u{3096}' | '\u{3400}'..='\u{4DBF}' | '\u{20000}'..='\u{2A6DF}' => {
                SingleCharWord
            }
            '\u{A0}'..='§' | '«' | '¬' | '°' | '±' | '¶' | '»' | '¿' | '×' | '÷' => {
                Separator
            }
            '‐' | '–'..='―' | '“'..='„' | '†'..='•' | '…' | '‹' | '›' | '€' => {
                Separator
            }
            '\u{3000}'..='\u{3002}' | '\u{3008}'..='\u{3011}' | '\u{3014}'..='\u{301B}' => {
                Separator
            }
            '！' | '＃'..='＆' | '（'..='＋' | '－' | '／' | '＜'..='＠' | '［'..='］' => {
                Separator
            }
            '｛'..='～' | '￥' => Separator,
            '·' | '‘' | '’' | '，' | '．' | '：' | '；' => Mid,
            _ => Other,
        }
    }

    /// Returns true if `byte` is an ASCII character of [`Class::AsciiBreak`].
    #[inline]
    pub fn is_ascii_break(byte: u8) -> bool {
        Self::from_char(char::from(byte)) == Self::AsciiBreak
    }

    /// Returns true if a text can be cut between a character of this class and a following
    /// character of the class `next`, without changing the words of the text.
    #[inline]
    pub fn cut_before(self, next: Self) -> bool {
        match next {
            Self::SingleCharWord | Self::Separator | Self::AsciiBreak => true,
            Self::Other => false,
            _ => matches!(
                self,
                Self::SingleCharWord | Self::Separator | Self::AsciiBreak
            ),
        }
    }

    /// Returns true for the "simple" classes: the word tokenizer ([`crate::tokens`]) can treat
    /// their characters like ASCII.
    #[inline]
    pub fn is_simple(self) -> bool {
        matches!(
            self,
            Self::AsciiWord | Self::AsciiBreak | Self::Letter | Self::Separator
        )
    }

    /// Returns true for the classes whose characters never combine with the previous character:
    /// they are not marks, and normalisation does not turn them into marks.
    #[inline]
    pub fn never_combines(self) -> bool {
        self != Self::Other
    }
}

#[cfg(test)]
mod tests {
    use super::super::{folded, normalized};
    use super::*;
    use unicode_normalization::char::canonical_combining_class;
    use unicode_normalization::{IsNormalized, is_nfkc_quick};
    use unicode_segmentation::UnicodeSegmentation;

    fn words(text: &str) -> Vec<String> {
        normalized(text)
            .unicode_words()
            .map(str::to_owned)
            .collect()
    }

    /// Texts that a test puts before and after each character: one text for each kind of character
    /// that the word-break rules distinguish, and some pairs of characters.
    const CONTEXT: [&str; 26] = [
        "a",
        "1",
        "_",
        "'",
        ".",
        ":",
        ",",
        "\"",
        " ",
        "\n",
        "-",
        "א",
        "カ",
        "中",
        "か",
        "é",
        "한",
        "。",
        "’",
        "，",
        "a.",
        "a'",
        "1,",
        "א\"",
        "\u{200D}",
        "\u{1F1E6}",
    ];

    #[test]
    fn cuts_change_no_words() {
        let starts_with_mark = |s: &str| s.starts_with('\u{200D}');
        let members = ('\0'..=char::MAX).filter(|&c| Class::from_char(c) != Class::Other);
        for c in members {
            let class = Class::from_char(c);
            // The big blocks of Han and Hangul are uniform, so their ends and a sample are enough.
            let in_big_block = matches!(
                c as u32,
                0x3500..0x4D00 | 0x4F00..0x9F00 | 0x20100..0x2A600 | 0xAD00..0xD700
            );
            if in_big_block && !(c as u32).is_multiple_of(61) {
                continue;
            }
            let text = c.to_string();
            for context in CONTEXT {
                let [before, after] = [context.chars().next_back(), context.chars().next()]
                    .map(|c| Class::from_char(c.unwrap()));
                if before.cut_before(class) {
                    let mut parts = words(context);
                    parts.extend(words(&text));
                    assert_eq!(
                        words(&format!("{context}{text}")),
                        parts,
                        "{context:?} before {c:?}"
                    );
                }
                if class.cut_before(after) {
                    assert!(!starts_with_mark(context));
                    let mut parts = words(&text);
                    parts.extend(words(context));
                    assert_eq!(
                        words(&format!("{text}{context}")),
                        parts,
                        "{c:?} before {context:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn members_are_what_their_class_says() {
        for c in '\0'..=char::MAX {
            let class = Class::from_char(c);
            if class == Class::Other {
                continue;
            }
            let text = c.to_string();
            let normal = normalized(&text);
            let first = normal.chars().next().unwrap();
            // A composition never extends back over the character.
            assert_eq!(canonical_combining_class(first), 0, "{c:?}");
            assert_eq!(
                is_nfkc_quick(std::iter::once(first)),
                IsNormalized::Yes,
                "{c:?}"
            );
            match class {
                Class::SingleCharWord => {
                    assert_eq!(normal, text);
                    assert_eq!(words(&text), [text]);
                }
                Class::Letter => {
                    assert_eq!(normal, folded(c).collect::<String>());
                    assert_eq!(normal.len(), text.len(), "{c:?}");
                    // All contexts in which an ASCII letter can occur.
                    for around in [
                        "x",
                        "xx",
                        "1x_x",
                        "x.x'x:x",
                        "x.1",
                        "1'x",
                        "x_,x;x",
                        "x\"x",
                        "xカx中xא",
                    ] {
                        let expected: Vec<String> = words(around)
                            .iter()
                            .map(|word| word.replace('x', &normal))
                            .collect();
                        assert_eq!(words(&around.replace('x', &text)), expected);
                    }
                }
                Class::OtherLetter => assert_eq!(normal, text),
                Class::Separator | Class::Mid | Class::AsciiBreak => {
                    assert!(words(&text).is_empty(), "{c:?}");
                }
                Class::AsciiWord | Class::Other => {}
            }
        }
    }

    /// Punctuation of [`Class::Mid`] at the start of a part of a text, directly after a cut, does
    /// not change the words before and after it.
    #[test]
    fn mids_after_a_cut_join_nothing() {
        let mids = ('\0'..=char::MAX).filter(|&c| Class::from_char(c) == Class::Mid);
        for c in mids {
            for before in ["中", "か", "。", " ", "-", "中，", ""] {
                for after in CONTEXT
                    .into_iter()
                    .filter(|s| Class::from_char(s.chars().next().unwrap()).never_combines())
                {
                    let mut parts = words(before);
                    parts.extend(words(after));
                    assert_eq!(
                        words(&format!("{before}{c}{after}")),
                        parts,
                        "{before:?} {c:?} {after:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn separators_part_words() {
        for c in ('\0'..=char::MAX)
            .filter(|&c| matches!(Class::from_char(c), Class::Separator | Class::AsciiBreak))
        {
            for before in CONTEXT {
                for after in CONTEXT
                    .into_iter()
                    .filter(|s| Class::from_char(s.chars().next().unwrap()).never_combines())
                {
                    let mut parts = words(before);
                    parts.extend(words(after));
                    assert_eq!(
                        words(&format!("{before}{c}{after}")),
                        parts,
                        "{before:?} {c:?} {after:?}"
                    );
                }
            }
        }
    }
}
