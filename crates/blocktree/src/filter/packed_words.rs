//! Keys of a leaf without the bytes that all begin with, as the kernels take them.

use crate::leaf::LeafKeys;

/// The compared words of keys that stand one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct PackedWords<'a> {
    /// The page from the compared words of the first key on.
    pub bytes: &'a [u8],
    /// Number of keys.
    pub count: usize,
    /// Bytes from one key to the next.
    pub stride: usize,
    /// Bytes that the first compared word of each key lacks in front: 0 to 7.
    pub cut: usize,
}

impl<'a> PackedWords<'a> {
    /// The words of a leaf's keys but for the first `skipped`, of which those that the leaf leaves
    /// out are dropped.
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

    /// Bits of the first compared word that are there.
    pub fn mask(&self) -> u64 {
        u64::MAX >> (8 * self.cut)
    }

    /// Returns whether other words stand between those of one key and the next, `words` of each:
    /// those of scopes.
    pub fn is_spread(&self, words: usize) -> bool {
        self.stride > 8 * words
    }
}
