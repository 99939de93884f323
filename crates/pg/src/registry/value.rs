//! Values of rows in flight, in their form for comparison.

/// Words of a [`ValuePiece`].
const WORDS: usize = 4;
/// Bytes of a [`ValuePiece`].
const BYTES: usize = 8 * WORDS;

/// The part of a value that one slot of the table stores. Unused bytes are zero.
pub type ValuePiece = [u64; WORDS];

/// A fingerprint, or the low bytes of a signature's hashes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// Up to 256 bits.
    Bits(ValuePiece),
    /// Equal hashes have equal low bytes, so the bytes of two signatures differ in at most as many
    /// positions as their hashes: near signatures have near bytes. One in 256 pairs of different
    /// hashes has equal bytes, which can cause an unnecessary wait.
    Bytes(Vec<ValuePiece>),
}

impl Value {
    /// The value of a fingerprint.
    pub fn from_words(words: &[u64]) -> Self {
        let mut all = [0; WORDS];
        all[..words.len()].copy_from_slice(words);
        Value::Bits(all)
    }

    /// The value of a signature with these hashes.
    pub fn from_hashes(hashes: &[u32]) -> Self {
        let pieces = hashes.chunks(BYTES).map(|hashes| {
            let mut piece = [0; WORDS];
            for (position, &hash) in hashes.iter().enumerate() {
                piece[position / 8] |= u64::from(hash as u8) << (position % 8 * 8);
            }
            piece
        });
        Value::Bytes(pieces.collect())
    }

    /// The value in pieces, at least one.
    pub fn pieces(&self) -> &[ValuePiece] {
        match self {
            Value::Bits(piece) => core::slice::from_ref(piece),
            Value::Bytes(pieces) if pieces.is_empty() => &[[0; WORDS]],
            Value::Bytes(pieces) => pieces,
        }
    }

    /// Distance to another value of the same kind: differing bits of a fingerprint, or at most the
    /// mismatches of a signature.
    pub fn distance<'a>(&self, other: impl Iterator<Item = &'a ValuePiece>) -> u32 {
        let differences = (self.pieces().iter().flatten())
            .zip(other.flatten())
            .map(|(a, b)| a ^ b);
        match self {
            Value::Bits(_) => differences.map(u64::count_ones).sum(),
            Value::Bytes(_) => differences
                .flat_map(u64::to_ne_bytes)
                .map(|difference| u32::from(difference != 0))
                .sum(),
        }
    }
}
