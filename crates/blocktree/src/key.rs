//! Row addresses, keys, and the total order of the tree.

/// Words of a key over signatures, without a scope: a band's hash and the signature's sketch.
pub const BAND_KEY_WORDS: usize = 2;
/// Words of a key over sets, without a scope: an element, or a sum of elements.
pub const SET_KEY_WORDS: usize = 1;

/// Key of `N` 64-bit words: a fingerprint, permuted on pages and unpermuted elsewhere, or a band's
/// hash and sketch, behind the scope's word if there is one. The first bit is the most significant
/// bit of word 0, so that the order of arrays is the order of bit strings.
pub type Key<const N: usize> = [u64; N];

/// A block number: the position of a page in the index, counted from 0.
pub type Block = u32;

/// The address of a row in its table: page and line on the page.
///
/// ```
/// use neardup_blocktree::key::Tid;
///
/// let tid = Tid::new(7, 2);
/// assert_eq!(Tid::from_packed(tid.packed()), tid);
/// assert!(tid.packed() < Tid::new(8, 1).packed());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tid {
    /// Number of the heap page that holds the row.
    pub block: u32,
    /// The line on that page, from 1.
    pub offset: u16,
}

impl Tid {
    /// Below every address of a row (lines count from 1).
    pub const MIN: Tid = Tid::new(0, 0);
    /// Above every address of a row.
    pub const MAX: Tid = Tid::new(u32::MAX, u16::MAX);
    /// Bytes on a page.
    pub const SIZE: usize = 6;

    /// The address of a line on a page.
    pub const fn new(block: u32, offset: u16) -> Self {
        Tid { block, offset }
    }

    /// The form on a page: block, then line, in the machine's byte order like all of the page.
    pub fn to_bytes(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..4].copy_from_slice(&self.block.to_ne_bytes());
        bytes[4..].copy_from_slice(&self.offset.to_ne_bytes());
        bytes
    }

    /// Reads what [`Tid::to_bytes`] wrote.
    pub fn from_bytes(bytes: [u8; Self::SIZE]) -> Tid {
        let [a, b, c, d, e, f] = bytes;
        Tid::new(u32::from_ne_bytes([a, b, c, d]), u16::from_ne_bytes([e, f]))
    }

    /// The address as one number of 48 bits with the same order.
    pub fn packed(self) -> u64 {
        (u64::from(self.block) << 16) | u64::from(self.offset)
    }

    /// Reads what [`Tid::packed`] gave.
    pub fn from_packed(packed: u64) -> Tid {
        Tid::new((packed >> 16) as u32, packed as u16)
    }
}

/// Sort key of an entry: its permutation, then its key, then its row. No two entries have the same,
/// so that even a million equal fingerprints are split and found like any others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryKey<const N: usize> {
    /// The permutation that the key was made for.
    pub permutation: u16,
    /// The permuted fingerprint.
    pub key: Key<N>,
    /// The row.
    pub tid: Tid,
}

impl<const N: usize> EntryKey<N> {
    /// The key of a row's entry in a permutation.
    #[inline]
    pub fn new(permutation: u16, key: Key<N>, tid: Tid) -> Self {
        EntryKey {
            permutation,
            key,
            tid,
        }
    }

    /// Below every entry with this key.
    pub fn before_key(permutation: u16, key: Key<N>) -> Self {
        Self::new(permutation, key, Tid::MIN)
    }

    /// Above every entry with this key.
    pub fn after_key(permutation: u16, key: Key<N>) -> Self {
        Self::new(permutation, key, Tid::MAX)
    }

    /// Below every entry of the permutation.
    pub fn start_of(permutation: u16) -> Self {
        Self::before_key(permutation, [0; N])
    }

    /// A separator for two neighbouring entries: above `left`, not above `right`, and otherwise
    /// with as many zero bits at its end as can be, so that pages end where prefixes end.
    ///
    /// ```
    /// use neardup_blocktree::key::{EntryKey, Tid};
    ///
    /// let entry = |key| EntryKey::new(0, [key], Tid::new(7, 1));
    /// let separator = EntryKey::separator(&entry(0b1011), &entry(0b1101));
    /// assert_eq!((separator.key, separator.tid), ([0b1100], Tid::MIN));
    /// ```
    pub fn separator(left: &Self, right: &Self) -> Self {
        debug_assert!(left < right);
        if left.permutation != right.permutation {
            return Self::start_of(right.permutation);
        }
        for word in 0..N {
            let differing = left.key[word] ^ right.key[word];
            if differing != 0 {
                let kept = u64::MAX << (63 - differing.leading_zeros());
                let mut key = [0; N];
                key[..word].copy_from_slice(&right.key[..word]);
                key[word] = right.key[word] & kept;
                return Self::before_key(right.permutation, key);
            }
        }
        *right
    }
}

/// The bits in which two keys differ, but for the first `skipped` words, and their number.
#[inline]
pub(crate) fn difference<const N: usize>(a: &Key<N>, b: &Key<N>, skipped: usize) -> (Key<N>, u32) {
    let (mut difference, mut distance) = ([0; N], 0);
    for word in skipped..N {
        difference[word] = a[word] ^ b[word];
        distance += difference[word].count_ones();
    }
    (difference, distance)
}

/// A hash of 64 bits: the finaliser of splitmix64.
pub(crate) fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The number of bits in which two keys differ, but for the first `skipped` words.
///
/// ```
/// use neardup_blocktree::key::distance;
///
/// assert_eq!(distance(&[7, 0b1100], &[9, 0b1010], 1), 2);
/// ```
#[inline]
pub fn distance<const N: usize>(a: &Key<N>, b: &Key<N>, skipped: usize) -> u32 {
    difference(a, b, skipped).1
}

/// Reads the machine word at a byte offset.
#[inline]
pub(crate) fn word_at(bytes: &[u8], offset: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[offset..offset + 8]);
    u64::from_ne_bytes(word)
}

/// Reads a key at a byte offset.
#[inline]
pub(crate) fn key_at<const N: usize>(bytes: &[u8], offset: usize) -> Key<N> {
    let mut key = [0; N];
    for (word, slot) in key.iter_mut().enumerate() {
        *slot = word_at(bytes, offset + 8 * word);
    }
    key
}

/// Writes a key at a byte offset.
#[inline]
pub(crate) fn put_key<const N: usize>(bytes: &mut [u8], offset: usize, key: &Key<N>) {
    for (word, value) in key.iter().enumerate() {
        bytes[offset + 8 * word..offset + 8 * word + 8].copy_from_slice(&value.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_separator_separates(a: [u64; 2], b: [u64; 2], s: u16, t: u16, same: bool) {
            let key = if same { a } else { b };
            let left = EntryKey { permutation: 1, key: a, tid: Tid { block: 7, offset: s } };
            let right = EntryKey { permutation: 1, key, tid: Tid { block: 7, offset: t } };
            prop_assume!(left != right);
            let (left, right) = if left < right { (left, right) } else { (right, left) };
            let separator = EntryKey::separator(&left, &right);
            prop_assert!(left < separator && separator <= right);
        }

        #[test]
        fn packing_keeps_address_and_order(a: (u32, u16), b: (u32, u16)) {
            let (a, b) = (Tid { block: a.0, offset: a.1 }, Tid { block: b.0, offset: b.1 });
            prop_assert_eq!(Tid::from_packed(a.packed()), a);
            prop_assert_eq!(Tid::from_bytes(a.to_bytes()), a);
            prop_assert_eq!(a.cmp(&b), a.packed().cmp(&b.packed()));
        }
    }
}
