//! Buffer that holds the consecutive tokens of a text, of which shingles are made.

use crate::memory::GrowVec;

/// Maximum number of bytes of tokens whose memory is kept between texts.
const KEPT_BYTES: usize = 1 << 18;
/// Maximum number of token starts whose memory is kept between texts.
const KEPT_STARTS: usize = 1 << 15;

/// Tokens, each followed by one byte as a separator. After them there may be an open token: the
/// start of a token whose end was not added yet. It has no separator.
pub(crate) struct TokenBuffer {
    /// Tokens and separators in the first `len` bytes. The other bytes are unused.
    pub bytes: Vec<u8>,
    /// Number of bytes that the tokens and their separators use.
    pub len: usize,
    /// Byte offset of the start of each complete token. `starts[count]` is the start of the open
    /// token, or of the next token if none is open. Later elements are unused.
    pub starts: Vec<usize>,
    /// Number of complete tokens. The open token does not count.
    pub count: usize,
}

impl Default for TokenBuffer {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            len: 0,
            starts: vec![0],
            count: 0,
        }
    }
}

impl TokenBuffer {
    /// Drops all tokens, including the open token. Keeps the memory.
    pub fn clear(&mut self) {
        (self.len, self.count) = (0, 0);
        self.starts[0] = 0;
    }

    /// Frees memory that no token uses, beyond [`KEPT_BYTES`] and [`KEPT_STARTS`].
    pub fn shrink(&mut self) {
        self.bytes.truncate(KEPT_BYTES.max(self.len));
        self.bytes.shrink_to(KEPT_BYTES);
        self.starts.truncate(KEPT_STARTS.max(self.count + 1));
        self.starts.shrink_to(KEPT_STARTS);
    }

    /// Returns the byte offset at which the open token starts, or the next token if none is open.
    #[inline(always)]
    pub fn open_start(&self) -> usize {
        self.starts[self.count]
    }

    /// Makes room for `bytes` more bytes and `tokens` more tokens.
    #[inline(always)]
    pub fn make_room(&mut self, bytes: usize, tokens: usize) {
        if self.bytes.len() < self.len + bytes {
            let len = enlarged(self.bytes.len(), self.len + bytes);
            self.bytes.grow_exact(len, 0);
        }
        if self.starts.len() <= self.count + tokens {
            let len = enlarged(self.starts.len(), self.count + tokens + 1);
            self.starts.grow_exact(len, 0);
        }
    }

    /// Appends `part` to the open token. If no token is open, starts one: [`TokenBuffer::push`] or
    /// [`TokenBuffer::close`] must complete it.
    #[inline]
    pub fn push_part(&mut self, part: &[u8]) {
        self.make_room(part.len(), 0);
        self.bytes[self.len..][..part.len()].copy_from_slice(part);
        self.len += part.len();
    }

    /// Completes a token with the bytes `token` and `separator` after it. If a token is open,
    /// `token` is the last part of that token. Otherwise it is a whole token.
    #[inline]
    pub fn push(&mut self, token: &[u8], separator: u8) {
        let end = self.len + token.len();
        self.make_room(token.len() + 1, 1);
        copy_short(token, &mut self.bytes[self.len..end]);
        self.bytes[end] = separator;
        self.len = end + 1;
        self.count += 1;
        self.starts[self.count] = self.len;
    }

    /// Completes the open token, which must have at least one byte, by adding `separator`.
    #[inline(always)]
    pub fn close(&mut self, separator: u8) {
        debug_assert!(self.len > self.open_start(), "an empty token");
        self.make_room(1, 1);
        self.bytes[self.len] = separator;
        self.len += 1;
        self.count += 1;
        self.starts[self.count] = self.len;
    }

    /// Drops the last token. No token may be open.
    pub fn drop_last(&mut self) {
        self.count -= 1;
        self.len = self.open_start();
    }

    /// Drops the first `tokens` tokens. Returns the number of bytes dropped.
    pub fn drop_first(&mut self, tokens: usize) -> usize {
        let from = self.starts[tokens];
        self.bytes.copy_within(from..self.len, 0);
        self.len -= from;
        self.starts.copy_within(tokens..=self.count, 0);
        self.count -= tokens;
        self.starts[..=self.count]
            .iter_mut()
            .for_each(|start| *start -= from);
        from
    }

    /// Drops complete tokens that consist of `_` alone, because a segment of `_` alone is not a
    /// word. Looks only at the tokens from index `first` on, and keeps the open token.
    #[cold]
    pub fn drop_underscores(&mut self, first: usize) {
        let (mut kept, mut start) = (first, self.starts[first]);
        for token in first..self.count {
            // Read before the assignment to `starts[kept]` may overwrite the element.
            let next = self.starts[token + 1];
            if self.bytes[start..next - 1].iter().any(|&byte| byte != b'_') {
                let to = self.starts[kept];
                self.bytes.copy_within(start..next, to);
                kept += 1;
                self.starts[kept] = to + next - start;
            }
            start = next;
        }
        let to = self.starts[kept];
        self.bytes.copy_within(start..self.len, to);
        self.len = to + self.len - start;
        self.count = kept;
    }
}

/// Copies bytes to a slice of equal length. Most tokens have a few bytes, for which calling the
/// general copy function takes longer than two overlapping copies of fixed length.
#[inline(always)]
fn copy_short(from: &[u8], to: &mut [u8]) {
    match from.len() {
        1..4 => copy_ends::<1>(from, to, from.len() / 2),
        4..8 => copy_ends::<4>(from, to, 0),
        8..=16 => copy_ends::<8>(from, to, 0),
        _ => to.copy_from_slice(from),
    }
}

/// Copies the first and the last `N` bytes, and the byte at `middle`. The slices have at least `N`
/// bytes.
#[inline(always)]
fn copy_ends<const N: usize>(from: &[u8], to: &mut [u8], middle: usize) {
    if let (Some(first), Some(last)) = (from.first_chunk::<N>(), from.last_chunk::<N>()) {
        to[middle] = from[middle];
        to[..N].copy_from_slice(first);
        let at = to.len() - N;
        to[at..].copy_from_slice(last);
    }
}

/// Returns the length to which a vector of length `len` is enlarged if it needs at least `needed`
/// elements.
#[cold]
fn enlarged(len: usize, needed: usize) -> usize {
    needed.next_multiple_of(1 << 12).max(len * 3 / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tokens(buffer: &TokenBuffer) -> Vec<String> {
        let range = |at: usize| buffer.starts[at]..buffer.starts[at + 1] - 1;
        let text = |at| String::from_utf8(buffer.bytes[range(at)].to_vec()).unwrap();
        (0..buffer.count).map(text).collect()
    }

    #[test]
    fn tokens_of_any_length_are_pushed() {
        let text: Vec<u8> = (0..100).collect();
        let mut buffer = TokenBuffer::default();
        for len in 0..40 {
            buffer.push(&text[len..2 * len], b' ');
            let [start, end] = [buffer.starts[len], buffer.starts[len + 1]];
            assert_eq!(&buffer.bytes[start..end - 1], &text[len..2 * len], "{len}");
            assert_eq!(buffer.bytes[end - 1], b' ');
        }
    }

    proptest! {
        #[test]
        fn tokens_are_dropped(
            words in prop::collection::vec("[a_]{1,3}", 0..40),
            open in "[a_]{0,3}",
            first in 0_usize..40,
        ) {
            let mut buffer = TokenBuffer::default();
            for word in &words {
                buffer.push_part(word.as_bytes());
                buffer.close(b' ');
            }
            buffer.push_part(open.as_bytes());
            let first = first.min(words.len());
            buffer.drop_underscores(first);
            let kept = |at: usize, word: &str| at < first || word.contains('a');
            let mut expected: Vec<String> = (words.iter().enumerate())
                .filter(|&(at, word)| kept(at, word))
                .map(|(_, word)| word.clone())
                .collect();
            prop_assert_eq!(&tokens(&buffer), &expected);
            prop_assert_eq!(&buffer.bytes[buffer.open_start()..buffer.len], open.as_bytes());
            let dropped = buffer.drop_first(first / 2);
            let gone: Vec<String> = expected.drain(..first / 2).collect();
            prop_assert_eq!(dropped, gone.iter().map(|word| word.len() + 1).sum::<usize>());
            prop_assert_eq!(tokens(&buffer), expected);
            prop_assert_eq!(&buffer.bytes[buffer.open_start()..buffer.len], open.as_bytes());
        }
    }
}
