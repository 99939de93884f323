//! Features of consecutive characters.
//!
//! The characters are those of the text's normal form; white space, however much, counts as one space
//! between others and as nothing at the ends (Leskovec, Rajaraman, Ullman, "Mining of Massive
//! Datasets", section 3.2.2). A feature is the characters one after the other, nothing between them.

use super::spaces::is_space;
use crate::normalize::each_piece;
use crate::shingle::FeatureSink;

/// Finds features of characters; reusable.
#[derive(Default)]
pub(crate) struct Chars {
    /// Characters of which the features are still to be found.
    bytes: Vec<u8>,
    /// Where they begin.
    starts: Vec<u32>,
    /// A piece of the text in its normal form.
    normal: String,
}

impl Chars {
    /// Feeds the features of `width` characters of `text` to `sink`; one of fewer characters is a
    /// single feature. Calls `check` every few 100 kB.
    pub fn features(
        &mut self,
        text: &str,
        width: usize,
        sink: &mut impl FeatureSink,
        check: &mut dyn FnMut(),
    ) {
        let Self {
            bytes,
            starts,
            normal,
        } = self;
        bytes.clear();
        starts.clear();
        let mut any = false;
        // Whether a character was seen, and white space since.
        let (mut begun, mut space) = (false, false);
        each_piece(text, normal, check, |piece| {
            for c in piece.chars() {
                if is_space(c) {
                    space = true;
                    continue;
                }
                if std::mem::take(&mut space) && begun {
                    starts.push(bytes.len() as u32);
                    bytes.push(b' ');
                }
                begun = true;
                starts.push(bytes.len() as u32);
                bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            if starts.len() >= width {
                any = true;
                hand_on(bytes, starts, width, sink);
            }
        });
        if !any && !bytes.is_empty() {
            sink.add_all(std::iter::once(&bytes[..]));
        }
    }
}

/// Hands on all features; keeps the characters that the next ones begin with.
fn hand_on(bytes: &mut Vec<u8>, starts: &mut Vec<u32>, width: usize, sink: &mut impl FeatureSink) {
    let count = starts.len() + 1 - width;
    let end = |at: usize| starts.get(at).map_or(bytes.len(), |&end| end as usize);
    sink.add_all((0..count).map(|at| &bytes[starts[at] as usize..end(at + width)]));
    let from = end(count);
    bytes.drain(..from);
    starts.drain(..count);
    starts.iter_mut().for_each(|start| *start -= from as u32);
}
