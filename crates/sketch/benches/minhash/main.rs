//! Speed of MinHash signatures, one thread: of texts in bytes a second, and of ready-made features
//! by construction.
//!
//! With `SKETCH_BENCH_TEXT=file` the lines of a file are measured too, each as one document.

mod constructions;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use neardup_sketch::minhash::{HashFamily, Scheme};
use neardup_sketch::{Sketcher, TextOptions};

const HASHES: usize = 128;

fn family() -> HashFamily {
    HashFamily::new(Scheme::Neardup1, HASHES, 0).expect("all seeds will do")
}

/// Sentences of made-up words with the frequencies of natural ones.
fn english(bytes: usize) -> String {
    let mut state = 20_021_u64;
    let mut next = move || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_F491_4F6C_DD1D)
    };
    let letters = b"eeeeeetttttaaaaooooiiiinnnnsssshhhrrrdddlllcuumwfgypbvk";
    let words: Vec<String> = (0..30_000)
        .map(|_| {
            let length = 2 + next() % 4 + next() % 5;
            (0..length)
                .map(|_| char::from(letters[next() as usize % letters.len()]))
                .collect()
        })
        .collect();
    let mut text = String::with_capacity(bytes + 16);
    while text.len() < bytes {
        let uniform = (next() >> 11) as f64 / (1_u64 << 53) as f64;
        let rank = (30_000_f64.powf(uniform) - 1.0) as usize;
        text += &words[rank.min(words.len() - 1)];
        text += if next() % 14 == 0 { ". " } else { " " };
    }
    text
}

fn measure(c: &mut Criterion, name: &str, documents: &[&str]) {
    let bytes: usize = documents.iter().map(|d| d.len()).sum();
    let family = family();
    let mut sketcher = Sketcher::new(TextOptions::SET);
    let mut group = c.benchmark_group("minhash_text");
    group
        .throughput(Throughput::BytesDecimal(bytes as u64))
        .sample_size(20);
    group.bench_function(BenchmarkId::new(name, bytes / documents.len()), |b| {
        b.iter(|| {
            for text in documents {
                black_box(sketcher.signature(black_box(text), &family, &mut || ()));
            }
        });
    });
    group.finish();
}

fn texts(c: &mut Criterion) {
    let text = english(4_000_000);
    for size in [500, 4_000, 4_000_000] {
        let documents: Vec<&str> = text
            .as_bytes()
            .chunks(size)
            .map(|chunk| str::from_utf8(chunk).expect("the text is ASCII"))
            .collect();
        measure(c, "english", &documents);
    }
    if let Ok(path) = std::env::var("SKETCH_BENCH_TEXT") {
        let text = std::fs::read_to_string(&path).expect("SKETCH_BENCH_TEXT names a UTF-8 file");
        let lines: Vec<&str> = text.lines().collect();
        measure(c, "file", &lines);
        shingles(c, &lines);
    }
}

/// Ready-made shingles of three words, as bytes of shingles a second.
fn shingles(c: &mut Criterion, documents: &[&str]) {
    let documents: Vec<Vec<String>> = (documents.iter())
        .map(|text| {
            let words: Vec<&str> = text.split_ascii_whitespace().collect();
            words.windows(3).map(|window| window.join(" ")).collect()
        })
        .collect();
    let bytes: usize = documents.iter().flatten().map(String::len).sum();
    let family = family();
    let mut group = c.benchmark_group("minhash_shingles");
    group
        .throughput(Throughput::BytesDecimal(bytes as u64))
        .sample_size(20);
    group.bench_function("file", |b| {
        b.iter(|| {
            for features in &documents {
                let features = features.iter().map(|feature| feature.as_bytes());
                black_box(family.signature(black_box(features)));
            }
        });
    });
    group.finish();
}

fn features(c: &mut Criterion) {
    for size in [10_usize, 100, 1_000, 10_000] {
        let mut group = c.benchmark_group(format!("minhash_features/{size}"));
        group
            .throughput(Throughput::Elements(size as u64))
            .sample_size(20);
        let hashes: Vec<u64> = (0..size as u64)
            .map(|i| neardup_sketch::hash::feature_hash(&i.to_le_bytes()))
            .collect();
        for mut construction in constructions::all(HASHES) {
            let name = construction.name();
            let mut out = Vec::new();
            group.bench_function(name, |b| {
                b.iter(|| construction.signature(black_box(&hashes), &mut out));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, texts, features);
criterion_main!(benches);
