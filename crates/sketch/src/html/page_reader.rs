//! Reads a page for the HTML tokenizer, and calls the cancellation check regularly.

use std::convert::Infallible;

use html5gum::{Readable, Reader};

use crate::memory::ensure_available;

/// Maximum number of bytes that [`PageReader`] returns in one call.
const WINDOW: usize = 1 << 16;
/// Approximate bytes of the page between two calls of the cancellation check `check`.
const CHECK_BYTES: usize = 1 << 18;

/// Reader of an HTML page, from which the tokenizer takes its input. Calls the cancellation check
/// `check` regularly.
pub(super) struct PageReader<'a> {
    page: &'a [u8],
    /// Part of the page that the tokenizer has not read yet.
    rest: &'a [u8],
    /// Number of bytes before the last call of `check` that are all ASCII letters. In some
    /// contexts, the tokenizer buffers all these letters. A call of `check` adds the bytes read
    /// since the previous call if they are all letters, and otherwise sets the number to 0.
    letters: usize,
    /// Number of bytes of the page that were read since the last call of `check`.
    unchecked: usize,
    check: &'a mut dyn FnMut(),
}

impl<'a> PageReader<'a> {
    /// Creates a reader at the start of `page`.
    pub fn new(page: &'a str, check: &'a mut dyn FnMut()) -> Self {
        Self {
            page: page.as_bytes(),
            rest: page.as_bytes(),
            letters: 0,
            unchecked: 0,
            check,
        }
    }

    /// Returns the next `len` bytes of the page, and moves the current position after them.
    #[inline(always)]
    fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(len);
        self.rest = rest;
        self.unchecked += len;
        if self.unchecked >= CHECK_BYTES {
            self.check();
        }
        taken
    }

    /// Calls the cancellation check. If the tokenizer may be buffering a long run of letters, also
    /// checks that memory for this buffer can be allocated, and unwinds otherwise.
    #[cold]
    fn check(&mut self) {
        let read = &self.page[..self.page.len() - self.rest.len()];
        let (_, last) = read.split_at(read.len() - self.unchecked);
        self.unchecked = 0;
        (self.check)();
        // In a script, for example, the tokenizer buffers all letters after `</`.
        if last.iter().all(u8::is_ascii_alphabetic) {
            self.letters += last.len();
            ensure_available(4 * (self.letters + CHECK_BYTES));
        } else {
            self.letters = 0;
        }
    }
}

impl Reader for PageReader<'_> {
    type Error = Infallible;

    #[inline(always)]
    fn read_byte(&mut self) -> Result<Option<u8>, Infallible> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        Ok(Some(self.take(1)[0]))
    }

    #[inline(always)]
    fn try_read_string(
        &mut self,
        expected: &[u8],
        case_sensitive: bool,
    ) -> Result<bool, Infallible> {
        let found = self
            .rest
            .to_reader()
            .try_read_string(expected, case_sensitive)?;
        if found {
            self.take(expected.len());
        }
        Ok(found)
    }

    #[inline(always)]
    fn read_until<'b>(
        &'b mut self,
        needle: &[u8],
        _: &'b mut [u8; 4],
    ) -> Result<Option<&'b [u8]>, Infallible> {
        let window = &self.rest[..self.rest.len().min(WINDOW)];
        let chunk = window
            .to_reader()
            .read_until(needle, &mut [0; 4])?
            .map(<[u8]>::len);
        Ok(chunk.map(|len| self.take(len)))
    }
}
