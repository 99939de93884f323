//! Tells which characters are white space, and which end a line.

/// Returns true for characters with the Unicode property White_Space, which has been stable for
/// many versions of Unicode.
#[inline]
pub(crate) const fn is_space(c: char) -> bool {
    matches!(
        c,
        '\t'..='\r'
            | ' '
            | '\u{85}'
            | '\u{A0}'
            | '\u{1680}'
            | '\u{2000}'..='\u{200A}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{202F}'
            | '\u{205F}'
            | '\u{3000}'
    )
}

/// Returns true for characters that end a line: the mandatory breaks of UAX 14 (classes BK, CR, LF
/// and NL).
#[inline]
pub(crate) const fn is_line_end(c: char) -> bool {
    matches!(c, '\n'..='\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_is_the_property() {
        for c in '\0'..=char::MAX {
            assert_eq!(is_space(c), c.is_whitespace(), "{c:?}");
            assert!(is_space(c) || !is_line_end(c));
        }
        assert_eq!(('\0'..=char::MAX).filter(|&c| is_line_end(c)).count(), 7);
    }
}
