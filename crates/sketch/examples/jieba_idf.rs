//! Makes `data/jieba_idf.bin` from the file `idf.txt` of jieba-rs (`src/data/idf.txt` of its
//! package):
//!
//! ```sh
//! cargo run -p neardup-sketch --example jieba_idf -- idf.txt crates/sketch/data/jieba_idf.bin
//! ```
//!
//! A line is a word and ln(documents / documents with the word). The format of the result is
//! described in `src/tokens/jieba/idf.rs`; `tests/jieba.rs` compares it with the values of
//! jieba-rs.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;

use neardup_sketch::hash::feature_hash;
use neardup_sketch::normalize::normalized;

fn main() -> Result<(), Box<dyn Error>> {
    let [_, from, to] = std::env::args()
        .collect::<Vec<_>>()
        .try_into()
        .map_err(|_| "idf.txt, result")?;
    let text = std::fs::read_to_string(from)?;
    let mut idfs = BTreeMap::new();
    let mut all = Vec::new();
    for line in text.lines() {
        let (word, idf) = line.trim().split_once(' ').ok_or(line)?;
        let idf: f64 = idf.parse()?;
        let idf = (idf * f64::from(1 << 20)).round() as u32;
        all.push(idf);
        let hash = feature_hash(normalized(word).as_bytes());
        // Of two spellings of a word, the more frequent one counts.
        let known = idfs.entry(hash >> 12).or_insert(idf);
        *known = idf.min(*known);
    }
    all.sort_unstable();
    // As in jieba-rs.
    let median = all[(all.len() - 1) / 2];
    let values: Vec<u32> = all
        .iter()
        .copied()
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    assert!(
        values.len() <= 1 << 12,
        "more values than an entry can tell apart"
    );
    let mut out = Vec::new();
    out.extend((values.len() as u32).to_le_bytes());
    out.extend(median.to_le_bytes());
    for value in &values {
        out.extend(value.to_le_bytes());
    }
    for (key, idf) in &idfs {
        let value = values.binary_search(idf).expect("all values are listed") as u64;
        out.extend((key << 12 | value).to_le_bytes());
    }
    std::fs::write(to, &out)?;
    println!(
        "{} words, {} values, {} bytes",
        idfs.len(),
        values.len(),
        out.len()
    );
    Ok(())
}
