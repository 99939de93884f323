//! Row addresses (TIDs), keys, entry keys, and the total order of entries in the tree. An index is
//! on fingerprints (bit strings), on MinHash signatures or on sets of 64-bit numbers. It has
//! several permutations: ordered copies of all its keys. If the index has a scope (columns that
//! must be equal in two near-duplicates), a hash of the scope is the first word of each key.

/// Number of 64-bit words of a key in an index on signatures: the hash of a band (some positions of
/// the signature) and a sketch of the whole signature. The scope's word is not counted.
pub const BAND_KEY_WORDS: usize = 2;
/// Number of 64-bit words of a key in an index on sets: an element of the set, or a sum of the
/// hashes of all its elements. The scope's word is not counted.
pub const SET_KEY_WORDS: usize = 1;

/// Key of `N` 64-bit words. It is a fingerprint, a band's hash with a signature's sketch, an
/// element of a set, or the sum of the hashes of a set's elements. In the keys on pages, the bits
/// of a fingerprint are permuted: each permutation has them in another order. If the index has a
/// scope, the scope's hash is the first word. The first bit of a key is the most significant bit of
/// word 0, so that comparing the arrays compares the bit strings.
pub type Key<const N: usize> = [u64; N];

/// Block number: the position of a page in the index, in pages from 0.
pub type Block = u32;

/// Address of a row in its table (`ctid` in SQL): heap page and line pointer.
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
    /// Block number of the heap page that holds the row.
    pub block: u32,
    /// Number of the line pointer on that page, from 1.
    pub offset: u16,
}

impl Tid {
    /// Lower than the address of every row, because line pointers are numbered from 1.
    pub const MIN: Tid = Tid::new(0, 0);
    /// Greater than the address of every row.
    pub const MAX: Tid = Tid::new(u32::MAX, u16::MAX);
    /// Size of a row address on a page, in bytes.
    pub const SIZE: usize = 6;

    /// Makes the address of a line pointer, numbered from 1, on a heap page.
    pub const fn new(block: u32, offset: u16) -> Self {
        Tid { block, offset }
    }

    /// Returns the bytes by which a page stores the address: block, then line pointer, in native
    /// byte order.
    pub fn to_bytes(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..4].copy_from_slice(&self.block.to_ne_bytes());
        bytes[4..].copy_from_slice(&self.offset.to_ne_bytes());
        bytes
    }

    /// Reads an address from the bytes that [`Tid::to_bytes`] returned.
    pub fn from_bytes(bytes: [u8; Self::SIZE]) -> Tid {
        let [a, b, c, d, e, f] = bytes;
        Tid::new(u32::from_ne_bytes([a, b, c, d]), u16::from_ne_bytes([e, f]))
    }

    /// Returns the address as a 48-bit number. Numbers have the same order as addresses.
    pub fn packed(self) -> u64 {
        (u64::from(self.block) << 16) | u64::from(self.offset)
    }

    /// Returns the address for a number that [`Tid::packed`] returned.
    pub fn from_packed(packed: u64) -> Tid {
        Tid::new((packed >> 16) as u32, packed as u16)
    }
}

/// Position of an entry in the total order of the tree: by permutation, then key, then row address.
/// No two entries have the same position. So even a million entries with equal keys can be divided
/// among pages, and each of them can be located.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryKey<const N: usize> {
    /// Number of the permutation (ordered copy of all keys in the index) that holds the entry.
    pub permutation: u16,
    /// Key of the entry in this permutation.
    pub key: Key<N>,
    /// Address of the entry's row.
    pub tid: Tid,
}

impl<const N: usize> EntryKey<N> {
    /// Makes the entry key of a row in a permutation. `key` is the row's key in this permutation,
    /// already permuted.
    #[inline]
    pub fn new(permutation: u16, key: Key<N>, tid: Tid) -> Self {
        EntryKey {
            permutation,
            key,
            tid,
        }
    }

    /// Returns a position below every entry with this key in the permutation.
    pub fn before_key(permutation: u16, key: Key<N>) -> Self {
        Self::new(permutation, key, Tid::MIN)
    }

    /// Returns a position above every entry with this key in the permutation.
    pub fn after_key(permutation: u16, key: Key<N>) -> Self {
        Self::new(permutation, key, Tid::MAX)
    }

    /// Returns a position below every entry of the permutation.
    pub fn start_of(permutation: u16) -> Self {
        Self::before_key(permutation, [0; N])
    }

    /// Returns a separator for two neighbouring entries: an entry key above `left` and not above
    /// `right`. It has as many trailing zero bits as possible. So the keys with a given prefix
    /// (leading bits) are less often divided between two pages, and a search for the prefix reads
    /// fewer pages.
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

/// Returns the XOR of two keys, and the number of bits in which they differ (Hamming distance).
/// Ignores the first `skipped` words, which are zero in the XOR.
#[inline]
pub(crate) fn difference<const N: usize>(a: &Key<N>, b: &Key<N>, skipped: usize) -> (Key<N>, u32) {
    let (mut difference, mut distance) = ([0; N], 0);
    for word in skipped..N {
        difference[word] = a[word] ^ b[word];
        distance += difference[word].count_ones();
    }
    (difference, distance)
}

/// Returns a 64-bit hash of a word: the finalizer of splitmix64.
pub(crate) fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns the Hamming distance of two keys, ignoring their first `skipped` words.
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

/// Reads a 64-bit word in native byte order at a byte offset.
#[inline]
pub(crate) fn word_at(bytes: &[u8], offset: usize) -> u64 {
    let word = bytes[offset..].first_chunk();
    u64::from_ne_bytes(*word.expect("a word within the bytes"))
}

/// Reads a whole key at a byte offset.
#[inline]
pub(crate) fn key_at<const N: usize>(bytes: &[u8], offset: usize) -> Key<N> {
    let mut key = [0; N];
    for (word, slot) in key.iter_mut().enumerate() {
        *slot = word_at(bytes, offset + 8 * word);
    }
    key
}

/// Writes a whole key at a byte offset.
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
