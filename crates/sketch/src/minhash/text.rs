//! From a text to its signature.

use std::cell::Cell;
use std::ops::Range;

use super::Scheme;
use super::functions::{Functions, Making};
use crate::extract::{Extractor, SharedCheck};
use crate::options::TextOptions;
use crate::shingle::FeatureSink;

/// The memory that one text needs, kept for the next.
#[derive(Default)]
struct Scratch {
    extractor: Extractor,
    making: Making,
}

thread_local! {
    /// Taken out while in use: if `check` unwinds, it is dropped and nothing half-done remains.
    static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

/// Takes features into a signature. A feature may come any number of times.
struct Sink<'a> {
    functions: &'a Functions,
    making: &'a mut Making,
    /// Values computed since the last call of `check`.
    unchecked: usize,
    check: &'a SharedCheck<'a>,
}

/// Values between two calls of `check`: of the slowest scheme they take some ten milliseconds.
const CHECK_EVERY: usize = 1 << 22;

impl FeatureSink for Sink<'_> {
    #[inline]
    fn add_all(&mut self, bytes: &[u8], features: impl Iterator<Item = Range<usize>>) {
        let Self {
            functions, making, ..
        } = self;
        match functions.scheme() {
            Scheme::Neardup1 => features.for_each(|f| making.add_own(functions, &bytes[f])),
            _ => {
                let hashes = functions.hashes();
                for feature in features {
                    making.add(functions, &bytes[feature]);
                    self.unchecked += hashes;
                    if self.unchecked >= CHECK_EVERY {
                        self.unchecked = 0;
                        self.check.call();
                    }
                }
            }
        }
    }
}

/// MinHash signature of a text; `None` if it has no feature.
///
/// The text is cut into tokens ([`crate::tokens`]) and these into features ([`crate::shingle`]), as
/// `options` say; weights do not matter.
///
/// `check` is called every few 100 kB of work, so that the caller can stop by unwinding from it.
/// Time is linear in the length of the text; memory is that of [`crate::simhash64_text`] without
/// the counts.
#[must_use]
pub fn minhash_text(
    text: &str,
    options: &TextOptions,
    functions: &Functions,
    check: &mut dyn FnMut(),
) -> Option<Vec<u32>> {
    let mut scratch = SCRATCH.take().unwrap_or_default();
    let Scratch { extractor, making } = &mut *scratch;
    making.reset(functions);
    let check = SharedCheck::new(check);
    let mut sink = Sink {
        functions,
        making,
        unchecked: 0,
        check: &check,
    };
    extractor.feed(text, options, &mut sink, &mut || check.call());
    let signature = making.finish(functions).map(<[u32]>::to_vec);
    SCRATCH.set(Some(scratch));
    signature
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::tests::any_text;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        /// The signature of a text is that of its features given one by one.
        #[test]
        fn equals_that_of_the_features(text in any_text(), seed in 0_u64..3) {
            let options = TextOptions::SET;
            let features = crate::features(&text, &options, &mut || ());
            for scheme in Scheme::ALL {
                let functions = Functions::new(scheme, 64, seed).unwrap();
                let given = functions.signature(features.iter().map(|f| f.text.as_bytes()));
                prop_assert_eq!(minhash_text(&text, &options, &functions, &mut || ()), given);
            }
        }
    }

    #[test]
    fn short_texts() {
        let functions = Functions::new(Scheme::Neardup1, 128, 0).unwrap();
        let of = |text| minhash_text(text, &TextOptions::SET, &functions, &mut || ());
        assert_eq!(of(""), None);
        assert_eq!(of("...!"), None);
        // Shorter than a shingle: one feature.
        assert_eq!(
            of("Hello, World"),
            functions.signature([&b"hello world"[..]])
        );
        assert_eq!(
            of("one two three"),
            functions.signature([&b"one two three"[..]])
        );
    }
}
