//! Inverse document frequencies of Chinese words, from jieba.
//!
//! `data/jieba_idf.bin` holds the values of 270,000 words. `examples/jieba_idf.rs` made it from
//! the file `idf.txt` of jieba-rs. It is part of the program, and processes share it.

/// Fraction bits of an inverse document frequency.
pub const IDF_BITS: u32 = 20;

/// Bits in an entry for the index of the value. The others are the highest bits of the hash.
const VALUE_BITS: u32 = 12;

/// The number of values and the median, 4 bytes each; the values, 4 bytes each; the entries, 8
/// bytes each, in ascending order. All numbers are little-endian.
static TABLE: &[u8] = include_bytes!("../../../data/jieba_idf.bin");

const VALUES_AT: usize = 8;

fn number(at: usize) -> u32 {
    u32::from_le_bytes(*TABLE[at..].first_chunk().expect("a whole table"))
}

/// Returns ln(documents / documents with the word), in units of 2^-[`IDF_BITS`], of the word with
/// this [`crate::hash::feature_hash`]. An unknown word has the median of the known words.
pub(crate) fn idf(hash: u64) -> u32 {
    let entries_at = VALUES_AT + 4 * number(0) as usize;
    let (entries, _) = TABLE[entries_at..].as_chunks::<8>();
    let key = |entry: &[u8; 8]| u64::from_le_bytes(*entry) >> VALUE_BITS;
    match entries.binary_search_by_key(&(hash >> VALUE_BITS), key) {
        Ok(at) => {
            let value = u64::from_le_bytes(entries[at]) & ((1 << VALUE_BITS) - 1);
            number(VALUES_AT + 4 * value as usize)
        }
        Err(_) => number(4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::feature_hash;

    #[test]
    fn some_words() {
        let idf =
            |word: &str| f64::from(idf(feature_hash(word.as_bytes()))) / f64::from(1 << IDF_BITS);
        // Lines of idf.txt, and the median.
        for (word, expected) in [
            ("劳动防护", 13.900677652),
            ("在", 1.51197516384),
            ("玩花样", 13.2075304714),
            ("北京", 4.66740230872),
            ("不在其中的词", 11.9547675029),
        ] {
            assert!((idf(word) - expected).abs() < 1e-6, "{word}: {}", idf(word));
        }
    }
}
