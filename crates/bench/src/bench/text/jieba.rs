//! Measures jieba-rs, the segmenter behind `tokens => 'jieba'`, alone and in this process.
use super::super::session::{Time, times_here};
use anyhow::Result;
use jieba_rs::Jieba;
use std::hint::black_box;

/// Name of the measurement of jieba-rs in the list of the other system's expressions over `t`.
pub const CUT: &str = "jieba-rs: cut(t, true)";

/// jieba-rs with its dictionary, and the documents that it splits into words, one per line.
pub struct Cut {
    jieba: Jieba,
    lines: String,
}

impl Cut {
    /// Loads the dictionary of jieba-rs. Each line of `lines` is a document.
    pub fn new(lines: String) -> Self {
        let jieba = Jieba::new();
        Self { jieba, lines }
    }

    /// Returns the times of splitting all documents into words. The first run is not measured.
    pub fn times(&self) -> Result<Vec<Time>> {
        times_here(|| {
            for line in self.lines.lines() {
                black_box(self.jieba.cut(black_box(line), true));
            }
        })
    }
}
