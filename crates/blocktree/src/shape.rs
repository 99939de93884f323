//! Shape of a leaf: how many bytes each of its keys omits, and whether its row addresses have 4
//! bytes (narrow) or 6. A key omits its first bytes if they are equal in all keys of the leaf. The
//! leaf's low key has them.
//!
//! All keys of a leaf are between its low key and its high key, so they have a common prefix. The
//! leaf omits the whole bytes of this prefix from its keys, because the low key has them. Row
//! addresses take 4 bytes if all of them fit, otherwise 6.
//!
//! Only whole bytes are omitted. So the kernels of [`crate::filter`] can assemble words by one
//! shuffle, and an append changes no byte of another entry. The shape of a leaf changes only if the
//! leaf is split, merged, or receives a row address that does not fit.

use crate::key::{EntryKey, Key, Tid, key_at, put_key, word_at};
use crate::page::{self, Page};

/// Returns the maximum number of bytes that a leaf omits from a key of `words` words. At least half
/// a word of each key stays on the page, which limits the number of entries of a leaf.
pub(crate) const fn most_left_out(words: usize) -> usize {
    if words == 1 { 4 } else { 12 }
}

/// Number of bits of a 4-byte row address that hold the number of the line pointer. A heap page of
/// 8 kB has at most 291 line pointers. The other 23 bits hold the block.
const LINE_BITS: u32 = 9;

/// Returns whether a row address fits into 4 bytes, as on the first 64 GB of a table.
pub(crate) const fn is_narrow(tid: Tid) -> bool {
    tid.block < 1 << (32 - LINE_BITS) && tid.offset < 1 << LINE_BITS
}

/// Encodes a row address in 4 bytes. It must fit ([`is_narrow`]).
pub(crate) const fn narrow(tid: Tid) -> u32 {
    tid.block << LINE_BITS | tid.offset as u32
}

/// Decodes a row address that [`narrow`] has encoded.
const fn from_narrow(narrow: u32) -> Tid {
    Tid::new(
        narrow >> LINE_BITS,
        (narrow & ((1 << LINE_BITS) - 1)) as u16,
    )
}

/// Shape of a leaf with keys of `N` words: number of omitted key bytes and size of row addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape<const N: usize> {
    /// Number of bytes omitted at the front of each key.
    left_out: usize,
    /// True if row addresses take 4 bytes, false if they take 6.
    narrow: bool,
}

impl<const N: usize> Shape<N> {
    /// Maximum number of bytes omitted from each key.
    pub const MOST_LEFT_OUT: usize = most_left_out(N);
    /// Shape in which entries take the fewest bytes.
    pub(crate) const LEAST: Self = Shape {
        left_out: Self::MOST_LEFT_OUT,
        narrow: true,
    };

    /// Returns the shape of a leaf with the low key `low` and the high key `high`. It omits the
    /// leading bytes that are equal in all keys of this range, up to [`Shape::MOST_LEFT_OUT`]. If
    /// `high` is `None` or belongs to another permutation, the range ends with the permutation.
    /// `narrow` is true if all row addresses of the leaf fit into 4 bytes.
    pub fn between(low: &EntryKey<N>, high: Option<&EntryKey<N>>, narrow: bool) -> Self {
        let last = match high {
            Some(high) if high.permutation == low.permutation => match high.tid == Tid::MIN {
                true => predecessor(&high.key),
                false => high.key,
            },
            _ => [u64::MAX; N],
        };
        Self::LEAST.extended_for(low, &last, narrow)
    }

    /// Returns the shape to which a leaf of this shape must change, so that it can store an entry
    /// with the key `key`. `low` is the leaf's low key. `narrow` is true if the row address of the
    /// entry fits into 4 bytes.
    #[inline]
    pub(crate) fn extended_for(self, low: &EntryKey<N>, key: &Key<N>, narrow: bool) -> Self {
        Shape {
            left_out: self.left_out.min(common_bytes(&low.key, key)),
            narrow: self.narrow && narrow,
        }
    }

    /// Returns a shape in which all entries of both shapes can be stored. It omits the lower of the
    /// two numbers of key bytes. It has row addresses of 6 bytes, unless both shapes have addresses
    /// of 4 bytes.
    pub(crate) fn widest_of(self, other: Self) -> Self {
        Shape {
            left_out: self.left_out.min(other.left_out),
            narrow: self.narrow && other.narrow,
        }
    }

    /// Returns the same shape with row addresses of 6 bytes.
    pub(crate) fn widened(self) -> Self {
        Shape {
            narrow: false,
            ..self
        }
    }

    /// Reads the shape of a leaf from its page. `None` if the page's bytes do not encode a shape.
    #[inline]
    pub(crate) fn from_page(page: &Page) -> Option<Self> {
        Self::from_bytes(page::shape_bytes(page))
    }

    /// Decodes the shape from the two bytes on a page. `None` if the bytes do not encode a shape.
    #[inline]
    pub(crate) fn from_bytes([left_out, narrow]: [u8; 2]) -> Option<Self> {
        let left_out = usize::from(left_out);
        (left_out <= Self::MOST_LEFT_OUT && narrow <= 1).then_some(Shape {
            left_out,
            narrow: narrow == 1,
        })
    }

    /// Encodes the shape in two bytes for the page.
    pub(crate) fn to_bytes(self) -> [u8; 2] {
        [self.left_out as u8, u8::from(self.narrow)]
    }

    /// Returns the number of bytes omitted at the front of each key.
    #[inline]
    pub fn left_out(self) -> usize {
        self.left_out
    }

    /// Returns whether row addresses take 4 bytes instead of 6.
    #[inline]
    pub fn is_narrow(self) -> bool {
        self.narrow
    }

    /// Returns whether a row address fits into an entry of this shape.
    #[inline]
    pub(crate) fn fits(self, tid: Tid) -> bool {
        !self.narrow || is_narrow(tid)
    }

    /// Returns the size of a stored key, in bytes.
    #[inline]
    pub fn key_size(self) -> usize {
        8 * N - self.left_out
    }

    /// Returns the size of a stored row address, in bytes.
    #[inline]
    pub fn row_size(self) -> usize {
        if self.narrow { 4 } else { Tid::SIZE }
    }

    /// Returns the maximum number of entries of a leaf with this shape.
    #[inline]
    pub fn capacity(self) -> usize {
        page::capacity(N, self.key_size() + self.row_size())
    }

    /// Returns the index of the first key word that is not omitted completely, and the number of
    /// omitted bytes of this word.
    #[inline]
    fn cut(self) -> (usize, usize) {
        match N {
            1 => (0, self.left_out),
            _ => (self.left_out / 8, self.left_out % 8),
        }
    }

    /// Reads one word of the key stored at an offset. `word` is the index of the word in the whole
    /// key. Omitted bits of the word have arbitrary values.
    #[inline(always)]
    pub(crate) fn word_at(self, page: &Page, offset: usize, word: usize) -> u64 {
        // The read may start before the stored key or end behind it. It stays on the page, because
        // the header and the fields at the end are longer than the excess.
        match (8 * word).checked_sub(self.left_out) {
            Some(before) => word_at(page, offset + before),
            None if cfg!(target_endian = "big") => word_at(page, offset - self.cut().1),
            None => word_at(page, offset),
        }
    }

    /// Reads the whole key stored at an offset. `low` is the leaf's low key, which has the omitted
    /// bytes.
    #[inline(always)]
    pub(crate) fn key_at(self, page: &Page, offset: usize, low: &Key<N>) -> Key<N> {
        if self.left_out == 0 {
            return key_at(page, offset);
        }
        let (word, cut) = self.cut();
        let mask = u64::MAX >> (8 * cut);
        let mut key = *low;
        key[word] = self.word_at(page, offset, word) & mask | low[word] & !mask;
        for (i, rest) in key[word + 1..].iter_mut().enumerate() {
            *rest = word_at(page, offset + 8 - cut + 8 * i);
        }
        key
    }

    /// Returns the bytes of a key as a leaf stores them. They are the first [`Shape::key_size`]
    /// bytes of the result. The other bytes of the result have no meaning. The bytes that the leaf
    /// omits must equal those of its low key.
    #[inline]
    pub(crate) fn key_bytes(self, key: &Key<N>) -> [[u8; 8]; N] {
        let mut bytes = [[0; 8]; N];
        let (word, cut) = self.cut();
        // Write whole words, because the compiler knows their length. Each word overwrites the
        // excess bytes of the previous word.
        put_word(bytes.as_flattened_mut(), 0, first_bytes(key[word], cut));
        for (i, rest) in key[word + 1..].iter().enumerate() {
            put_word(bytes.as_flattened_mut(), 8 * (i + 1) - cut, *rest);
        }
        bytes
    }

    /// Writes a key to an offset of a leaf. The omitted bytes of the key must equal those of the
    /// low key.
    #[inline]
    pub(crate) fn put_key(self, page: &mut Page, offset: usize, key: &Key<N>) {
        if self.left_out == 0 {
            return put_key(page, offset, key);
        }
        let (word, cut) = self.cut();
        let first = first_bytes(key[word], cut);
        let rest = &key[word + 1..];
        if rest.is_empty() {
            let bytes = first.to_ne_bytes();
            return match cut {
                1 => page[offset..offset + 7].copy_from_slice(&bytes[..7]),
                2 => page[offset..offset + 6].copy_from_slice(&bytes[..6]),
                _ => page[offset..offset + 8 - cut].copy_from_slice(&bytes[..8 - cut]),
            };
        }
        put_word(page, offset, first);
        for (i, rest) in rest.iter().enumerate() {
            put_word(page, offset + 8 * (i + 1) - cut, *rest);
        }
    }

    /// Reads the row address stored at an offset of a leaf.
    #[inline(always)]
    pub(crate) fn tid_at(self, page: &Page, offset: usize) -> Tid {
        match self.narrow {
            true => from_narrow(page::u32_at(page, offset)),
            false => page::tid_at(page, offset),
        }
    }

    /// Writes a row address, which must fit into the shape, to an offset of a leaf.
    #[inline]
    pub(crate) fn put_tid(self, page: &mut Page, offset: usize, tid: Tid) {
        debug_assert!(self.fits(tid));
        match self.narrow {
            true => page::put_u32(page, offset, narrow(tid)),
            false => page::put_tid(page, offset, tid),
        }
    }

    /// Returns the bytes of a row address for a leaf: [`Shape::row_size`] bytes, then zeros. The
    /// row address must fit into the shape.
    #[inline]
    pub(crate) fn tid_bytes(self, tid: Tid) -> [u8; Tid::SIZE] {
        debug_assert!(self.fits(tid));
        if !self.narrow {
            return tid.to_bytes();
        }
        let [a, b, c, d] = narrow(tid).to_ne_bytes();
        [a, b, c, d, 0, 0]
    }
}

/// Returns `word` without its `cut` most significant bytes. The remaining bytes are the first bytes
/// of the result in memory, for writing them to a page.
#[inline]
fn first_bytes(word: u64, cut: usize) -> u64 {
    match cfg!(target_endian = "big") {
        true => word << (8 * cut),
        false => word,
    }
}

/// Writes a word in native byte order to an offset.
#[inline]
fn put_word(bytes: &mut [u8], offset: usize, word: u64) {
    bytes[offset..offset + 8].copy_from_slice(&word.to_ne_bytes());
}

/// Returns the length in bytes of the common prefix of two keys.
#[inline]
pub(crate) fn common_bytes<const N: usize>(a: &Key<N>, b: &Key<N>) -> usize {
    for word in 0..N {
        let differing = a[word] ^ b[word];
        if differing != 0 {
            return 8 * word + differing.leading_zeros() as usize / 8;
        }
    }
    8 * N
}

/// Returns the greatest key below `key`: the integer `key - 1`. Returns the highest key if `key` is
/// the lowest.
fn predecessor<const N: usize>(key: &Key<N>) -> Key<N> {
    let mut before = *key;
    for word in before.iter_mut().rev() {
        let (value, borrowed) = word.overflowing_sub(1);
        *word = value;
        if !borrowed {
            break;
        }
    }
    before
}

/// Returns a separator for two neighbouring entries, like [`EntryKey::separator`]. In addition, the
/// first `bytes` bytes are equal in all keys from `left` (inclusive) to the separator (exclusive).
/// So a leaf with this range can omit these bytes.
pub(crate) fn separator_within<const N: usize>(
    left: &EntryKey<N>,
    right: &EntryKey<N>,
    bytes: usize,
) -> EntryKey<N> {
    let separator = EntryKey::separator(left, right);
    if Shape::between(left, Some(&separator), true).left_out >= bytes || bytes == 0 {
        return separator;
    }
    // Increment the first `bytes` bytes of `left`. The result is not above `right`, which differs
    // from `left` in these bytes.
    let (last, cut) = ((bytes - 1) / 8, (bytes - 1) % 8);
    let mut key = left.key;
    key[last] &= u64::MAX << (56 - 8 * cut);
    key[last + 1..].fill(0);
    let mut carry = 1u64 << (56 - 8 * cut);
    for word in key[..=last].iter_mut().rev() {
        let (value, overflows) = word.overflowing_add(carry);
        *word = value;
        if !overflows {
            break;
        }
        carry = 1;
    }
    EntryKey::before_key(right.permutation, key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::PAGE_SIZE;
    use proptest::prelude::*;

    fn entry<const N: usize>(key: Key<N>, row: u16) -> EntryKey<N> {
        EntryKey::new(3, key, Tid::new(1, row))
    }

    /// Generates two keys with a common prefix of a random number of bits.
    fn keys_alike<const N: usize>() -> impl Strategy<Value = (Key<N>, Key<N>)> {
        let any = (any::<[u64; N]>(), any::<[u64; N]>(), 0..64 * N as u32 + 1);
        any.prop_map(|(a, mut b, alike)| {
            for word in 0..N {
                let of_word = alike.saturating_sub(64 * word as u32).min(64);
                let kept = u64::MAX.checked_shr(of_word).unwrap_or(0);
                b[word] = a[word] & !kept | b[word] & kept;
            }
            (a, b)
        })
    }

    fn read_back<const N: usize>(a: Key<N>, b: Key<N>, c: Key<N>, row: (u32, u16), at: usize) {
        let (low, high) = (a.min(b), a.max(b));
        let tid = Tid::new(row.0, row.1);
        let is_narrow = is_narrow(tid);
        let shape = Shape::between(&entry(low, 0), Some(&entry(high, 9)), is_narrow);
        assert!(shape.key_size() >= 4 && shape.fits(tid));
        // Any key in the range of the leaf.
        let between = c.clamp(low, high);
        let mut page = [0xa5; PAGE_SIZE];
        let (offset, row_at) = (24 + at, 7_000);
        shape.put_key(&mut page, offset, &between);
        let length = shape.row_size();
        page[row_at..row_at + length].copy_from_slice(&shape.tid_bytes(tid)[..length]);
        let bytes = shape.key_bytes(&between);
        let written = &page[offset..offset + shape.key_size()];
        assert_eq!(bytes.as_flattened()[..shape.key_size()], *written);
        assert_eq!(shape.key_at(&page, offset, &low), between);
        assert_eq!(shape.tid_at(&page, row_at), tid);
        // No other byte has changed.
        assert!(page[..offset].iter().all(|&byte| byte == 0xa5));
        assert!(
            page[offset + shape.key_size()..row_at]
                .iter()
                .all(|&byte| byte == 0xa5)
        );
        let [left_out, narrow] = shape.to_bytes();
        assert_eq!(
            (usize::from(left_out), narrow == 1),
            (shape.left_out, is_narrow)
        );
    }

    fn separates<const N: usize>(low: Key<N>, a: Key<N>, b: Key<N>, rows: (u16, u16)) {
        let mut keys = [low, a, b];
        keys.sort_unstable();
        let [low, left, right] = keys;
        let (low, left, right) = (entry(low, 0), entry(left, rows.0), entry(right, rows.1));
        if low > left || left >= right {
            return;
        }
        let bytes = Shape::LEAST.extended_for(&low, &left.key, true).left_out;
        let separator = separator_within(&left, &right, bytes);
        assert!(left < separator && separator <= right);
        assert!(Shape::between(&low, Some(&separator), true).left_out >= bytes);
    }

    macro_rules! of_all_widths {
        ($($name:ident: $words:literal;)*) => {
            mod keys_read_back {
                use super::*;
                proptest! {
                    $(#[test]
                    fn $name(
                        (a, b) in keys_alike::<$words>(), c: [u64; $words],
                        row: (u32, u16), small: bool, at in 0..999usize,
                    ) {
                        let row = if small { (row.0 >> 10, row.1 >> 8) } else { row };
                        read_back(a, b, c, row, at);
                    })*
                }
            }
            mod separators_keep_what_is_left_out {
                use super::*;
                proptest! {
                    $(#[test]
                    fn $name(
                        (a, b) in keys_alike::<$words>(), (_, c) in keys_alike::<$words>(),
                        near: u8, rows: (u16, u16),
                    ) {
                        separates(a, b, c, rows);
                        let mut next = b;
                        next[$words - 1] = next[$words - 1].saturating_add(near.into());
                        separates(a, b, next, rows);
                    })*
                }
            }
        };
    }

    of_all_widths! {
        of_one_word: 1;
        of_two_words: 2;
        of_three_words: 3;
        of_five_words: 5;
    }

    #[test]
    fn what_a_range_has_in_common_ends_before_its_high_key() {
        let left_out = |low: u64, high: u64, tid| {
            let high = EntryKey::new(3, [high], tid);
            Shape::between(&EntryKey::before_key(3, [low]), Some(&high), true).left_out
        };
        assert_eq!(left_out(0x1200 << 48, 0x1300 << 48, Tid::MIN), 1);
        assert_eq!(left_out(0x1200 << 48, 0x1300 << 48, Tid::new(0, 1)), 0);
        assert_eq!(left_out(0x1234 << 48, 0x1235 << 48, Tid::MIN), 2);
        assert_eq!(left_out(7, 7, Tid::new(0, 1)), 4);
        let low = EntryKey::before_key(3, [0xff << 56]);
        assert_eq!(Shape::between(&low, None, true).left_out, 1);
        assert_eq!(
            Shape::between(&low, Some(&EntryKey::start_of(4)), true).left_out,
            1
        );
    }
}
