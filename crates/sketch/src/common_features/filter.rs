//! Feature sinks that leave out the features in a set of common features, and pass on all others.

use std::ops::Range;

use super::FeatureSet;
use crate::feature_sink::FeatureSink;
use crate::hash::feature_hash;
use crate::minhash_fingerprint::FingerprintBuilder;

/// Sink that receives the features of a text and passes the features that are not in `set` on to
/// another sink.
pub(crate) struct RareFeatures<'a, S> {
    /// Common features, which this sink leaves out.
    pub set: &'a FeatureSet,
    /// Sink for the other features.
    pub sink: &'a mut S,
}

impl<S: FeatureSink> FeatureSink for RareFeatures<'_, S> {
    fn add_all(&mut self, bytes: &[u8], features: impl Iterator<Item = Range<usize>>) {
        let rare =
            |feature: &Range<usize>| !self.set.contains(feature_hash(&bytes[feature.clone()]));
        self.sink.add_all(bytes, features.filter(rare));
    }

    fn bytes_dropped(&mut self, len: usize) {
        self.sink.bytes_dropped(len);
    }
}

/// Sink that receives the features of a text and adds the features that are not in `set` to a
/// MinHash fingerprint.
pub(crate) struct RareMinima<'a, const W: usize> {
    /// Common features, which this sink leaves out.
    pub set: &'a FeatureSet,
    /// Builder of the fingerprint of the other features.
    pub minima: &'a mut FingerprintBuilder<W>,
}

impl<const W: usize> FeatureSink for RareMinima<'_, W> {
    fn add_all(&mut self, bytes: &[u8], features: impl Iterator<Item = Range<usize>>) {
        let mut batch = [0; 64];
        let mut len = 0;
        for feature in features {
            batch[len] = feature_hash(&bytes[feature]);
            len += 1;
            if len == batch.len() {
                self.add(&mut batch);
                len = 0;
            }
        }
        self.add(&mut batch[..len]);
    }
}

impl<const W: usize> RareMinima<'_, W> {
    /// Adds the hashes in `hashes` that are not in the set to the fingerprint. Uses `hashes` as
    /// working memory and overwrites it.
    fn add(&mut self, hashes: &mut [u64]) {
        let mut kept = 0;
        for at in 0..hashes.len() {
            let hash = hashes[at];
            // Each hash is written, but counted only if it is rare: a branch would be hard to
            // predict.
            hashes[kept] = hash;
            kept += usize::from(!self.set.contains(hash));
        }
        self.minima.add(&hashes[..kept]);
    }
}
