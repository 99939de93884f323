//! Sinks that receive the features of a text, drop those in a set of common features, and use only
//! the remaining rare features.

use std::ops::Range;

use super::FeatureSet;
use crate::feature_sink::FeatureSink;
use crate::hash::feature_hash;
use crate::minhash_fingerprint::FingerprintBuilder;

/// Sink that drops the features in `set`, and forwards all other features of a text to `sink`.
pub(crate) struct RareFeatures<'a, S> {
    /// Common features, which are dropped.
    pub set: &'a FeatureSet,
    /// Sink that receives the features that are not in `set`.
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

/// Sink that drops the features in `set`, and adds all other features of a text to the MinHash
/// fingerprint that `minima` builds.
pub(crate) struct RareMinima<'a, const W: usize> {
    /// Common features, which are dropped.
    pub set: &'a FeatureSet,
    /// Builder of the fingerprint. It receives the hashes of the features that are not in `set`.
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
    /// Adds the hashes that are not in the set to the fingerprint. Overwrites the slice `hashes`.
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
