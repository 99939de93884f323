//! Inverse document frequencies of Chinese words, from jieba.
//!
//! The file `data/jieba_idf.bin` holds the values of 270,000 words. `examples/jieba_idf.rs` made it
//! from the file `idf.txt` of jieba-rs. The file is compiled into the program, so processes share
//! its memory.

/// Number of fraction bits of an inverse document frequency, which is a fixed-point number.
pub const IDF_BITS: u32 = 20;

/// Number of low bits of a word's entry in [`TABLE`]. These bits hold the index of the word's value
/// in the list of distinct values. The other bits of the entry are the highest bits of the word's
/// hash.
const VALUE_BITS: u32 = 12;

/// Contents of `data/jieba_idf.bin`. The file starts with the number of distinct values and the
/// median value of all words, 4 bytes each. The distinct values follow, 4 bytes each, and then one
/// entry for each word, 8 bytes each, in ascending order. All numbers are little-endian.
static TABLE: &[u8] = include_bytes!("../../../data/jieba_idf.bin");

/// Offset in [`TABLE`] of the first value, in bytes.
const VALUES_AT: usize = 8;

/// Returns the 32-bit number at byte `at` of [`TABLE`].
fn number(at: usize) -> u32 {
    u32::from_le_bytes(*TABLE[at..].first_chunk().expect("a whole table"))
}

/// Returns the inverse document frequency of the word with this [`crate::hash::feature_hash`]:
/// ln(number of documents / number of documents with the word), in units of 2^-[`IDF_BITS`]. A word
/// that is not in the table has the median of the table.
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
