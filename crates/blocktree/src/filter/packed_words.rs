//! Input of the kernels for the keys of a leaf: the compared words of the packed keys on the page.
//! The compared words of a key are the words behind its scope, if it has one. Packed keys lack the
//! bytes with which all keys of the leaf begin.

use crate::leaf::LeafKeys;

/// Compared words of the packed keys of a leaf, or of a range of its keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct PackedWords<'a> {
    /// Bytes of the page from the first compared word of the first key to the page's end.
    pub bytes: &'a [u8],
    /// Number of keys.
    pub count: usize,
    /// Number of bytes from the start of one key to the start of the next.
    pub stride: usize,
    /// Number of most significant bytes of the first compared word that the page omits: 0 to 7.
    pub cut: usize,
}

impl<'a> PackedWords<'a> {
    /// Selects the compared words of a leaf's keys: all words behind the first `skipped`, except
    /// words that the leaf omits entirely.
    pub fn new<const N: usize>(keys: &LeafKeys<'a, N>, skipped: usize) -> Self {
        let left_out = keys.shape.left_out();
        PackedWords {
            bytes: &keys.bytes_and_more()[(8 * skipped).saturating_sub(left_out)..],
            count: keys.len(),
            stride: keys.shape.key_size(),
            cut: if left_out < 8 * skipped {
                0
            } else {
                left_out % 8
            },
        }
    }

    /// Returns a mask of the bits of the first compared word that the page stores.
    pub fn mask(&self) -> u64 {
        u64::MAX >> (8 * self.cut)
    }

    /// Returns whether the bytes of a scope, which are not compared, separate the compared words of
    /// one key from those of the next key. `words` is the number of compared words of a key.
    pub fn is_spread(&self, words: usize) -> bool {
        self.stride > 8 * words
    }
}
