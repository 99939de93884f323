//! Measures the passages of the documents in a file: whether shared runs are found, and the number
//! of hashes for each byte of text.
//!
//! `cargo run --release -p neardup-sketch --example passage_recall -- FILE [TOKENS [LENGTH]]`
//! reads one document from each line: the text after the last tab, or the whole line. Tokens are
//! `word` or `char`. Runs are compared as texts, with the tokens of the definition in
//! tests/reference.

#[path = "../tests/reference/mod.rs"]
#[allow(dead_code, reason = "fingerprints are not measured here")]
mod reference;

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use neardup_sketch::Sketcher;
use neardup_sketch::hash::feature_hash128;
use neardup_sketch::options::{self, NamedOption, TextOptions, Tokens};
use neardup_sketch::passages::PassageLength;

/// Number of documents into which a passage is inserted at each position.
const INSERTED: usize = 40;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let path = arguments.first().expect("a file of documents");
    let tokens = arguments.get(1).map_or("word", String::as_str);
    let tokens = Tokens::from_name(tokens.as_bytes()).expect("word or char");
    let length: usize = arguments
        .get(2)
        .map_or(24, |length| length.parse().expect("a number"));
    let file = std::fs::read_to_string(path).expect("a UTF-8 file");
    let texts: Vec<String> = (file.lines())
        .map(|line| line.rsplit('\t').next().unwrap_or_default())
        .map(|text| text.replace("\\n", "\n").replace("\\t", "\t"))
        .collect();
    let bytes: usize = texts.iter().map(String::len).sum();
    println!("{} documents, {bytes} bytes", texts.len());
    println!("shingle  hashes  distinct  bytes/hash  pairs  found  with others  inserted  found");
    let pairs = sharing_pairs(&texts, tokens, length);
    for shingle in [1, 2, 3, 4, 5, 6, 8, 10, 12, 16] {
        if shingle <= length {
            measure(&texts, bytes, &pairs, tokens, length, shingle);
        }
    }
}

fn with_shingle(tokens: Tokens, shingle: usize) -> TextOptions {
    TextOptions {
        tokens,
        shingle,
        ..TextOptions::PASSAGES
    }
}

/// Returns pairs of documents that share a run of `length` tokens. Each document is paired with
/// the first document that has the run.
fn sharing_pairs(texts: &[String], tokens: Tokens, length: usize) -> HashSet<(u32, u32)> {
    let mut first: HashMap<u128, u32> = HashMap::new();
    let mut pairs = HashSet::new();
    let between = if tokens == Tokens::Char { "" } else { " " };
    for (n, text) in (0..).zip(texts) {
        // All runs are made of these tokens in order.
        let single = reference::features(text, &with_shingle(tokens, 1));
        for run in single.windows(length) {
            let run = feature_hash128(run.join(between).as_bytes());
            let other = *first.entry(run).or_insert(n);
            if other != n {
                pairs.insert((other, n));
            }
        }
    }
    pairs
}

fn shares(a: &[u64], b: &[u64]) -> bool {
    let a: HashSet<&u64> = a.iter().collect();
    b.iter().any(|hash| a.contains(hash))
}

fn measure(
    texts: &[String],
    bytes: usize,
    pairs: &HashSet<(u32, u32)>,
    tokens: Tokens,
    length: usize,
    shingle: usize,
) {
    let options = with_shingle(tokens, shingle);
    let passage_length = PassageLength::new(length as i64, &options).expect("at least a shingle");
    let mut sketcher = Sketcher::new(options);
    let mut hashes = |text: &str| sketcher.passages(text, passage_length, None, &mut || ());
    let start = Instant::now();
    let all: Vec<Vec<u64>> = texts.iter().map(|text| hashes(text)).collect();
    let seconds = start.elapsed().as_secs_f64();
    let count: usize = all.iter().map(Vec::len).sum();
    let distinct: HashSet<u64> = all.iter().flatten().copied().collect();
    let found = (pairs.iter()).filter(|(a, b)| shares(&all[*a as usize], &all[*b as usize]));
    let found = found.count();
    let others = sharing_without_run(&all, pairs);
    let (inserted, there) = insertions(texts, tokens, length, &mut hashes);
    println!(
        "{shingle:7} {count:7} {:9} {:11.1} {:6} {found:6} {others:12} {inserted:9} {there:6}  \
         {:.0} MB/s",
        distinct.len(),
        bytes as f64 / count as f64,
        pairs.len(),
        bytes as f64 / seconds / 1e6
    );
}

/// Returns the number of pairs that share a hash but are not in `pairs`. Each document is paired
/// with the first document that has the hash.
fn sharing_without_run(all: &[Vec<u64>], pairs: &HashSet<(u32, u32)>) -> usize {
    let mut first: HashMap<u64, u32> = HashMap::new();
    let mut others = HashSet::new();
    for (n, hashes) in (0..).zip(all) {
        for hash in hashes {
            let other = *first.entry(*hash).or_insert(n);
            if other != n && !pairs.contains(&(other, n)) {
                others.insert((other, n));
            }
        }
    }
    others.len()
}

/// Inserts the middle of one document into others, at each position. Returns the number of
/// insertions, and how many of them are found.
fn insertions(
    texts: &[String],
    tokens: Tokens,
    length: usize,
    hashes: &mut dyn FnMut(&str) -> Vec<u64>,
) -> (usize, usize) {
    let between = if tokens == Tokens::Char { "" } else { " " };
    let cut = |text: &String| reference::features(text, &with_shingle(tokens, 1));
    let long = |cut: &Vec<String>| cut.len() >= 4 * length;
    let chosen: Vec<Vec<String>> = texts
        .iter()
        .map(cut)
        .filter(long)
        .take(INSERTED + 1)
        .collect();
    let (mut inserted, mut found) = (0, 0);
    for pair in chosen.windows(2) {
        let middle = pair[0].len() / 2;
        let passage = pair[0][middle..][..length].join(between);
        let wanted = hashes(&passage);
        let into = &pair[1][..pair[1].len().min(400)];
        for at in 0..=into.len() {
            let (before, after) = (into[..at].join(between), into[at..].join(between));
            let text = [before, passage.clone(), after].join(between);
            inserted += 1;
            found += usize::from(shares(&wanted, &hashes(&text)));
        }
    }
    (inserted, found)
}
