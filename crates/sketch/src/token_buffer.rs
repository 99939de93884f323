//! Buffer of consecutive tokens.

use crate::memory::GrowVec;

/// Maximum bytes of the buffer kept between texts.
const KEPT_BYTES: usize = 1 << 18;
/// Maximum number of token starts kept between texts.
const KEPT_STARTS: usize = 1 << 15;

/// Tokens, each followed by one byte as a separator. The last token may be open: it has no
/// separator, and more bytes may follow.
pub(crate) struct TokenBuffer {
    /// The tokens up to `len`. The rest is unused.
    pub bytes: Vec<u8>,
    /// Number of bytes.
    pub len: usize,
    /// Start of each token and, at `count`, of the open or next token. The rest is unused.
    pub starts: Vec<usize>,
    /// Number of tokens that are not open.
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
    /// Drops all tokens.
    pub fn clear(&mut self) {
        (self.len, self.count) = (0, 0);
        self.starts[0] = 0;
    }

    /// Frees unused memory beyond what most texts need.
    pub fn shrink(&mut self) {
        self.bytes.truncate(KEPT_BYTES.max(self.len));
        self.bytes.shrink_to(KEPT_BYTES);
        self.starts.truncate(KEPT_STARTS.max(self.count + 1));
        self.starts.shrink_to(KEPT_STARTS);
    }

    /// Returns the start of the open or next token.
    #[inline(always)]
    pub fn open(&self) -> usize {
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

    /// Adds bytes to the open token.
    #[inline]
    pub fn push_part(&mut self, part: &[u8]) {
        self.make_room(part.len(), 0);
        self.bytes[self.len..][..part.len()].copy_from_slice(part);
        self.len += part.len();
    }

    /// Adds a whole token.
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

    /// Ends the open token, which must have at least one byte.
    #[inline(always)]
    pub fn close(&mut self, separator: u8) {
        debug_assert!(self.len > self.open(), "an empty token");
        self.make_room(1, 1);
        self.bytes[self.len] = separator;
        self.len += 1;
        self.count += 1;
        self.starts[self.count] = self.len;
    }

    /// Drops the last token. No token may be open.
    pub fn drop_last(&mut self) {
        self.count -= 1;
        self.len = self.open();
    }

    /// Drops the first tokens. Returns the number of bytes dropped.
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

    /// Drops the tokens from `first` on that consist of `_` alone, except an open token.
    #[cold]
    pub fn drop_underscores(&mut self, first: usize) {
        let (mut kept, mut start) = (first, self.starts[first]);
        for token in first..self.count {
            // Read before the entry may be overwritten.
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

/// Copies bytes to a slice of equal length. Most tokens have a few bytes, for which a call takes
/// longer than two overlapping copies.
#[inline(always)]
fn copy_short(from: &[u8], to: &mut [u8]) {
    match from.len() {
        1..4 => copy_ends::<1>(from, to, from.len() / 2),
        4..8 => copy_ends::<4>(from, to, 0),
        8..=16 => copy_ends::<8>(from, to, 0),
        _ => to.copy_from_slice(from),
    }
}

/// Copies the first and the last `N` bytes, and the byte at `middle`.
#[inline(always)]
fn copy_ends<const N: usize>(from: &[u8], to: &mut [u8], middle: usize) {
    if let (Some(first), Some(last)) = (from.first_chunk::<N>(), from.last_chunk::<N>()) {
        to[middle] = from[middle];
        to[..N].copy_from_slice(first);
        let at = to.len() - N;
        to[at..].copy_from_slice(last);
    }
}

/// Returns the new length of a buffer that needs at least `needed`.
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
            prop_assert_eq!(&buffer.bytes[buffer.open()..buffer.len], open.as_bytes());
            let dropped = buffer.drop_first(first / 2);
            let gone: Vec<String> = expected.drain(..first / 2).collect();
            prop_assert_eq!(dropped, gone.iter().map(|word| word.len() + 1).sum::<usize>());
            prop_assert_eq!(tokens(&buffer), expected);
            prop_assert_eq!(&buffer.bytes[buffer.open()..buffer.len], open.as_bytes());
        }
    }
}
