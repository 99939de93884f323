//! Chinese words and keywords, compared with jieba-rs and with fixed values.

use std::collections::BTreeSet;

use jieba_rs::{Jieba, KeywordExtract, KeywordExtractConfig, TfIdf};
use neardup_sketch::options::{Tokens, Weight};
use neardup_sketch::{Sketcher, TextOptions, features};

/// Written for this test.
const ARTICLE: &str = "图书馆昨天宣布，新的阅览室将在下个月向公众开放。阅览室位于老城区的一座旧仓库里，\
    设计师保留了原来的砖墙和木梁，只在屋顶上开了几扇天窗。馆长说，他们用了三年时间筹集资金，\
    其中一半来自市民的捐款。新阅览室可以容纳两百名读者，并设有儿童区和多媒体教室。附近的居民表示，\
    他们期待在周末带孩子来读书。图书馆还计划举办系列讲座，邀请作家和科学家与读者见面。\
    不过，也有人担心停车位不足，会给周围的街道带来拥堵。市政府回应说，阅览室旁边将修建一座小型停车场，\
    并增加一条公交线路。图书馆的WiFi和咖啡厅将在开放当天一起启用，读者只要出示借书证就能免费上网。";

fn keywords(text: &str, keywords: usize, weight: Weight) -> Vec<neardup_sketch::Feature> {
    let options = TextOptions {
        tokens: Tokens::JiebaTfidf,
        keywords,
        weight,
        ..TextOptions::SIMHASH
    };
    features(text, &options, &mut || ())
}

/// Every pair of these characters. Some pairs are words with their own frequency, most are not.
#[test]
fn frequencies_are_those_of_jieba() {
    let chars: Vec<char> = "中国人民大学生活动物理工作家长江河北京城市场面对方法律师父母亲爱\
        情报告诉说话题目标准备用心"
        .chars()
        .collect();
    let pairs: Vec<String> = chars
        .iter()
        .flat_map(|a| chars.iter().map(move |b| format!("{a}{b}")))
        .collect();
    // A dictionary that has exactly these pairs, so that each is one word.
    let mut jieba = Jieba::empty();
    for pair in &pairs {
        jieba.add_word(pair, Some(1), None);
    }
    let tf_idf = TfIdf::default();
    let mut values = BTreeSet::new();
    for pair in &pairs {
        let theirs = tf_idf.extract_keywords(&jieba, pair, 1, vec![]);
        assert_eq!(theirs[0].keyword, *pair);
        let ours = neardup_sketch::tokens::jieba::inverse_document_frequency(pair);
        assert!(
            (ours - theirs[0].weight).abs() < 1e-6,
            "{pair}: {ours}, {}",
            theirs[0].weight
        );
        values.insert((ours * 1e6) as u64);
    }
    assert!(values.len() > 200, "{}", values.len());
}

#[test]
fn keywords_are_those_of_jieba() {
    let jieba = Jieba::new();
    let mut tf_idf = TfIdf::default();
    *tf_idf.config_mut() = KeywordExtractConfig::builder().use_hmm(true).build();
    let theirs = tf_idf.extract_keywords(&jieba, ARTICLE, 1000, vec![]);
    // jieba-rs divides by the number of all words except single characters.
    let scale = theirs[0].weight / (keywords(ARTICLE, 1, Weight::Tf)[0].weight as f64);
    for number in [1, 5, 10, 20, 50, 1000] {
        let ours = keywords(ARTICLE, number, Weight::Tf);
        assert_eq!(ours.len(), number.min(theirs.len()));
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert!(
                (ours.weight as f64 * scale / theirs.weight - 1.0).abs() < 1e-5,
                "{} {}",
                ours.text,
                theirs.keyword
            );
        }
        // The same words, except words with the same weight as the last one.
        let last = ours.last().unwrap().weight as f64 * scale;
        for word in theirs
            .iter()
            .filter(|word| word.weight > last * (1.0 + 1e-5))
        {
            assert!(
                ours.iter()
                    .any(|ours| ours.text == word.keyword.to_lowercase()),
                "{}",
                word.keyword
            );
        }
    }
}

#[test]
fn number_of_keywords_by_length() {
    assert_eq!(
        keywords(ARTICLE, 0, Weight::Sqrt).len(),
        ARTICLE.len() / 120
    );
    assert_eq!(
        keywords(&ARTICLE.repeat(40), 0, Weight::Sqrt).len(),
        keywords(ARTICLE, 1000, Weight::Set).len().min(200)
    );
    assert_eq!(keywords("图书馆", 0, Weight::Sqrt).len(), 1);
    assert_eq!(keywords("的 the of 在", 0, Weight::Sqrt).len(), 0);
}

/// One kind with the requested shingles, and keywords without.
#[test]
fn fingerprints_equal_their_features() {
    for (tokens, shingle) in [
        (Tokens::Jieba, 1),
        (Tokens::Jieba, 3),
        (Tokens::JiebaSearch, 2),
        (Tokens::JiebaTfidf, 1),
        (Tokens::JiebaTfidf, 3),
    ] {
        for weight in [Weight::Tf, Weight::Sqrt, Weight::Set] {
            let options = TextOptions {
                tokens,
                shingle,
                weight,
                ..TextOptions::SIMHASH
            };
            let features = features(ARTICLE, &options, &mut || ());
            let given = || features.iter().map(|f| (&f.text, f.weight as f64));
            assert_eq!(
                Sketcher::new(options).simhash64(ARTICLE, &mut || ()),
                neardup_sketch::simhash64_features(given()).unwrap()
            );
            assert_eq!(
                Sketcher::new(options).simhash128(ARTICLE, &mut || ()),
                neardup_sketch::simhash128_features(given()).unwrap()
            );
        }
    }
}

#[test]
fn fingerprints_never_change() {
    let fingerprint = |tokens, html, text: &str| {
        let options = TextOptions {
            tokens,
            html,
            ..TextOptions::SIMHASH
        };
        format!(
            "{:016x} {:032x}",
            Sketcher::new(options).simhash64(text, &mut || ()).unwrap(),
            Sketcher::new(options).simhash128(text, &mut || ()).unwrap()
        )
    };
    let page = format!(
        "<title>no</title><p>{}</p><script>no()</script>",
        ARTICLE.replace('。', "。</p><p>")
    );
    let mut wrong = Vec::new();
    for (tokens, expected) in [
        (
            Tokens::Jieba,
            "c25897b6cb451683 a72035a15e2104a09807c0fd05329639",
        ),
        (
            Tokens::JiebaSearch,
            "ce5a67deaac0b6a7 8b2817a13e2505e45a0460b505b2967b",
        ),
        (
            Tokens::JiebaTfidf,
            "88381f857b2af98b 6cfc7d39dfaa32951157e990daee7516",
        ),
        (
            Tokens::Word,
            "c2a58b9d2d6bfe3f 1692b2f7b636029bf88ae94975ec7594",
        ),
    ] {
        let got = fingerprint(tokens, false, ARTICLE);
        // Line breaks do not split words of an article whose sentences end there.
        assert_eq!(fingerprint(tokens, true, &page), got, "{tokens:?}");
        if got != expected {
            wrong.push(format!("(Tokens::{tokens:?}, \"{got}\")"));
        }
    }
    assert!(
        wrong.is_empty(),
        "changed fingerprints, as they are now:\n{}",
        wrong.join("\n")
    );
}
