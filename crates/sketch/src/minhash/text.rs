//! From a text to its signature.

use std::cell::Cell;

use super::family::{Family, Minima};
use crate::hash::feature_hash;
use crate::shingle::{FeatureSink, Shingles};
use crate::tokens::word::Words;

/// The memory that one text needs, kept for the next.
struct Scratch {
    words: Words,
    shingles: Shingles,
    width: usize,
    minima: Minima,
}

thread_local! {
    /// Taken out while in use: if `check` unwinds, it is dropped and nothing half-done remains.
    static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

/// Hashes features and takes them into the least values. A feature may come any number of times.
struct Sink<'a> {
    family: &'a Family,
    minima: &'a mut Minima,
}

impl FeatureSink for Sink<'_> {
    #[inline]
    fn add_all<'a>(&mut self, features: impl Iterator<Item = &'a [u8]>) {
        for feature in features {
            self.minima.add(self.family, feature_hash(feature));
        }
    }
}

/// MinHash signature of a text; `None` if it has no word.
///
/// Features are `shingle` consecutive words ([`crate::tokens`], joined by one space), or all of the
/// text's words if it has fewer. Their hash is [`crate::hash::feature_hash`].
///
/// `check` is called every few 100 kB of work, so that the caller can stop by unwinding from it.
/// Time is linear in the length of the text; memory is as for [`crate::simhash64_text`] without the
/// counts.
#[must_use]
pub fn minhash_text(
    text: &str,
    shingle: usize,
    family: &Family,
    check: &mut dyn FnMut(),
) -> Option<Vec<u32>> {
    let mut scratch = SCRATCH
        .take()
        .filter(|scratch| scratch.width == shingle)
        .unwrap_or_else(|| {
            Box::new(Scratch {
                words: Words::default(),
                shingles: Shingles::new(shingle),
                width: shingle,
                minima: Minima::default(),
            })
        });
    let Scratch {
        words,
        shingles,
        minima,
        ..
    } = &mut *scratch;
    shingles.reset();
    minima.reset(family);
    let mut sink = Sink { family, minima };
    words.tokenize(text, shingles, &mut sink, check);
    shingles.finish(&mut sink);
    let signature = scratch.minima.finish(family).map(<[u32]>::to_vec);
    SCRATCH.set(Some(scratch));
    signature
}
