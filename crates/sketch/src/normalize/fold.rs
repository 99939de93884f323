//! Case folding of characters, and the characters that normalisation ignores, from tables of this
//! crate.
//!
//! The corresponding tables of the standard library depend on the Rust version that builds the
//! extension. With those tables, a letter added to Unicode would change fingerprints after an
//! upgrade of the compiler.

use super::fold_table::FOLDS;

/// Characters with code points below this number are looked up in [`LOW`], without a search.
const DIRECT: usize = 0x590;

/// Case foldings of the characters below [`DIRECT`], by code point.
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
    while range < FOLDS.len() {
        let (first, last, step, add) = FOLDS[range];
        let mut c = first;
        while c <= last && c < DIRECT as u32 {
            table[c as usize] = (c as i32 + add) as u16;
            c += step;
        }
        range += 1;
    }
    table
};

/// Returns the full case folding of `c` (CaseFolding.txt, status C and F). The second character is
/// `None` except for ß and ẞ. If `c` has a decomposition, it must satisfy
/// [`folds_without_decomposition`]. Otherwise the result may be wrong.
#[inline]
pub(crate) fn fold(c: char) -> (char, Option<char>) {
    if (c as usize) < DIRECT {
        if c == 'ß' {
            return ('s', Some('s'));
        }
        return (char::from_u32(LOW[c as usize].into()).unwrap_or(c), None);
    }
    if c == 'ẞ' {
        return ('s', Some('s'));
    }
    (fold_by_search(c), None)
}

/// Returns the case folding of a character by a search in [`FOLDS`].
fn fold_by_search(c: char) -> char {
    let code = c as u32;
    // No letter in these ranges has case: Han, kana, Yi, Hangul.
    if matches!(code, 0x2E00..0xA640 | 0xAC00..0xFF00) {
        return c;
    }
    let at = FOLDS.partition_point(|range| range.1 < code);
    match FOLDS.get(at) {
        Some(&(first, _, step, add)) if code >= first && (code - first).is_multiple_of(step) => {
            char::from_u32(code.wrapping_add_signed(add)).unwrap_or(c)
        }
        _ => c,
    }
}

/// Returns true if the case of `c` can be folded without decomposing `c` first, because the result
/// is the same. `c` is a character of a text in NFKC. Returns false for characters in which case
/// folding changes a mark: the dot of İ, or the iota below a Greek vowel, which becomes a letter.
#[inline]
pub(super) const fn folds_without_decomposition(c: char) -> bool {
    !matches!(
        c,
        'İ' | '\u{345}'
            | '\u{1F80}'..='\u{1FAF}'
            | '\u{1FB2}'..='\u{1FB4}'
            | '\u{1FB7}'
            | '\u{1FBC}'
            | '\u{1FC2}'..='\u{1FC4}'
            | '\u{1FC7}'
            | '\u{1FCC}'
            | '\u{1FF2}'..='\u{1FF4}'
            | '\u{1FF7}'
            | '\u{1FFC}'
    )
}

/// Returns true for characters with the property Default_Ignorable_Code_Point of Unicode 17.0:
/// soft hyphens, joiners, marks of direction, variation selectors, fillers.
#[inline]
pub(crate) const fn is_ignorable(c: char) -> bool {
    c >= '\u{AD}'
        && matches!(
            c,
            '\u{AD}'
                | '\u{34F}'
                | '\u{61C}'
                | '\u{115F}'..='\u{1160}'
                | '\u{17B4}'..='\u{17B5}'
                | '\u{180B}'..='\u{180F}'
                | '\u{200B}'..='\u{200F}'
                | '\u{202A}'..='\u{202E}'
                | '\u{2060}'..='\u{206F}'
                | '\u{3164}'
                | '\u{FE00}'..='\u{FE0F}'
                | '\u{FEFF}'
                | '\u{FFA0}'
                | '\u{FFF0}'..='\u{FFF8}'
                | '\u{1BCA0}'..='\u{1BCA3}'
                | '\u{1D173}'..='\u{1D17A}'
                | '\u{E0000}'..='\u{E0FFF}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_normalization::UnicodeNormalization;

    fn folded(c: char) -> Vec<char> {
        let (first, second) = fold(c);
        std::iter::once(first).chain(second).collect()
    }

    #[test]
    fn table_is_ascending() {
        assert!(FOLDS.iter().all(|r| r.0 <= r.1 && (r.1 - r.0) % r.2 == 0));
        assert!(FOLDS.windows(2).all(|w| w[0].1 < w[1].0));
    }

    /// Folding equals the lower case of the upper case (The Unicode Standard, section 5.18), with
    /// exceptions. A newer standard library may know more letters than the table of Unicode 17.
    #[test]
    fn equals_the_standard_library_of_the_same_unicode_version() {
        let same_version = char::UNICODE_VERSION == (17, 0, 0);
        let mut changed = 0;
        for c in '\0'..=char::MAX {
            if std::iter::once(c).nfkd().ne([c]) {
                continue;
            }
            let ours = folded(c);
            changed += u32::from(ours != [c]);
            let expected: Vec<char> = match c {
                // Cherokee folds to its older, upper-case letters.
                '\u{13A0}'..='\u{13F5}' => vec![c],
                '\u{13F8}'..='\u{13FD}' | '\u{AB70}'..='\u{ABBF}' => c.to_uppercase().collect(),
                // The dotless i is a separate letter.
                'ı' => vec![c],
                // ẞ is its own upper case.
                'ẞ' => vec!['s', 's'],
                _ => c.to_uppercase().flat_map(char::to_lowercase).collect(),
            };
            if same_version || ours != [c] {
                assert_eq!(ours, expected, "U+{:04X}", c as u32);
            }
        }
        assert_eq!(changed, 1040);
    }

    #[test]
    fn some_foldings() {
        assert_eq!(fold('ς'), ('σ', None));
        assert_eq!(fold('Σ'), ('σ', None));
        assert_eq!(fold('ẞ'), ('s', Some('s')));
        assert_eq!(fold('ß'), ('s', Some('s')));
        assert_eq!(fold('É'), ('é', None));
        assert_eq!(fold('\u{345}'), ('ι', None));
    }
}
