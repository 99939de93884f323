//! Removes comments and literals from Rust code, so that checks find code only.

/// Returns the Rust code `text` with a blank for each byte of a comment, string or character
/// literal. Line breaks stay, so that line numbers do not change.
pub fn masked(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut masked = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let end = literal_end(bytes, at).unwrap_or(at);
        if end == at {
            masked.push(bytes[at]);
            at += 1;
        } else {
            masked.extend(bytes[at..end].iter().map(|&byte| match byte {
                b'\n' => b'\n',
                _ => b' ',
            }));
            at = end;
        }
    }
    // Non-ASCII characters outside literals are parts of identifiers and stay whole, so the result
    // is UTF-8.
    String::from_utf8(masked).unwrap_or_default()
}

/// Returns the byte offset of the end of the comment or literal that begins at the offset `at`;
/// `None` if none begins there.
fn literal_end(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    if rest.starts_with(b"//") {
        return Some(at + position(rest, b"\n").unwrap_or(rest.len()));
    }
    if rest.starts_with(b"/*") {
        return Some(at + block_comment(rest));
    }
    if rest[0] == b'"' {
        return Some(at + string(rest));
    }
    let inside_name = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    if !inside_name && let Some(length) = raw_string(rest) {
        return Some(at + length);
    }
    character(rest).map(|length| at + length)
}

fn position(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|part| part == needle)
}

/// Returns the length in bytes of the block comment at the start of `bytes`. Block comments may be
/// nested.
fn block_comment(bytes: &[u8]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += 1;
        }
    }
    at
}

/// Returns the length in bytes of the quoted string at the start of `bytes`.
fn string(bytes: &[u8]) -> usize {
    let mut at = 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

/// Returns the length in bytes of the raw string, such as `r#"..."#` or `br"..."`, at the start of
/// `bytes`; `None` if none begins there.
fn raw_string(bytes: &[u8]) -> Option<usize> {
    let prefix = usize::from(matches!(bytes[0], b'b' | b'c'));
    let after = bytes.get(prefix..)?.strip_prefix(b"r")?;
    let hashes = after.iter().take_while(|byte| **byte == b'#').count();
    let body = after[hashes..].strip_prefix(b"\"")?;
    let close: Vec<u8> = [b"\"".as_slice(), &b"#".repeat(hashes)].concat();
    let before = bytes.len() - body.len();
    Some(before + position(body, &close)? + close.len())
}

/// Returns the length in bytes of the character literal at the start of `bytes`; `None` if there is
/// no such literal. A lifetime also begins with a quote.
fn character(bytes: &[u8]) -> Option<usize> {
    let body = bytes.strip_prefix(b"'")?;
    let length = match body.first()? {
        // The byte after the backslash belongs to the escape. It may be a quote.
        b'\\' => 2 + position(body.get(2..)?, b"'")?,
        b'\'' | b'\n' => return None,
        first if first.is_ascii() => 1,
        first => first.leading_ones() as usize,
    };
    (body.get(length) == Some(&b'\'')).then_some(length + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_become_blank() {
        let cases = [
            ("a // use b;\nc", "a          \nc"),
            ("a /* x /* y */ z */ c", "a                   c"),
            (r#"a "x\"y" c"#, "a        c"),
            (r##"a r#"x"y"# c"##, "a          c"),
            ("a 'x' b '\\'' c", "a     b      c"),
            ("fn f<'a>(x: &'a str)", "fn f<'a>(x: &'a str)"),
            ("var\"x\"", "var   "),
            ("'\u{e9}' b", "     b"),
        ];
        for (text, expected) in cases {
            assert_eq!(masked(text), expected, "{text}");
        }
    }
}
