//! Lengths of the leading ASCII and Han characters of a text.

/// Returns the number of ASCII bytes at the start of `bytes`.
pub(crate) fn leading_ascii(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(block) = bytes[at..].first_chunk::<64>() {
        // There is no branch for each byte, so that the compiler can vectorise the loop.
        if block.iter().fold(0, |all, byte| all | byte) >= 0x80 {
            break;
        }
        at += 64;
    }
    while let Some(eight) = bytes[at..].first_chunk::<8>() {
        let high = u64::from_le_bytes(*eight) & 0x8080_8080_8080_8080;
        if high != 0 {
            return at + (high.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    at + bytes[at..]
        .iter()
        .take_while(|byte| byte.is_ascii())
        .count()
}

/// Returns true if the three bytes are a UTF-8 character from U+4E00 to U+9FFF. The first two bytes
/// are enough to decide this.
#[inline(always)]
pub(crate) fn is_common_han(&[first, second, _]: &[u8; 3]) -> bool {
    (0xE4B8..=0xE9BF).contains(&u16::from_be_bytes([first, second]))
}

/// Returns the length in bytes of the leading characters from U+4E00 to U+9FFF of the UTF-8 text
/// `text`.
pub(crate) fn leading_han(text: &[u8]) -> usize {
    let (characters, _) = text.as_chunks::<3>();
    // Tests four characters at a time, with one branch for all four.
    let (fours, _) = characters.as_chunks::<4>();
    let all = |four: &&[[u8; 3]; 4]| four.iter().fold(true, |all, c| all & is_common_han(c));
    let whole = 4 * fours.iter().take_while(all).count();
    let rest = characters[whole..].iter();
    3 * (whole + rest.take_while(|c| is_common_han(c)).count())
}
