//! Strategies for property tests, which generate texts and kinds of tokens, and a sink that lists
//! the features of a text.

use std::ops::Range;

use proptest::prelude::*;

use crate::feature_sink::FeatureSink;
use crate::options::{NamedOption, TextOptions, Tokens};

/// Characters that word segmentation or normalisation treats specially.
const TRICKY: &str = "aAzZ09__'.:,;\"- \t\r\n\u{B}\u{85}\u{A0}éÉßẞİıΣςσΑאبك한글ᄀ\u{1161}\u{11A8}\
    中文國字カタｶﾞかが゛゜。、，．：；！？「」（）１Ａａ_＿‘’“”·…\u{200C}\u{200D}\u{FEFF}\u{AD}\
    \u{300}\u{301}\u{307}\u{308}\u{323}\u{331}\u{338}\u{345}\u{3099}\u{FE0F}\u{E0101}HhIi🇩🇪👩\
    👍🏽\u{1F468}ﷺ㌖ﬁ①½²K℻ĳǆ\u{1100}\u{0E01}\u{0E33}\u{0E38}\u{0E48}क\u{93F}\u{94D}\u{958}𝒜𠀀豈\
    \u{1680}\u{3000}\u{2028}\u{0F73}\u{0344}";

/// Returns the options for a feature set whose features have `shingle` tokens each.
pub(crate) fn set_options(tokens: Tokens, shingle: usize) -> TextOptions {
    TextOptions {
        tokens,
        shingle,
        ..TextOptions::SET
    }
}

/// Returns a strategy for the kinds of tokens that need no dictionary.
pub(crate) fn any_tokens() -> impl Strategy<Value = Tokens> {
    let all = Tokens::NAMES.iter().map(|(_, tokens)| *tokens);
    let all: Vec<Tokens> = all.filter(|tokens| !tokens.need_dictionary()).collect();
    prop::sample::select(all)
}

/// Returns a strategy for texts that mix letters of several scripts, punctuation, random characters
/// and repetitions.
pub(crate) fn any_text() -> impl Strategy<Value = String> {
    let tricky: Vec<char> = TRICKY.chars().collect();
    let repeated = prop::sample::select(vec!["The Quick", "é", " ", "_", "中，", "a.", "1"]);
    let piece = prop_oneof![
        4 => prop::collection::vec(prop::sample::select(tricky), 0..12)
            .prop_map(|chars| chars.into_iter().collect::<String>()),
        2 => "[a-zA-Z0-9_'.:,; \\-\"\\n]{0,40}",
        2 => "[一-鿿]{0,8}",
        1 => "[а-яА-Я ]{0,20}",
        1 => "\\PC{0,8}",
        1 => any::<String>(),
        1 => (repeated, 0_usize..60).prop_map(|(text, n)| text.repeat(n)),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

/// Sink that collects the text of each feature, once for each occurrence, in text order.
pub(crate) struct FeatureTexts(pub Vec<String>);

impl FeatureSink for FeatureTexts {
    const IN_ORDER: bool = true;

    fn add_all(&mut self, bytes: &[u8], features: impl Iterator<Item = Range<usize>>) {
        let text = |feature: Range<usize>| str::from_utf8(&bytes[feature]).unwrap().to_owned();
        self.0.extend(features.map(text));
    }
}
