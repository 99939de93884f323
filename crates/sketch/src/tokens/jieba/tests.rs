//! Tests of the jieba tokenizer.

use super::*;
use crate::normalize::normalized;
use proptest::prelude::*;

fn words(text: &str, mode: TokenizeMode) -> Vec<String> {
    let mut words = Vec::new();
    let each = &mut |word: &str| words.push(word.to_owned());
    tokenize(
        &Dictionary::current(),
        mode,
        text,
        &mut String::new(),
        each,
        &mut || (),
    );
    words
}

fn cut(text: &str) -> String {
    words(text, TokenizeMode::Default).join(" ")
}

/// Golden values: stored fingerprints depend on the words of a text, so the words never change.
#[test]
fn words_never_change() {
    for (text, expected) in [
        ("", ""),
        ("。！？ \n", ""),
        ("我来到北京清华大学", "我 来到 北京 清华大学"),
        ("他来到了网易杭研大厦", "他 来到 了 网易 杭研 大厦"),
        (
            "小明硕士毕业于中国科学院计算所，后在日本京都大学深造",
            "小明 硕士 毕业 于 中国科学院 计算所 后 在 日本京都大学 深造",
        ),
        (
            "工信处女干事每月经过下属科室都要亲口交代24口交换机等技术性器件的安装工作",
            "工信处 女干事 每月 经过 下属 科室 都 要 亲口 交代 24 口 交换机 等 技术性 器件 的 安装 工作",
        ),
        ("結婚的和尚未結婚的", "結婚 的 和 尚未 結婚 的"),
        ("南京市长江大桥", "南京市 长江大桥"),
        // ASCII within Chinese, as jieba splits it.
        (
            "我用Python3.12写程序，成功率99.5%",
            "我用 python3.12 写 程序 成功率 99.5%",
        ),
        ("他的Ｔ恤和X光片，C++语言", "他 的 t恤 和 x光 片 c++ 语言"),
        ("这是well-known的", "这是 well-known 的"),
        ("价格是3,000元", "价格 是 3,000 元"),
        ("版本V1.2.3发布", "版本 v1.2.3 发布"),
        // Without Chinese, words by UAX 29.
        (
            "The well-known café costs $3,000.50!",
            "the well known cafe\u{301} costs 3,000.50",
        ),
        ("Привет, мир", "привет мир"),
        ("don't 中国", "don't 中国"),
        // Several scripts next to each other.
        ("我喜欢café和naïve的人", "我 喜欢 café 和 naïve 的 人"),
        (
            "東京に行きました。カタカナ",
            "東京 に 行 き ま し た カタカナ",
        ),
        ("한국어와 中国语言", "한국어와 中国 语言"),
        ("爱😀中国🇨🇳人", "爱 中国 人"),
        ("葛\u{E0100}飾区、㊗️新年快乐！", "葛飾区 祝 新年快乐"),
        ("𠀀𠀁丽", "𠀀𠀁 丽"),
    ] {
        let expected = normalized(expected);
        assert_eq!(cut(text), expected, "{text:?}");
    }
    let search = |text| words(text, TokenizeMode::Search).join(" ");
    assert_eq!(
        search("小明硕士毕业于中国科学院计算所，后在日本京都大学深造"),
        "小明 硕士 毕业 于 中国 科学 学院 科学院 中国科学院 计算 计算所 后 在 日本 京都 大学 日本京都大学 深造"
    );
    assert_eq!(search("型号WES-5.4.5的机器"), "型号 wes wes-5.4.5 的 机器");
}

/// Returns the words that jieba-rs finds in `run`, without cutting `run` into parts first.
fn by_jieba(run: &str, mode: TokenizeMode) -> Vec<String> {
    let mut words = Vec::new();
    Dictionary::current().cut(run, mode, |word| words.push(word.to_owned()));
    words
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn chinese_is_cut_by_jieba(
        runs in prop::collection::vec(
            "[一-龥a-c1-3+#&._%-]{0,4}[的一是在不了有和人这中大为上个国我以要他][一-龥a-c1-3+#&._%-]{0,9}",
            0..8,
        ),
    ) {
        let text = runs.join("。 ");
        for mode in [TokenizeMode::Default, TokenizeMode::Search] {
            let expected: Vec<String> = runs.iter().flat_map(|s| by_jieba(s, mode)).collect();
            prop_assert_eq!(words(&text, mode), expected);
        }
    }

    /// Cutting a text into parts does not change the words.
    #[test]
    fn parts_do_not_matter(text in crate::test_texts::any_text()) {
        let normal = normalized(&text);
        let mut expected = Vec::new();
        let each = &mut |word: &str| expected.push(word.to_owned());
        let scripts = Scripts {
            pure: false,
            ..Scripts::CHINESE
        };
        split_part(&Dictionary::current(), TokenizeMode::Default, &normal, scripts, each);
        prop_assert_eq!(words(&text, TokenizeMode::Default), expected);
    }

    /// Passing stretches of Chinese and punctuation to jieba without normalisation does not change
    /// the words.
    #[test]
    fn plain_stretches_do_not_matter(
        text in "([中国人民大学生活的一是在不了有和北京]{1,9}[，。、：；！？“”‘’（）《》 —\n/]{1,2}\
            ([ab1-3.．％é\u{301}\u{200B}カか…]{1,2}[，。]?)?){0,60}",
        search in any::<bool>(),
    ) {
        let mode = if search { TokenizeMode::Search } else { TokenizeMode::Default };
        let normal = normalized(&text);
        let mut expected = Vec::new();
        let each = &mut |word: &str| expected.push(word.to_owned());
        let scripts = Scripts {
            pure: false,
            ..Scripts::CHINESE
        };
        split_part(&Dictionary::current(), mode, &normal, scripts, each);
        prop_assert_eq!(words(&text, mode), expected);
    }

    /// Without Chinese, the words equal the words of `tokens => 'word'`.
    #[test]
    fn other_scripts_are_cut_as_ever(text in "[a-zé .,'\"_а-я0-9カ한\\-%]{0,60}") {
        let mut expected = Vec::new();
        each_word(&normalized(&text), &mut |word| expected.push(word.to_owned()));
        prop_assert_eq!(words(&text, TokenizeMode::Default), expected);
    }
}

/// Long texts are split in parts of bounded length, with and without cut positions, and `check` is
/// called meanwhile.
#[test]
fn long_texts_are_cut_in_parts() {
    for (unit, word) in [
        ("中国", true),
        ("北京大学，", true),
        ("a", false),
        ("的", true),
        ("é中", false),
        ("龘", false),
        ("ກ", false),
        ("，", false),
        ("a中-", false),
        ("\n", false),
        ("\r\n", false),
        ("\u{3000}", false),
        ("’", false),
        ("①", false),
        ("ﷺ", false),
    ] {
        let text = unit.repeat(1_000_000 / unit.len());
        let (mut bytes, mut longest, mut checks) = (0, 0, 0);
        let each = &mut |found: &str| {
            bytes += found.len();
            longest = longest.max(found.len());
        };
        tokenize(
            &Dictionary::current(),
            TokenizeMode::Default,
            &text,
            &mut String::new(),
            each,
            &mut || checks += 1,
        );
        assert!(checks >= 30, "{unit}: {checks}");
        assert!(longest <= MAX_PART, "{unit}: {longest}");
        if word {
            let expected = unit.trim_end_matches('，').len() * (text.len() / unit.len());
            assert_eq!(bytes, expected, "{unit}");
        }
    }
}

#[test]
fn check_may_unwind() {
    let text = "我来到北京清华大学。".repeat(10_000);
    let cancelled = std::panic::catch_unwind(|| {
        let each = &mut |_: &str| ();
        tokenize(
            &Dictionary::current(),
            TokenizeMode::Default,
            &text,
            &mut String::new(),
            each,
            &mut || {
                std::panic::resume_unwind(Box::new(()));
            },
        );
    });
    assert!(cancelled.is_err());
    assert_eq!(cut("我来到北京清华大学"), "我 来到 北京 清华大学");
}
