//! Lines of a text, as [`super`] defines them.

use super::whitespace::{is_line_end, is_space};
use crate::feature_sink::FeatureSink;
use crate::normalize::each_piece;
use crate::shingle::Shingles;

/// Adds the lines of `text` to `shingles`, which passes the features to `sink`. Calls `check` every
/// few 100 kB. `buffer` is working memory.
pub(crate) fn tokenize(
    text: &str,
    buffer: &mut String,
    shingles: &mut Shingles,
    sink: &mut impl FeatureSink,
    check: &mut dyn FnMut(),
) {
    // True if the line is not empty, and if white space followed.
    let (mut open, mut space) = (false, false);
    each_piece(text, buffer, check, |piece| {
        let mut rest = piece;
        while let Some(first) = rest.chars().next() {
            if is_space(first) {
                if is_line_end(first) && std::mem::take(&mut open) {
                    shingles.end_token(sink);
                }
                space = open;
                rest = &rest[first.len_utf8()..];
                continue;
            }
            if std::mem::take(&mut space) {
                shingles.push_part(b" ");
            }
            let len = rest.find(is_space).unwrap_or(rest.len());
            shingles.push_part(&rest.as_bytes()[..len]);
            open = true;
            rest = &rest[len..];
        }
    });
    if open {
        shingles.end_token(sink);
    }
}
