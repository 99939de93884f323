//! Measures jieba-rs, the segmenter behind `tokens => 'jieba'`, alone and in this process.
use super::super::session::{Time, times_here};
use anyhow::Result;
use jieba_rs::Jieba;
use std::hint::black_box;

/// Entry of [`Case::theirs`](super::Case::theirs) for jieba-rs, which the benchmark measures by
/// [`Cut::times`]. All other entries are SQL expressions that ClickHouse runs.
pub const CUT: &str = "jieba-rs: cut(t, true)";

/// Text segmenter jieba-rs, and the documents that it splits into words.
pub struct Cut {
    jieba: Jieba,
    lines: String,
}

impl Cut {
    /// Loads the dictionary of jieba-rs. Each line of `lines` is one document.
    pub fn new(lines: String) -> Self {
        let jieba = Jieba::new();
        Self { jieba, lines }
    }

    /// Returns the times of repeated runs, each of which splits all documents into words. The first
    /// run is not measured.
    pub fn times(&self) -> Result<Vec<Time>> {
        times_here(|| {
            for line in self.lines.lines() {
                black_box(self.jieba.cut(black_box(line), true));
            }
        })
    }
}
