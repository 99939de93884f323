//! Input of the tokenizer, with calls of the cancellation check.

use std::convert::Infallible;

use html5gum::{Readable, Reader};

use crate::memory::ensure_available;

/// Maximum bytes returned at once.
const WINDOW: usize = 1 << 16;
/// Approximate bytes read between two calls of `check`.
const CHECK_BYTES: usize = 1 << 18;

/// Reads a page for the tokenizer, and calls `check` regularly.
pub(super) struct PageReader<'a> {
    page: &'a [u8],
    rest: &'a [u8],
    /// Length of the current run of letters, counted in whole intervals of `check`.
    letters: usize,
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
