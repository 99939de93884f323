//! Values of rows in flight, in the form in which backends compare them. A value is a fingerprint
//! (a string of bits) or comes from a MinHash signature (a list of 32-bit hashes).

/// Number of 64-bit words in a [`ValuePiece`].
const WORDS: usize = 4;
/// Number of bytes in a [`ValuePiece`].
const BYTES: usize = 8 * WORDS;

/// Part of a value that fits into one slot of the table of rows in flight. Unused bytes are zero.
pub type ValuePiece = [u64; WORDS];

/// Value of a row in flight: a fingerprint, or the low bytes of a signature's hashes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// A fingerprint of up to 256 bits.
    Bits(ValuePiece),
    /// The lowest byte of each hash of a signature, in order. Equal hashes have equal bytes, so the
    /// number of bytes that differ is at most the number of hashes that differ. The comparison
    /// therefore misses no near signature. One in 256 pairs of different hashes has equal bytes,
    /// which can cause an unnecessary wait.
    Bytes(Vec<ValuePiece>),
}

impl Value {
    /// Makes the value of a fingerprint that has these words, at most four.
    pub fn from_words(words: &[u64]) -> Self {
        let mut all = [0; WORDS];
        all[..words.len()].copy_from_slice(words);
        Value::Bits(all)
    }

    /// Makes the value of a signature that has these hashes.
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

    /// The value split into pieces, at least one.
    pub fn pieces(&self) -> &[ValuePiece] {
        match self {
            Value::Bits(piece) => core::slice::from_ref(piece),
            Value::Bytes(pieces) if pieces.is_empty() => &[[0; WORDS]],
            Value::Bytes(pieces) => pieces,
        }
    }

    /// Distance to another value of the same kind. `other` has the pieces of that value. For
    /// fingerprints, the distance is the number of bits that differ. For signatures, it is the
    /// number of bytes that differ, which is at most the number of hashes that differ.
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
