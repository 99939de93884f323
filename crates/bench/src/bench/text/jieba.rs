//! The segmenter of `tokens => 'jieba'` by itself, in this process.
use super::super::session::{Time, times_here};
use anyhow::Result;
use jieba_rs::Jieba;
use std::hint::black_box;

/// The name of what is measured, over `t`.
pub const CUT: &str = "jieba-rs: cut(t, true)";

/// jieba-rs with its dictionary, and documents.
pub struct Cut {
    jieba: Jieba,
    lines: String,
}

impl Cut {
    /// Loads the dictionary. Each line is a document.
    pub fn new(lines: String) -> Self {
        let jieba = Jieba::new();
        Self { jieba, lines }
    }

    /// Times of splitting all documents into words, after it has been done once.
    pub fn times(&self) -> Result<Vec<Time>> {
        times_here(|| {
            for line in self.lines.lines() {
                black_box(self.jieba.cut(black_box(line), true));
            }
        })
    }
}
