//! The values of rows in flight, as they are compared.
use crate::types::signature::Signature;

/// The most bytes of a value: one for each hash of the longest signature.
pub const MAX_BYTES: usize = neardup_sketch::minhash::MAX_HASHES;

/// A fingerprint, or the low bytes of a signature's hashes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// Up to 256 bits; the rest is zero.
    Words([u64; 4]),
    /// Hashes that are equal have equal low bytes, so that two signatures differ in no fewer
    /// positions than their bytes do: near signatures have near bytes. Of hashes that differ 1 in
    /// 256 has the same byte, which may make a row wait in vain.
    Bytes(Vec<u8>),
}

impl Value {
    /// The value of a fingerprint.
    pub fn of_words(words: &[u64]) -> Self {
        let mut all = [0; 4];
        all[..words.len()].copy_from_slice(words);
        Value::Words(all)
    }

    /// The value of a signature.
    pub fn of_signature(signature: &Signature) -> Self {
        let values = signature.values.iter().take(MAX_BYTES);
        Value::Bytes(values.map(|&value| value as u8).collect())
    }

    /// The words; zero if it has none.
    pub fn words(&self) -> [u64; 4] {
        match self {
            Value::Words(words) => *words,
            Value::Bytes(_) => [0; 4],
        }
    }

    /// The bytes; empty if it has none.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Value::Words(_) => &[],
            Value::Bytes(bytes) => bytes,
        }
    }

    /// The distance to the words and bytes of another value of the same kind: bits of a
    /// fingerprint, or at most the mismatches of a signature.
    pub fn distance(&self, words: &[u64; 4], bytes: &[u8]) -> u32 {
        match self {
            Value::Words(own) => own
                .iter()
                .zip(words)
                .map(|(a, b)| (a ^ b).count_ones())
                .sum(),
            Value::Bytes(own) => own.iter().zip(bytes).filter(|(a, b)| a != b).count() as u32,
        }
    }
}
