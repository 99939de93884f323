//! Lower case, from a table of this crate.
//!
//! The standard library's tables follow the Rust version that happens to build the extension, so a
//! newly added letter would get another fingerprint after an upgrade of the compiler.

use super::lower_table::LOWER;

/// Characters below this are looked up directly.
const DIRECT: usize = 0x590;

/// Lower case of the characters below `DIRECT`.
const LOW: [u16; DIRECT] = {
    let mut table = [0; DIRECT];
    let mut c = 0;
    while c < DIRECT {
        table[c] = c as u16;
        c += 1;
    }
    c = b'A' as usize;
    while c <= b'Z' as usize {
        table[c] = c as u16 + 32;
        c += 1;
    }
    let mut range = 0;
    while range < LOWER.len() {
        let (first, last, step, add) = LOWER[range];
        let mut c = first;
        while c <= last && c < DIRECT as u32 {
            table[c as usize] = (c as i32 + add) as u16;
            c += step;
        }
        range += 1;
    }
    table[FINAL_SIGMA as usize] = SIGMA as u16;
    table
};

const FINAL_SIGMA: char = 'ς';
const SIGMA: char = 'σ';
const I_WITH_DOT: char = 'İ';
const COMBINING_DOT_ABOVE: char = '\u{307}';

/// Lower case of a character: the full, context-free mapping of Unicode (UnicodeData.txt and
/// SpecialCasing.txt), where İ alone gives two characters, i and a combining dot.
///
/// One addition: the final sigma ς becomes σ as well. Unicode would choose between the two for an
/// upper-case Σ by the letters around it; one form for all three keeps words alike in any spelling
/// and needs no context.
#[inline]
pub(crate) fn lower(c: char) -> (char, Option<char>) {
    if (c as usize) < DIRECT {
        if c == I_WITH_DOT {
            return ('i', Some(COMBINING_DOT_ABOVE));
        }
        return (char::from_u32(LOW[c as usize].into()).unwrap_or(c), None);
    }
    (lower_by_search(c), None)
}

fn lower_by_search(c: char) -> char {
    let code = c as u32;
    // No letter with case lies here: Han, kana, Yi, Hangul.
    if matches!(code, 0x2E00..0xA640 | 0xAC00..0xFF00) {
        return c;
    }
    let at = LOWER.partition_point(|range| range.1 < code);
    match LOWER.get(at) {
        Some(&(first, _, step, add)) if code >= first && (code - first).is_multiple_of(step) => {
            char::from_u32(code.wrapping_add_signed(add)).unwrap_or(c)
        }
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_ascending() {
        assert!(LOWER.iter().all(|r| r.0 <= r.1 && (r.1 - r.0) % r.2 == 0));
        assert!(LOWER.windows(2).all(|w| w[0].1 < w[1].0));
    }

    /// The table is Unicode 17's; a newer standard library may know more letters.
    #[test]
    fn equals_the_standard_library_of_the_same_unicode_version() {
        let same_version = char::UNICODE_VERSION == (17, 0, 0);
        let mut mapped = 0;
        for c in '\0'..=char::MAX {
            let (first, second) = lower(c);
            let ours: Vec<char> = std::iter::once(first).chain(second).collect();
            mapped += u32::from(ours != [c]);
            if c != FINAL_SIGMA && (same_version || ours != [c]) {
                assert_eq!(
                    ours,
                    c.to_lowercase().collect::<Vec<_>>(),
                    "U+{:04X}",
                    c as u32
                );
            }
        }
        assert_eq!(mapped, 1488 + 1);
        assert_eq!(lower('ς'), ('σ', None));
        assert_eq!(lower('Σ'), ('σ', None));
        assert_eq!(lower('ẞ'), ('ß', None));
    }
}
