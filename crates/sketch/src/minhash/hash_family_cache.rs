//! Cache of the most recently used hash families of MinHash signatures.

use std::rc::Rc;

use super::{HashFamily, Scheme, SeedOutOfRange};

/// Cache of the most recently used hash families, at most [`HashFamilyCache::CAPACITY`]. Creating
/// the hash functions takes longer than the signature of a short text, and an SQL statement uses
/// the same few families for all rows.
#[derive(Debug, Default)]
pub struct HashFamilyCache {
    /// Hash families in the cache, the most recently used first.
    families: Vec<Rc<HashFamily>>,
}

impl HashFamilyCache {
    /// Maximum number of families in the cache. Each takes up to 16 kB.
    pub const CAPACITY: usize = 8;

    /// Creates an empty cache of hash families.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            families: Vec::new(),
        }
    }

    /// Returns the hash family of this scheme, signature length and seed. Creates it if the cache
    /// does not have it; a full cache drops the least recently used family.
    ///
    /// # Errors
    ///
    /// If the scheme does not support the seed (see [`HashFamily::new`]).
    pub fn get(
        &mut self,
        scheme: Scheme,
        hashes: usize,
        seed: u64,
    ) -> Result<Rc<HashFamily>, SeedOutOfRange> {
        let wanted = (scheme, hashes, seed);
        let key = |known: &HashFamily| (known.scheme(), known.hashes(), known.seed());
        match self.families.iter().position(|known| key(known) == wanted) {
            Some(0) => {}
            Some(at) => self.families[..=at].rotate_right(1),
            None => {
                let family = Rc::new(HashFamily::new(scheme, hashes, seed)?);
                self.families.truncate(Self::CAPACITY - 1);
                self.families.insert(0, family);
            }
        }
        Ok(Rc::clone(&self.families[0]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_kept() {
        let mut cache = HashFamilyCache::new();
        let mut get = |seed| cache.get(Scheme::Datasketch1, 64, seed).unwrap();
        let first: Vec<_> = (0..8).map(&mut get).collect();
        for _ in 0..3 {
            for (seed, before) in (0..).zip(&first) {
                assert!(Rc::ptr_eq(&get(seed), before), "{seed}");
            }
        }
        // Another family replaces the least recently used one.
        get(8);
        assert!(Rc::ptr_eq(&get(7), &first[7]));
        assert!(!Rc::ptr_eq(&get(0), &first[0]));
        for (scheme, hashes, seed) in [
            (Scheme::Datasketch2, 64, 8),
            (Scheme::Datasketch1, 65, 8),
            (Scheme::Neardup1, 64, u64::MAX),
        ] {
            let found = cache.get(scheme, hashes, seed).unwrap();
            assert_eq!(
                (found.scheme(), found.hashes(), found.seed()),
                (scheme, hashes, seed)
            );
        }
        assert!(cache.get(Scheme::Datasketch1, 64, u64::MAX).is_err());
        assert_eq!(cache.families.len(), HashFamilyCache::CAPACITY);
    }
}
