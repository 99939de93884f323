//! Speed of MinHash signatures in one thread: signatures of texts, in bytes of text per second, and
//! the methods of `constructions`, in features per second.
//!
//! With `SKETCH_BENCH_TEXT=file` the lines of a file are measured too, each as one document.

mod constructions;
#[path = "../texts/mod.rs"]
#[allow(dead_code, reason = "Chinese texts are not measured here")]
mod texts;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use neardup_sketch::minhash::{HashFamily, Scheme};
use neardup_sketch::{Sketcher, TextOptions};
use texts::{LATIN, documents, spaced};

const HASHES: usize = 128;

fn family() -> HashFamily {
    HashFamily::new(Scheme::Neardup1, HASHES, 0).expect("all seeds will do")
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

fn signatures(c: &mut Criterion) {
    let text = spaced(LATIN, 4_000_000);
    for size in [500, 4_000, 4_000_000] {
        measure(c, "english", &documents(&text, size));
    }
    if let Ok(path) = std::env::var("SKETCH_BENCH_TEXT") {
        let text = std::fs::read_to_string(&path).expect("SKETCH_BENCH_TEXT names a UTF-8 file");
        let lines: Vec<&str> = text.lines().collect();
        measure(c, "file", &lines);
        shingles(c, &lines);
    }
}

/// Measures signatures of texts that have already been split into shingles of three words, in bytes
/// of shingles per second.
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

criterion_group!(benches, signatures, features);
criterion_main!(benches);
