//! Finds the features that many documents of a collection share. A collector keeps the features of
//! a sample of documents in one memory of 64-bit words: a header, and a record for each document.

use super::set::FeatureKind;
use crate::feature_list::sort;
use crate::hash::feature_hash;
use crate::memory::GrowVec;
use crate::memory::WordStore;
use crate::options::TextOptions;
use crate::sketcher::Sketcher;

/// Divisor of the memory limit: at most `limit / DOCUMENT_SHARE_DIVISOR` features of one document
/// are kept, where the limit is in words and each feature takes one. If a document has more
/// features, only the features with the smallest hashes are kept.
const DOCUMENT_SHARE_DIVISOR: u64 = 16;
/// Number of words at the start of a document's record, before the hashes of its features. The
/// first word is the hash of the document's text, and the second is the number of the features.
const RECORD: usize = 2;

/// Index of a word in the header of a collector: the bits of an `f64`, the share of all documents
/// above which a feature is common.
const SHARE: usize = 0;
/// Index of a word in the header of a collector: the memory limit, in words.
const LIMIT: usize = 1;
/// Index of a word in the header of a collector: the number of words in use, including the header.
const USED: usize = 2;
/// Index of a word in the header of a collector: how often the sample of documents was halved.
const HALVINGS: usize = 3;
/// Index of a word in the header of a collector: the options that decide which features a text has
/// ([`FeatureKind::to_word`]).
const KIND: usize = 4;
/// Number of words of the header, which is at the start of a collector's memory.
const HEADER: usize = 5;

/// Finds the features that more than a given share of all documents have, within a memory limit.
///
/// Features of documents are kept until they exceed the limit. Then half of the documents are
/// dropped, chosen by the hashes of their texts. Later documents are dropped by the same rule. This
/// repeats when the kept features exceed the limit again. So only a sample of the documents is
/// counted. The sample does not depend on the order of the documents or on their distribution among
/// processes.
///
/// ```
/// use neardup_sketch::common_features::{CommonFeatureCollector, FeatureSet};
/// use neardup_sketch::{Sketcher, TextOptions};
///
/// let options = TextOptions { shingle: 1, ..TextOptions::SET };
/// let mut sketcher = Sketcher::new(options);
/// let mut collector = CommonFeatureCollector::new(Vec::new(), &options, 0.5, 1 << 20);
/// for text in ["dear reader one", "dear reader two", "dear three"] {
///     collector.add(&mut sketcher, text, &mut || ());
/// }
/// let stored = collector.finish(&mut || ());
/// // "dear" and "reader".
/// assert_eq!(FeatureSet::from_stored(&stored).unwrap().len(), 2);
/// ```
pub struct CommonFeatureCollector<S> {
    /// Header words, followed by the documents of the sample.
    store: S,
}

/// Size of the sample of documents that a collector has counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampled {
    /// Number of documents in the sample.
    pub documents: u64,
    /// Number of documents of the collection that each document of the sample represents.
    pub one_of: u64,
}

impl<S: WordStore> CommonFeatureCollector<S> {
    /// Creates a collector in empty memory, for features of texts made with `options`. A feature is
    /// common if more than `share` (0 to 1) of the documents have it, and at least two documents.
    /// `limit` is the maximum memory that the features of documents may take, in 64-bit words.
    pub fn new(mut store: S, options: &TextOptions, share: f64, limit: usize) -> Self {
        store.insert_zeroes(0, HEADER);
        let words = store.words_mut();
        words[SHARE] = share.to_bits();
        words[LIMIT] = limit as u64;
        words[USED] = HEADER as u64;
        words[KIND] = FeatureKind::from_options(options).to_word();
        Self { store }
    }

    /// Creates a collector from `store`, the memory of another collector, and continues with the
    /// documents in it.
    pub fn resume(store: S) -> Self {
        Self { store }
    }

    /// Returns true if the collector was created with the share `share` and with options that give
    /// a text the same features as `options`.
    pub fn has_options(&self, options: &TextOptions, share: f64) -> bool {
        let words = self.store.words();
        words[KIND] == FeatureKind::from_options(options).to_word()
            && words[SHARE] == share.to_bits()
    }

    /// Adds a document with the text `text`. `sketcher` makes the features of the document, and
    /// must have the options of the collector. Skips a document without features. Calls the
    /// cancellation check `check`.
    pub fn add(&mut self, sketcher: &mut Sketcher, text: &str, check: &mut dyn FnMut()) {
        let hash = feature_hash(text.as_bytes());
        if !self.is_sampled(hash) {
            return;
        }
        let mut features = sketcher.feature_hashes(text, check);
        if features.is_empty() {
            return;
        }
        sort(&mut features, u64::cmp, check);
        let most = (self.store.words()[LIMIT] / DOCUMENT_SHARE_DIVISOR).max(1);
        features.truncate(most as usize);
        self.append(hash, &features);
    }

    /// Adds the documents of another collector. `other` has the words of its memory. Both
    /// collectors must have been created with the same options and the same share.
    pub fn merge(&mut self, other: &[u64]) {
        let halvings = self.store.words()[HALVINGS].max(other[HALVINGS]);
        self.halve_to(halvings);
        for (hash, features) in documents(other) {
            if self.is_sampled(hash) {
                self.append(hash, features);
            }
        }
    }

    /// Returns true if a document belongs to the current sample. `hash` is the hash of its text.
    fn is_sampled(&self, hash: u64) -> bool {
        u64::from(hash.leading_zeros()) >= self.store.words()[HALVINGS]
    }

    /// Appends a document, given by the hash of its text and by the hashes of its features. Halves
    /// the sample of documents while it exceeds the memory limit.
    fn append(&mut self, hash: u64, features: &[u64]) {
        let used = self.store.words()[USED] as usize;
        let end = used + RECORD + features.len();
        let len = self.store.words().len();
        if end > len {
            self.store.insert_zeroes(len, end - len);
        }
        let words = self.store.words_mut();
        words[used] = hash;
        words[used + 1] = features.len() as u64;
        words[used + RECORD..end].copy_from_slice(features);
        words[USED] = end as u64;
        while self.store.words()[USED] > self.store.words()[LIMIT]
            && self.store.words()[HALVINGS] < u64::from(u64::BITS)
        {
            self.halve_to(self.store.words()[HALVINGS] + 1);
        }
    }

    /// Halves the sample of documents until it has been halved `halvings` times in all. Removes the
    /// documents that are no longer in the sample from the memory of the collector.
    fn halve_to(&mut self, halvings: u64) {
        if halvings == self.store.words()[HALVINGS] {
            return;
        }
        let words = self.store.words_mut();
        words[HALVINGS] = halvings;
        let (mut from, mut to) = (HEADER, HEADER);
        while from < words[USED] as usize {
            let len = RECORD + words[from + 1] as usize;
            if u64::from(words[from].leading_zeros()) >= halvings {
                words.copy_within(from..from + len, to);
                to += len;
            }
            from += len;
        }
        words[USED] = to as u64;
    }

    /// Returns the size of the sample of documents, or `None` if no document was dropped.
    #[must_use]
    pub fn sampled(&self) -> Option<Sampled> {
        let words = self.store.words();
        (words[HALVINGS] > 0).then(|| Sampled {
            documents: documents(words).count() as u64,
            one_of: 1 << words[HALVINGS].min(63),
        })
    }

    /// Returns the common features as the stored form of a [`super::FeatureSet`]. Needs as much
    /// memory again as the collector. Calls the cancellation check `check`.
    pub fn finish(&self, check: &mut dyn FnMut()) -> Vec<u8> {
        let words = self.store.words();
        let mut all = Vec::new();
        let mut count = 0_u64;
        for (_, features) in documents(words) {
            all.grow_by(features);
            count += 1;
        }
        sort(&mut all, u64::cmp, check);
        let least = (f64::from_bits(words[SHARE]) * count as f64).max(1.0);
        let common = all
            .chunk_by(|a, b| a == b)
            .filter(|same| same.len() as f64 > least);
        FeatureKind::from_word(words[KIND])
            .expect("a word that `new` has written")
            .stored(common.map(|same| same[0]))
    }
}

/// Iterates over the documents in `words`, the memory of a collector. Each item has the hash of the
/// document's text and the hashes of the document's features.
fn documents(words: &[u64]) -> impl Iterator<Item = (u64, &[u64])> {
    let mut rest = &words[HEADER..words[USED] as usize];
    std::iter::from_fn(move || {
        let (&[hash, len], after) = rest.split_first_chunk::<RECORD>()?;
        let (features, after) = after.split_at(len as usize);
        rest = after;
        Some((hash, features))
    })
}

#[cfg(test)]
mod tests {
    use super::super::FeatureSet;
    use super::*;
    use crate::features;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const SINGLE: TextOptions = TextOptions {
        shingle: 1,
        ..TextOptions::SET
    };

    fn collected(texts: &[String], share: f64, limit: usize) -> CommonFeatureCollector<Vec<u64>> {
        let mut sketcher = Sketcher::new(SINGLE);
        let mut collector = CommonFeatureCollector::new(Vec::new(), &SINGLE, share, limit);
        for text in texts {
            collector.add(&mut sketcher, text, &mut || ());
        }
        collector
    }

    fn finished(collector: &CommonFeatureCollector<Vec<u64>>) -> Vec<u8> {
        collector.finish(&mut || ())
    }

    /// Reference implementation: the common features of all documents, without a memory limit.
    fn defined(texts: &[String], share: f64) -> Vec<u8> {
        let (mut counts, mut documents) = (BTreeMap::<u64, u64>::new(), 0_u64);
        for text in texts {
            let found = features(text, &SINGLE, &mut || ());
            documents += u64::from(!found.is_empty());
            found
                .iter()
                .for_each(|feature| *counts.entry(feature.hash).or_default() += 1);
        }
        let common = |count: u64| count > 1 && count as f64 > share * documents as f64;
        let hashes = counts.into_iter().filter(|&(_, count)| common(count));
        FeatureSet::stored(&SINGLE, hashes.map(|(hash, _)| hash))
    }

    proptest! {
        #[test]
        fn counts_documents(
            texts in prop::collection::vec("[a-f !]{0,12}", 0..60),
            share in 0.01_f64..0.9,
        ) {
            prop_assert_eq!(finished(&collected(&texts, share, 1 << 20)), defined(&texts, share));
        }

        /// The result is the same for each order of the documents and each distribution of the
        /// documents among collectors. The memory of a collector stays near its limit.
        #[test]
        fn a_sample_does_not_depend_on_the_order(
            texts in prop::collection::vec("([a-f]{1,2} ){1,12}", 0..120),
            limit in 40_usize..600,
            cut in any::<prop::sample::Index>(),
            seed in any::<u64>(),
        ) {
            let one = collected(&texts, 0.1, limit);
            prop_assert!(one.store.len() <= limit + RECORD + 13, "{}", one.store.len());
            let mut shuffled = texts.clone();
            shuffled.sort_by_key(|text| feature_hash(text.as_bytes()) ^ seed);
            prop_assert_eq!(finished(&collected(&shuffled, 0.1, limit)), finished(&one));
            let (a, b) = shuffled.split_at(cut.index(texts.len() + 1));
            let mut merged = collected(a, 0.1, limit);
            merged.merge(&collected(b, 0.1, limit).store);
            prop_assert_eq!(finished(&merged), finished(&one));
        }
    }

    #[test]
    fn a_sample_finds_what_is_common() {
        let text = |n: u64| {
            format!(
                "{}frame {n} {}",
                if n.is_multiple_of(4) { "rare " } else { "" },
                n + 1
            )
        };
        let texts: Vec<String> = (0..20_000).map(text).collect();
        let collector = collected(&texts, 0.15, 10_000);
        assert!(
            collector.store[HALVINGS] >= 3,
            "{}",
            collector.store[HALVINGS]
        );
        let sampled = collector.sampled().unwrap();
        assert_eq!(sampled.one_of, 1 << collector.store[HALVINGS]);
        let stands_for = sampled.documents * sampled.one_of;
        assert!((10_000..40_000).contains(&stands_for), "{sampled:?}");
        assert_eq!(finished(&collector), defined(&texts, 0.15));
    }

    /// A document whose features alone exceed the memory limit does not displace the other
    /// documents.
    #[test]
    fn a_long_document_is_one_of_many() {
        let long: String = (0..5000).map(|n| format!("w{n} ")).collect();
        let mut texts: Vec<String> = (0..9).map(|n| format!("dear {n}")).collect();
        texts.push(long);
        let collector = collected(&texts, 0.5, 1000);
        assert_eq!(collector.sampled(), None);
        assert_eq!(finished(&collector), defined(&texts, 0.5));
    }
}
