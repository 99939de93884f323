//! jieba's dictionary with the words that users add. A process has one current dictionary.

use std::sync::{Arc, PoisonError, RwLock};

use jieba_rs::{Jieba, TokenizeMode};

use super::user_words::UserWords;
use crate::memory::ensure_available;
use crate::normalize::is_common_han;

/// Maximum bytes of memory that loading the dictionary takes, without user words. The number is a
/// measurement, rounded up.
pub const LOAD_BYTES: usize = 48 << 20;

/// Words of jieba's dictionary that contain capital letters. A text in its normal form has no
/// capitals, so these words are also added in lower case.
const WITH_CAPITALS: &str = "\
    4S店 AA制 AB型 AT&T A型 A座 A股 A轮 BB机 BP机 B型 B座 B股 B超 B轮 C# C++ CALL机 CD机 CD盒 C座 C盘 \
    C语言 D座 D版 D盘 E化 E座 E盘 E通 F座 F盘 G盘 H盘 H股 IC卡 IP卡 IP地址 IP电话 I盘 K党 K歌之王 N年 O型 PC机 PH值 QQ号 Q版 \
    RSS订阅 SIM卡 T台 T型台 T恤 T恤衫 T盘 U盘 VISA卡 X光 X光线 X射线 Z盘 大S 小S 江南Style 阿Q";
/// Frequency of each word of [`WITH_CAPITALS`] in jieba's dictionary.
const CAPITALS_FREQUENCY: usize = 3;

/// jieba's dictionary and the words that users added.
pub struct Dictionary {
    jieba: Jieba,
    user_words: UserWords,
}

/// Current dictionary of the process; `None` until it is loaded.
static CURRENT: RwLock<Option<Arc<Dictionary>>> = RwLock::new(None);

impl Dictionary {
    /// Loads jieba's dictionary and adds `user_words`.
    fn load(user_words: &UserWords) -> Self {
        let mut jieba = Jieba::new();
        for word in WITH_CAPITALS.split_whitespace() {
            jieba.add_word(&word.to_ascii_lowercase(), Some(CAPITALS_FREQUENCY), None);
        }
        // The frequencies are computed before any user word is added, so that the order of the user
        // words does not matter.
        let frequencies: Vec<_> = user_words
            .iter()
            .map(|(word, given)| {
                given.map_or_else(|| jieba.suggest_freq(word), |given| given as usize)
            })
            .collect();
        for ((word, _), frequency) in user_words.iter().zip(frequencies) {
            jieba.add_word(word, Some(frequency), None);
        }
        Self {
            jieba,
            user_words: user_words.clone(),
        }
    }

    /// Returns the current dictionary of the process. If there is none, loads it without user
    /// words.
    #[must_use]
    pub fn current() -> Arc<Self> {
        let current = CURRENT
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        current.unwrap_or_else(|| Self::with_words(&UserWords::default()))
    }

    /// Returns true if a dictionary is loaded and has exactly these user words.
    #[must_use]
    pub fn is_current(user_words: &UserWords) -> bool {
        let current = CURRENT.read().unwrap_or_else(PoisonError::into_inner);
        current
            .as_ref()
            .is_some_and(|current| current.user_words == *user_words)
    }

    /// Loads the dictionary with these user words, makes it the current dictionary of the process
    /// and returns it. This takes some tenths of a second and [`LOAD_BYTES`] of memory, unless the
    /// current dictionary already has these words.
    pub fn with_words(user_words: &UserWords) -> Arc<Self> {
        let mut current = CURRENT.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(current) = &*current
            && current.user_words == *user_words
        {
            return Arc::clone(current);
        }
        // The old dictionary is freed first, unless it is in use, so that two are not in memory at
        // once.
        *current = None;
        let loaded = Arc::new(Self::load(user_words));
        *current = Some(Arc::clone(&loaded));
        loaded
    }

    /// Checks that jieba can allocate the memory for splitting the text `run`, and unwinds
    /// otherwise. A failed allocation inside jieba would abort the process.
    fn ensure_room(run: &str) {
        /// Maximum length in bytes of a run that is not checked. Splitting such a run takes no more
        /// memory than the allocator of the process has in reserve ([`crate::memory`]).
        const SHORT: usize = 1 << 12;
        /// Maximum bytes of memory that jieba takes for each byte of a run: measured, and rounded
        /// up.
        const FACTOR: usize = 128;
        if run.len() > SHORT {
            ensure_available(FACTOR * run.len());
        }
    }

    /// Splits the text `run` by jieba in the mode `mode`, and calls `each` with each word. `run`
    /// consists of characters accepted by [`super::is_jieba`] and of punctuation between them.
    pub(super) fn cut(&self, run: &str, mode: TokenizeMode, mut each: impl FnMut(&str)) {
        Self::ensure_room(run);
        for token in self.jieba.tokenize(run, mode, true) {
            if is_word(token.word) {
                each(token.word);
            }
        }
    }
}

/// Returns true if a token of jieba is a word, not punctuation.
#[inline]
fn is_word(token: &str) -> bool {
    let bytes = token.as_bytes();
    match bytes.first_chunk() {
        Some(character) if is_common_han(character) => true,
        _ if bytes.first().is_some_and(|byte| !byte.is_ascii()) => {
            token.chars().next().is_some_and(super::is_han)
        }
        _ => (bytes.iter()).any(|byte| *byte >= 0x80 || byte.is_ascii_alphanumeric()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(dictionary: &Dictionary, text: &str) -> Vec<String> {
        let mut words = Vec::new();
        dictionary.cut(text, TokenizeMode::Default, |word| {
            words.push(word.to_owned())
        });
        words
    }

    #[test]
    fn words_with_capitals_are_known_in_lower_case() {
        let jieba = Jieba::new();
        let dictionary = Dictionary::load(&UserWords::default());
        for word in WITH_CAPITALS.split_whitespace() {
            assert!(jieba.has_word(word), "{word}");
            assert!(
                dictionary.jieba.has_word(&word.to_ascii_lowercase()),
                "{word}"
            );
        }
        assert_eq!(
            cut(&dictionary, "他在t台上穿t恤"),
            ["他", "在", "t台", "上", "穿", "t恤"]
        );
    }

    #[test]
    fn user_words_join_and_their_order_does_not_matter() {
        let plain = Dictionary::load(&UserWords::default());
        assert_eq!(
            cut(&plain, "李小福是创新办主任也是云计算方面的专家").join(" "),
            "李小福 是 创新 办 主任 也 是 云 计算 方面 的 专家"
        );
        let list = |list: &str| Dictionary::load(&UserWords::parse(list).unwrap());
        let (one, other) = (list("创新办,云计算 5"), list("云计算 5,创新办"));
        for dictionary in [&one, &other] {
            assert_eq!(
                cut(dictionary, "李小福是创新办主任也是云计算方面的专家").join(" "),
                "李小福 是 创新办 主任 也 是 云计算 方面 的 专家"
            );
        }
    }
}
