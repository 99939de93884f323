//! Hash functions that were used lately.

use std::rc::Rc;

use super::{Functions, Scheme, SeedOutOfRange};

/// The hash functions used last, up to [`KeptFunctions::MOST`] of them: drawing them takes longer
/// than the signature of a short text, and a statement asks for the same few again and again.
#[derive(Debug, Default)]
pub struct KeptFunctions {
    /// The latest first.
    kept: Vec<Rc<Functions>>,
}

impl KeptFunctions {
    /// Most functions that are kept; each takes up to 16 kB.
    pub const MOST: usize = 8;

    /// None yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { kept: Vec::new() }
    }

    /// The functions of a scheme, length and seed.
    ///
    /// # Errors
    ///
    /// If the scheme does not have that seed ([`Functions::new`]).
    pub fn get(
        &mut self,
        scheme: Scheme,
        hashes: usize,
        seed: u64,
    ) -> Result<Rc<Functions>, SeedOutOfRange> {
        let wanted = (scheme, hashes, seed);
        let key = |known: &Functions| (known.scheme(), known.hashes(), known.seed());
        match self.kept.iter().position(|known| key(known) == wanted) {
            Some(0) => {}
            Some(at) => self.kept[..=at].rotate_right(1),
            None => {
                let functions = Rc::new(Functions::new(scheme, hashes, seed)?);
                self.kept.truncate(Self::MOST - 1);
                self.kept.insert(0, functions);
            }
        }
        Ok(Rc::clone(&self.kept[0]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_kept() {
        let mut kept = KeptFunctions::new();
        let mut get = |seed| kept.get(Scheme::Datasketch1, 64, seed).unwrap();
        let first: Vec<_> = (0..8).map(&mut get).collect();
        for _ in 0..3 {
            for (seed, before) in (0..).zip(&first) {
                assert!(Rc::ptr_eq(&get(seed), before), "{seed}");
            }
        }
        // One more takes the place of the one used longest ago.
        get(8);
        assert!(Rc::ptr_eq(&get(7), &first[7]));
        assert!(!Rc::ptr_eq(&get(0), &first[0]));
        for (scheme, hashes, seed) in [
            (Scheme::Datasketch2, 64, 8),
            (Scheme::Datasketch1, 65, 8),
            (Scheme::Neardup1, 64, u64::MAX),
        ] {
            let found = kept.get(scheme, hashes, seed).unwrap();
            assert_eq!(
                (found.scheme(), found.hashes(), found.seed()),
                (scheme, hashes, seed)
            );
        }
        assert!(kept.get(Scheme::Datasketch1, 64, u64::MAX).is_err());
        assert_eq!(kept.kept.len(), KeptFunctions::MOST);
    }
}
