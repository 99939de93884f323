//! Configurations that `cargo xtask eval` compares: ways to make a fingerprint or a signature of a
//! text.
use super::kind::{HASHES, Kind, Sketch};
use super::set::Set;
use neardup_sketch::common_features::{CommonFeatureCollector, FeatureSet};
use neardup_sketch::minhash::{HashFamily, Scheme};
use neardup_sketch::minhash_fingerprint::FingerprintBuilder;
use neardup_sketch::options::{TextOptions, Tokens, Weight};
use neardup_sketch::{Sketcher, features, simhash64_hashes};
use std::collections::HashMap;

/// Way to make fingerprints or signatures of texts, which `cargo xtask eval` measures.
pub struct Configuration {
    /// Name of the configuration in the tables.
    pub name: &'static str,
    /// Kind of the fingerprints or signatures that the configuration makes.
    pub kind: Kind,
    /// True if the plots show this configuration.
    pub plotted: bool,
    /// Function that prepares the configuration for a set and returns the function that makes the
    /// sketch (fingerprint or signature) of one text. It may read all texts of the set, for example
    /// to count the texts in which a feature occurs.
    pub prepare: fn(&Set) -> Maker,
}

/// Function that makes the sketch (fingerprint or signature) of a text. Returns `None` for a text
/// without features.
pub type Maker = Box<dyn Fn(&str) -> Option<Sketch> + Sync>;

const fn words(shingle: usize, weight: Weight) -> TextOptions {
    TextOptions {
        tokens: Tokens::Word,
        shingle,
        weight,
        ..TextOptions::SIMHASH
    }
}

const fn characters(shingle: usize, weight: Weight) -> TextOptions {
    TextOptions {
        tokens: Tokens::Char,
        ..words(shingle, weight)
    }
}

const fn jieba(shingle: usize, weight: Weight) -> TextOptions {
    TextOptions {
        tokens: Tokens::Jieba,
        ..words(shingle, weight)
    }
}

fn simhash(options: TextOptions) -> Maker {
    Box::new(move |text| {
        let fingerprint = Sketcher::new(options).simhash64(text, &mut || ())?;
        Some(Sketch::Bits(fingerprint.into()))
    })
}

fn simhash128(options: TextOptions) -> Maker {
    Box::new(move |text| {
        Sketcher::new(options)
            .simhash128(text, &mut || ())
            .map(Sketch::Bits)
    })
}

fn minhash64(options: TextOptions) -> Maker {
    Box::new(move |text| {
        let fingerprint = Sketcher::new(options).minhash64(text, &mut || ())?;
        Some(Sketch::Bits(fingerprint.into()))
    })
}

fn minhash128(options: TextOptions) -> Maker {
    Box::new(move |text| {
        Sketcher::new(options)
            .minhash128(text, &mut || ())
            .map(Sketch::Bits)
    })
}

/// Returns a function that makes `minhash64` fingerprints of texts from rare features only. A
/// feature is ignored if more than 2 % of the documents of `set` have it.
fn rare(set: &Set, options: TextOptions) -> Maker {
    let mut sketcher = Sketcher::new(options);
    let mut collector = CommonFeatureCollector::new(Vec::new(), &options, 0.02, usize::MAX);
    for text in &set.texts {
        collector.add(&mut sketcher, text, &mut || ());
    }
    let stored = collector.finish(&mut || ());
    let common = FeatureSet::from_stored(&stored).expect("its own form");
    Box::new(move |text| {
        let mut sketcher = Sketcher::new(options);
        let fingerprint = sketcher.minhash64_without(text, Some(&common), &mut || ())?;
        Some(Sketch::Bits(fingerprint.into()))
    })
}

fn signature(options: TextOptions) -> Maker {
    let family = HashFamily::new(Scheme::Neardup1, HASHES as usize, 1).expect("a seed");
    Box::new(move |text| {
        Sketcher::new(options)
            .signature(text, &family, &mut || ())
            .map(Sketch::Minima)
    })
}

/// Shorthand for a [`Configuration`]: name, kind, whether the plots show it, and `prepare`.
macro_rules! configuration {
    ($name:literal, $kind:ident, $plotted:literal, $prepare:expr) => {
        Configuration {
            name: $name,
            kind: Kind::$kind,
            plotted: $plotted,
            prepare: $prepare,
        }
    };
}

/// Configurations that the SQL functions of neardup offer.
pub const CONFIGURATIONS: &[Configuration] = &[
    configuration!("simhash word 1 tf", Simhash64, false, |_| simhash(words(
        1,
        Weight::Tf
    ))),
    configuration!("simhash word 1 sqrt", Simhash64, true, |_| simhash(words(
        1,
        Weight::Sqrt
    ))),
    configuration!("simhash word 2 set", Simhash64, false, |_| simhash(words(
        2,
        Weight::Set
    ))),
    configuration!("simhash word 2 log", Simhash64, false, |_| simhash(words(
        2,
        Weight::Log
    ))),
    configuration!("simhash word 2 sqrt", Simhash64, true, |_| simhash(words(
        2,
        Weight::Sqrt
    ))),
    configuration!("simhash word 2 tf", Simhash64, false, |_| simhash(words(
        2,
        Weight::Tf
    ))),
    configuration!("simhash word 3 set", Simhash64, false, |_| simhash(words(
        3,
        Weight::Set
    ))),
    configuration!("simhash char 5 sqrt", Simhash64, true, |_| simhash(
        characters(5, Weight::Sqrt)
    )),
    configuration!("simhash128 word 2 sqrt", Simhash128, true, |_| simhash128(
        words(2, Weight::Sqrt)
    )),
    configuration!("minhash64 word 1", Minhash64, false, |_| minhash64(words(
        1,
        Weight::Set
    ))),
    configuration!("minhash64 word 2", Minhash64, false, |_| minhash64(words(
        2,
        Weight::Set
    ))),
    configuration!("minhash64 word 3", Minhash64, true, |_| minhash64(words(
        3,
        Weight::Set
    ))),
    configuration!("minhash64 char 5", Minhash64, false, |_| minhash64(
        characters(5, Weight::Set)
    )),
    configuration!("minhash128 word 3", Minhash128, true, |_| minhash128(
        words(3, Weight::Set)
    )),
    configuration!("minhash K=128 word 3", Signature, true, |_| signature(
        words(3, Weight::Set)
    )),
    configuration!("minhash K=128 char 5", Signature, false, |_| signature(
        characters(5, Weight::Set)
    )),
    configuration!("simhash jieba 1 sqrt", Simhash64, false, |_| simhash(
        jieba(1, Weight::Sqrt)
    )),
    configuration!("simhash jieba 2 sqrt", Simhash64, false, |_| simhash(
        jieba(2, Weight::Sqrt)
    )),
    configuration!("simhash jieba_tfidf", Simhash64, false, |_| {
        simhash(TextOptions {
            tokens: Tokens::JiebaTfidf,
            ..jieba(1, Weight::Tf)
        })
    }),
    configuration!("minhash64 jieba 2", Minhash64, false, |_| minhash64(jieba(
        2,
        Weight::Set
    ))),
    configuration!("minhash64 word 3 rare", Minhash64, false, |set| rare(
        set,
        words(3, Weight::Set)
    )),
];

/// Configurations that are measured only with `--experiments`. They show the possible gain of three
/// changes: other weights, features of two lengths together, and texts without punctuation. Some
/// weights use the inverse document frequency (`idf`) of a feature. It is computed from all texts
/// of the set, so an SQL function, which gets only one text, could not use it.
pub const EXPERIMENTS: &[Configuration] = &[
    configuration!("word 1 sqrt idf", Simhash64, false, |set| idf(
        set,
        words(1, Weight::Sqrt)
    )),
    configuration!("word 2 sqrt idf", Simhash64, false, |set| idf(
        set,
        words(2, Weight::Sqrt)
    )),
    configuration!("word 1 sqrt x length", Simhash64, false, |_| by_length(
        words(1, Weight::Sqrt),
        1
    )),
    configuration!("word 1 sqrt x length^2", Simhash64, false, |_| by_length(
        words(1, Weight::Sqrt),
        2
    )),
    configuration!("word 2 sqrt x length", Simhash64, false, |_| by_length(
        words(2, Weight::Sqrt),
        1
    )),
    configuration!("word 1+2 sqrt", Simhash64, false, |_| mixed([
        words(1, Weight::Sqrt),
        words(2, Weight::Sqrt)
    ])),
    configuration!("word 2+3 sqrt", Simhash64, false, |_| mixed([
        words(2, Weight::Sqrt),
        words(3, Weight::Sqrt)
    ])),
    configuration!("minhash64 word 1+2", Minhash64, false, |_| mixed_minima([
        words(1, Weight::Set),
        words(2, Weight::Set)
    ])),
    configuration!("minhash64 word 2+3", Minhash64, false, |_| mixed_minima([
        words(2, Weight::Set),
        words(3, Weight::Set)
    ])),
    configuration!("char 4 set", Simhash64, false, |_| simhash(characters(
        4,
        Weight::Set
    ))),
    configuration!("char 5 set", Simhash64, false, |_| simhash(characters(
        5,
        Weight::Set
    ))),
    configuration!("char 7 sqrt", Simhash64, false, |_| simhash(characters(
        7,
        Weight::Sqrt
    ))),
    configuration!("word 2 sqrt, letters", Simhash64, false, |_| {
        letters(simhash(words(2, Weight::Sqrt)))
    }),
    configuration!("char 5 sqrt, letters", Simhash64, false, |_| {
        letters(simhash(characters(5, Weight::Sqrt)))
    }),
    configuration!("char 5 minhash64, letters", Minhash64, false, |_| {
        letters(minhash64(characters(5, Weight::Set)))
    }),
    configuration!("word 3 sqrt", Simhash64, false, |_| simhash(words(
        3,
        Weight::Sqrt
    ))),
];

/// Returns the 64-bit simhash of features, given as pairs of hash and weight; `None` if no weight
/// is above zero.
fn of_weighted(weighted: impl Iterator<Item = (u64, f32)>) -> Option<Sketch> {
    let fingerprint = simhash64_hashes(weighted).expect("no weight is out of range")?;
    Some(Sketch::Bits(fingerprint.into()))
}

fn idf(set: &Set, options: TextOptions) -> Maker {
    let mut documents: HashMap<u64, u32> = HashMap::new();
    for text in &set.texts {
        for feature in features(text, &options, &mut || ()) {
            *documents.entry(feature.hash).or_default() += 1;
        }
    }
    let count = set.texts.len() as f32;
    Box::new(move |text| {
        of_weighted(
            features(text, &options, &mut || ())
                .into_iter()
                .map(|feature| {
                    let idf = (count / documents[&feature.hash] as f32).ln();
                    (feature.hash, feature.weight as f32 * idf)
                }),
        )
    })
}

/// Returns a function that makes simhashes of texts. The weight of each feature is multiplied by
/// `length^power`. The length is the number of characters of the feature, where Chinese, Japanese
/// and Korean characters count twice.
fn by_length(options: TextOptions, power: i32) -> Maker {
    Box::new(move |text| {
        of_weighted(
            features(text, &options, &mut || ())
                .into_iter()
                .map(|feature| {
                    let wide = feature.text.chars().filter(|c| *c >= '\u{2E80}').count();
                    let length = feature.text.chars().count() + wide;
                    (
                        feature.hash,
                        feature.weight as f32 * (length as f32).powi(power),
                    )
                }),
        )
    })
}

fn mixed(parts: [TextOptions; 2]) -> Maker {
    Box::new(move |text| {
        of_weighted(parts.iter().flat_map(|options| {
            let all = features(text, options, &mut || ()).into_iter();
            all.map(|feature| (feature.hash, feature.weight as f32))
        }))
    })
}

fn mixed_minima(parts: [TextOptions; 2]) -> Maker {
    Box::new(move |text| {
        let hashes = parts.iter().flat_map(|options| {
            let all = features(text, options, &mut || ()).into_iter();
            all.map(|feature| feature.hash)
        });
        let mut minima = FingerprintBuilder::<1>::default();
        minima.add(&hashes.collect::<Vec<_>>());
        let [fingerprint] = minima.finish(&mut || ())?;
        Some(Sketch::Bits(fingerprint.into()))
    })
}

/// Returns a function that makes the sketch of a text without punctuation. It replaces punctuation
/// by white space, removes white space next to ideographs or syllables, and calls `maker` with the
/// changed text.
fn letters(maker: Maker) -> Maker {
    Box::new(move |text| {
        let mut plain = String::with_capacity(text.len());
        let mut gap = false;
        for c in text.chars() {
            if !c.is_alphanumeric() {
                gap = true;
                continue;
            }
            let wide = |c: char| c >= '\u{2E80}';
            if gap && !wide(c) && !plain.ends_with(wide) {
                plain.push(' ');
            }
            gap = false;
            plain.push(c);
        }
        maker(&plain)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_configuration_makes_fingerprints_of_its_width() {
        let set = Set {
            name: "two".to_owned(),
            texts: vec!["one two three four".to_owned(), "five six seven".to_owned()],
            near: HashMap::new(),
            ignored: HashSet::new(),
            listed: Vec::new(),
            cluster: vec![0, 1],
        };
        let mut seen = HashMap::new();
        for configuration in CONFIGURATIONS.iter().chain(EXPERIMENTS) {
            let maker = (configuration.prepare)(&set);
            let [a, b] = [0, 1].map(|i| maker(&set.texts[i]).expect("words have a fingerprint"));
            assert_ne!(a, b, "{}", configuration.name);
            match &a {
                Sketch::Bits(bits) => {
                    assert_eq!(
                        bits >> 64 != 0,
                        configuration.kind.width() == 128,
                        "{}",
                        configuration.name
                    );
                }
                Sketch::Minima(minima) => {
                    assert_eq!(minima.len(), configuration.kind.width() as usize)
                }
            }
            assert_eq!(maker(""), None, "{}", configuration.name);
            if let Some(other) = seen.insert(configuration.name, a) {
                panic!("{} twice: {other:?}", configuration.name);
            }
        }
    }
}
