//! Speed of `simhash64_text` and `simhash128_text` in bytes of text a second, one thread.
//!
//! `cargo bench -p neardup-sketch` measures generated texts. With `SKETCH_BENCH_TEXT=file` the lines
//! of a file are measured too, each as one document.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use neardup_sketch::{TextOptions, simhash64_features, simhash64_text, simhash128_text};

/// A small generator with a fixed seed (xorshift64*), so that every run measures the same texts.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    /// 0 to n - 1, small numbers far more often, as words are in texts.
    fn zipf(&mut self, n: u64) -> u64 {
        let uniform = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        ((n as f64).powf(uniform) - 1.0) as u64
    }
}

/// Words made of `letters`, each of a length around that of English words.
fn vocabulary(random: &mut Random, letters: &[char], size: u64) -> Vec<String> {
    (0..size)
        .map(|rank| {
            let length =
                1 + random.below(4) + random.below(4) + u64::from(rank > 50) * random.below(5);
            (0..length)
                .map(|_| letters[random.below(letters.len() as u64) as usize])
                .collect()
        })
        .collect()
}

/// Sentences of words with capitals, commas and full stops.
fn spaced(letters: &str, bytes: usize) -> String {
    let mut random = Random(20_021);
    let letters: Vec<char> = letters.chars().collect();
    let words = vocabulary(&mut random, &letters, 30_000);
    let mut text = String::with_capacity(bytes + 100);
    while text.len() < bytes {
        for at in 0..6 + random.below(14) {
            if at > 0 {
                text += if random.below(12) == 0 { ", " } else { " " };
            }
            let word = &words[random.zipf(words.len() as u64) as usize];
            if at == 0 {
                text += &word.to_uppercase()
            } else {
                text += word
            }
        }
        text += if random.below(8) == 0 { ".\n" } else { ". " };
    }
    text
}

/// Chinese-like: Han characters, full-width punctuation, now and then a number or a Latin word.
fn chinese(bytes: usize) -> String {
    let mut random = Random(2007);
    let mut text = String::with_capacity(bytes + 100);
    while text.len() < bytes {
        for _ in 0..5 + random.below(12) {
            let rank = random.zipf(5000) as u32;
            text.push(char::from_u32(0x4E00 + rank * 4).unwrap());
        }
        match random.below(20) {
            0 => text += "SQL 2007",
            1 => text += "100",
            2..8 => text += "。",
            _ => text += "，",
        }
    }
    text
}

/// Cuts a text into documents of about `bytes`.
fn documents(text: &str, bytes: usize) -> Vec<&str> {
    let mut documents = Vec::new();
    let mut rest = text;
    while rest.len() > bytes {
        let (document, after) = rest.split_at(rest.ceil_char_boundary(bytes));
        documents.push(document);
        rest = after;
    }
    documents.push(rest);
    documents
}

fn measure(c: &mut Criterion, name: &str, documents: &[&str]) {
    let bytes: usize = documents.iter().map(|d| d.len()).sum();
    let mut group = c.benchmark_group("simhash64_text");
    group
        .throughput(Throughput::BytesDecimal(bytes as u64))
        .sample_size(20);
    group.bench_function(BenchmarkId::new(name, bytes / documents.len()), |b| {
        b.iter(|| {
            documents.iter().fold(0, |all, text| {
                all ^ simhash64_text(black_box(text), &TextOptions::SIMHASH, &mut || ())
                    .unwrap_or(0)
            })
        });
    });
    group.finish();
}

/// The same features, hashed and counted in 128 bits.
fn wide(c: &mut Criterion) {
    let text = spaced("etaoinshrdlu", 4_000_000);
    let documents = documents(&text, 4_000);
    let mut group = c.benchmark_group("simhash128_text");
    group
        .throughput(Throughput::BytesDecimal(text.len() as u64))
        .sample_size(20);
    group.bench_function(BenchmarkId::new("english", 4_000), |b| {
        b.iter(|| {
            documents.iter().fold(0, |all, text| {
                all ^ simhash128_text(black_box(text), &TextOptions::SIMHASH, &mut || ())
                    .unwrap_or(0)
            })
        });
    });
    group.finish();
}

fn texts(c: &mut Criterion) {
    let latin = "eeeeeetttttaaaaooooiiiinnnnsssshhhrrrdddlllcuumwfgypbvk";
    let french = "eeeeeeeéètttttaaaàooooiiiinnnnssssçhhrrrdddlllcuumwfgypbvêk";
    let russian = "оооооеееееаааиииннтттсссрррввллккммддппууяыьгзбчйхжшюцщэфъё";
    for size in [500, 4_000, 4_000_000] {
        measure(c, "english", &documents(&spaced(latin, 4_000_000), size));
    }
    measure(c, "chinese", &documents(&chinese(4_000_000), 4_000));
    measure(c, "french", &documents(&spaced(french, 2_000_000), 4_000));
    measure(c, "russian", &documents(&spaced(russian, 2_000_000), 4_000));
    if let Ok(path) = std::env::var("SKETCH_BENCH_TEXT") {
        let text = std::fs::read_to_string(&path).expect("SKETCH_BENCH_TEXT names a UTF-8 file");
        measure(c, "file", &text.lines().collect::<Vec<_>>());
    }
}

fn features(c: &mut Criterion) {
    let text = spaced("etaoinshrdlu", 100_000);
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let mut group = c.benchmark_group("simhash64_features");
    group
        .throughput(Throughput::Elements(words.len() as u64))
        .sample_size(20);
    group.bench_function("weights of several exponents", |b| {
        b.iter(|| {
            simhash64_features(
                words
                    .iter()
                    .zip((0_u8..5).cycle())
                    .map(|(w, i)| (w, f32::from(i))),
            )
        });
    });
    group.finish();
}

criterion_group!(benches, texts, wide, features);
criterion_main!(benches);
