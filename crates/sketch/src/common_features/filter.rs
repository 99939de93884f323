//! Filters that pass on the features that a set does not contain.

use std::ops::Range;

use super::FeatureSet;
use crate::feature_sink::FeatureSink;
use crate::hash::feature_hash;
use crate::minhash_fingerprint::FingerprintBuilder;

/// Passes on features that a set does not contain.
pub(crate) struct RareFeatures<'a, S> {
    pub set: &'a FeatureSet,
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

/// Passes on the hashes that a set does not contain, to minima.
pub(crate) struct RareMinima<'a, const W: usize> {
    pub set: &'a FeatureSet,
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
    fn add(&mut self, hashes: &mut [u64]) {
        let mut kept = 0;
        for at in 0..hashes.len() {
            let hash = hashes[at];
            // Written unconditionally, because it is hard to predict which features are rare.
            hashes[kept] = hash;
            kept += usize::from(!self.set.contains(hash));
        }
        self.minima.add(&hashes[..kept]);
    }
}
