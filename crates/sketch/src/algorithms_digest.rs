//! Digest that differs between builds that compute different fingerprints.

use crate::Sketcher;
use crate::hash::feature_hash;
use crate::memory::GrowVec;
use crate::minhash::{HashFamily, Scheme};
use crate::options::{Accents, Digits, Normalize, TextOptions, Tokens, Weight};

/// Number of values of the MinHash signature that is a part of the digest.
const HASHES: usize = 128;

/// Sample text: letters with accents, composed and not, a ligature, CJK, kana, Thai, digits, an
/// emoji and HTML tags.
const SAMPLE: &str = "<p>The caf\u{e9} was closed on Monday, 12 May; cafe\u{301}s \u{fb01}nally \
    opened at 9:30.</p>\n<b>The</b> the THE Stra\u{df}e \u{130}stanbul \u{3a3}\u{3af}\u{3c3}\
    \u{3c5}\u{3c6}\u{3bf}\u{3c2}\n\u{4e2d}\u{6587}\u{6587}\u{672c}\u{6307}\u{7eb9} \u{30ab}\
    \u{30bf}\u{30ab}\u{30ca} \u{e2a}\u{e27}\u{e31}\u{e2a}\u{e14}\u{e35} \u{1f469}\u{200d}\
    \u{1f469} &eacute;&#8364;\n\u{661}\u{662}\u{663} A1b2-C3_d4@e.f\n";

/// Returns a digest of the fingerprints and the signature of a sample text with several options.
/// The digest is equal on all machines and in all builds that compute equal fingerprints. It does
/// not cover the tokens of jieba, which depend on the loaded dictionary and on the user's words.
///
/// ```
/// use neardup_sketch::algorithms_digest;
///
/// assert_eq!(algorithms_digest(), algorithms_digest());
/// ```
#[must_use]
pub fn algorithms_digest() -> u64 {
    let family = HashFamily::new(Scheme::Neardup1, HASHES, 0);
    let mut results = Vec::new();
    for (tokens, shingle, weight) in [
        (Tokens::Word, 2, Weight::Sqrt),
        (Tokens::Char, 5, Weight::Log),
        (Tokens::Line, 1, Weight::Tf),
    ] {
        for html in [false, true] {
            let normalize = match html {
                false => Normalize::DEFAULT,
                true => Normalize {
                    accents: Accents::Remove,
                    digits: Digits::Zero,
                },
            };
            let mut sketcher = Sketcher::new(TextOptions {
                tokens,
                shingle,
                weight,
                normalize,
                html,
                keywords: 0,
            });
            let mut add = |value: u128| results.grow_by(&value.to_le_bytes());
            add(sketcher.simhash64(SAMPLE, &mut || ()).map_or(0, u128::from));
            add(sketcher.minhash64(SAMPLE, &mut || ()).map_or(0, u128::from));
            add(sketcher.simhash128(SAMPLE, &mut || ()).unwrap_or(0));
            add(sketcher.minhash128(SAMPLE, &mut || ()).unwrap_or(0));
            let family = family.as_ref().ok();
            let values = family.and_then(|it| sketcher.signature(SAMPLE, it, &mut || ()));
            for value in values.unwrap_or_default() {
                results.grow_by(&value.to_le_bytes());
            }
        }
    }
    feature_hash(&results)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digest changes only when fingerprints change, which must never happen.
    #[test]
    fn digest_is_that_of_all_machines() {
        assert_eq!(format!("{:016x}", algorithms_digest()), "2a1b868bd86b4a0a");
    }
}
