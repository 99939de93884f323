//! Speed of `Sketcher::simhash64`, `simhash128` and `passages` in one thread, in bytes of text per
//! second.
//!
//! `cargo bench -p neardup-sketch` measures generated texts. With `SKETCH_BENCH_TEXT=file` the
//! lines of a file are measured too, each as one document.

mod texts;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use jieba_rs::Jieba;
use neardup_sketch::options::{NamedOption, Tokens};
use neardup_sketch::passages::{PassageLength, SharedPassages};
use neardup_sketch::{Sketcher, TextOptions, simhash64_features};
use texts::{LATIN, chinese, chinese_words, documents, spaced};

/// Measures the time that `compute` takes to process all `documents`, and reports it in bytes per
/// second. `group` and `name` identify the measurement; the average size of the documents is added
/// to `name`.
fn measure_each(
    c: &mut Criterion,
    [group, name]: [&str; 2],
    documents: &[&str],
    mut compute: impl FnMut(&str) -> u64,
) {
    let bytes: usize = documents.iter().map(|text| text.len()).sum();
    let mut group = c.benchmark_group(group);
    group
        .throughput(Throughput::BytesDecimal(bytes as u64))
        .sample_size(20);
    group.bench_function(BenchmarkId::new(name, bytes / documents.len()), |b| {
        b.iter(|| (documents.iter()).fold(0, |all, text| all ^ compute(black_box(text))));
    });
    group.finish();
}

fn measure(c: &mut Criterion, name: &str, documents: &[&str]) {
    measure_options(c, name, documents, &TextOptions::SIMHASH);
}

fn measure_options(c: &mut Criterion, name: &str, documents: &[&str], options: &TextOptions) {
    let mut sketcher = Sketcher::new(*options);
    measure_each(c, ["simhash64_text", name], documents, |text| {
        sketcher.simhash64(text, &mut || ()).unwrap_or(0)
    });
}

/// Measures 128-bit fingerprints of English-like documents.
fn wide(c: &mut Criterion) {
    let text = spaced("etaoinshrdlu", 4_000_000);
    let mut sketcher = Sketcher::new(TextOptions::SIMHASH);
    measure_each(
        c,
        ["simhash128_text", "english"],
        &documents(&text, 4_000),
        |text| sketcher.simhash128(text, &mut || ()).unwrap_or(0) as u64,
    );
}

/// Measures hashes of passages of 24 tokens.
fn passages(c: &mut Criterion) {
    let (english, chinese) = (spaced(LATIN, 4_000_000), chinese(4_000_000));
    let (english, chinese) = (documents(&english, 4_000), documents(&chinese, 4_000));
    let (word, char) = (Tokens::Word, Tokens::Char);
    let mut texts = vec![
        ("english", english.clone(), word, 8),
        ("english, shingles of 5 words", english.clone(), word, 5),
        ("english, 24 characters", english, char, 8),
        ("chinese", chinese, word, 8),
    ];
    let file = std::env::var("SKETCH_BENCH_TEXT");
    let file = file.map(|path| std::fs::read_to_string(path).expect("a UTF-8 file"));
    if let Ok(file) = &file {
        texts.push(("file", file.lines().collect(), word, 8));
    }
    for (name, documents, tokens, shingle) in texts {
        let options = TextOptions {
            tokens,
            shingle,
            ..TextOptions::PASSAGES
        };
        let length = PassageLength::new(24, &options).expect("longer than a shingle");
        let mut sketcher = Sketcher::new(options);
        measure_each(c, ["passages", name], &documents, |text| {
            sketcher.passages(text, length, None, &mut || ()).len() as u64
        });
    }
}

/// Measures shared passages of two texts. One text contains the other, or both repeat one word.
fn shared_passages(c: &mut Criterion) {
    let text = spaced(LATIN, 1_000_000);
    let part = &text[300_000..][..500_000];
    let repeated = "la ".repeat(300_000);
    let mut group = c.benchmark_group("shared_passages");
    for (name, a, b) in [
        ("english", part, text.as_str()),
        ("one word", &repeated, &repeated),
    ] {
        let options = TextOptions::PASSAGES;
        let length = PassageLength::new(24, &options).expect("longer than a shingle");
        group
            .throughput(Throughput::BytesDecimal((a.len() + b.len()) as u64))
            .sample_size(10);
        group.bench_function(BenchmarkId::new(name, a.len() + b.len()), |bencher| {
            bencher.iter(|| {
                SharedPassages::new(a, b, length, &options, &mut || ())
                    .passages
                    .len()
            });
        });
    }
    group.finish();
}

fn texts(c: &mut Criterion) {
    let french = "eeeeeeeéètttttaaaàooooiiiinnnnssssçhhrrrdddlllcuumwfgypbvêk";
    let russian = "оооооеееееаааиииннтттсссрррввллккммддппууяыьгзбчйхжшюцщэфъё";
    for size in [500, 4_000, 4_000_000] {
        measure(c, "english", &documents(&spaced(LATIN, 4_000_000), size));
    }
    measure(c, "chinese", &documents(&chinese(4_000_000), 4_000));
    measure(c, "french", &documents(&spaced(french, 2_000_000), 4_000));
    measure(c, "russian", &documents(&spaced(russian, 2_000_000), 4_000));
    let char = |shingle| TextOptions {
        tokens: Tokens::Char,
        shingle,
        ..TextOptions::SIMHASH
    };
    let (english, chinese) = (spaced(LATIN, 4_000_000), chinese(4_000_000));
    let english = documents(&english, 4_000);
    measure_options(c, "english, 5 characters", &english, &char(5));
    let chinese = documents(&chinese, 4_000);
    measure_options(c, "chinese, 2 characters", &chinese, &char(2));
    measure_options(c, "chinese, 5 characters", &chinese, &char(5));
    if let Ok(path) = std::env::var("SKETCH_BENCH_TEXT") {
        let text = std::fs::read_to_string(&path).expect("SKETCH_BENCH_TEXT names a UTF-8 file");
        measure(c, "file", &text.lines().collect::<Vec<_>>());
    }
}

/// Measures Chinese words: jieba alone, and the fingerprint of its words.
fn words(c: &mut Criterion) {
    let text = chinese_words(1_000_000);
    let documents = documents(&text, 4_000);
    let jieba = Jieba::new();
    let mut group = c.benchmark_group("jieba");
    group
        .throughput(Throughput::BytesDecimal(text.len() as u64))
        .sample_size(10);
    group.bench_function("cut by jieba-rs", |b| {
        b.iter(|| {
            let words = documents.iter().map(|text| jieba.cut(text, true).len());
            words.sum::<usize>()
        });
    });
    group.finish();
    for &(name, tokens) in Tokens::NAMES {
        if !tokens.need_dictionary() {
            continue;
        }
        let options = TextOptions {
            tokens,
            ..TextOptions::SIMHASH
        };
        measure_options(c, name, &documents, &options);
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

criterion_group!(
    benches,
    texts,
    passages,
    shared_passages,
    wide,
    words,
    features
);
criterion_main!(benches);
