//! Text of the server's encoding as UTF-8, and back.
use std::borrow::Cow;
use std::ffi::CStr;
use std::io::Write;
use std::ops::RangeInclusive;

use neardup_sketch::memory::{Grow, GrowVec, copied};
use pgrx::pg_sys::{self, Datum, pg_enc};

use super::errors::UserError;
use super::memory::check_interrupts;
use super::{server, varlena};

/// The text in UTF-8, converted if the database has another encoding. A database in SQL_ASCII
/// does not know what its bytes mean: they are taken as UTF-8, and it is error 22021 if they
/// are not.
pub fn bytes_utf8(bytes: &[u8]) -> Cow<'_, str> {
    // Which are the same in all encodings of a database.
    if bytes.is_ascii()
        && let Ok(text) = simdutf8::compat::from_utf8(bytes)
    {
        return Cow::Borrowed(text);
    }
    // SAFETY: a conversion returns a new terminated string, or its argument if there is nothing to
    // convert, which is excluded here.
    unsafe {
        let encoding = pg_sys::GetDatabaseEncoding();
        let (from, to) = (encoding as pg_enc::Type, pg_enc::PG_UTF8);
        if from == to || from == pg_enc::PG_SQL_ASCII {
            return Cow::Borrowed(checked(bytes, from));
        }
        let source = bytes.as_ptr().cast_mut();
        let converted =
            pg_sys::pg_do_encoding_conversion(source, bytes.len() as i32, encoding, to as i32);
        // Copied, so that the server's memory can be given back: the text may be large.
        let text = copied(checked(CStr::from_ptr(converted.cast()).to_bytes(), to));
        pg_sys::pfree(converted.cast());
        Cow::Owned(text)
    }
}

/// Offsets in `bytes`, a text of the server's encoding, of ascending offsets in `text`, which is
/// the same in UTF-8. Each offset is the start of a character or the end.
pub fn server_offsets(bytes: &[u8], text: &str, offsets: &[usize]) -> Vec<usize> {
    let mut found = Vec::new();
    if bytes == text.as_bytes() {
        found.grow_by(offsets);
        return found;
    }
    let encoding = server::GetDatabaseEncoding();
    let length = |at: usize| {
        // SAFETY: the server checked the text, which has a whole character at this offset.
        unsafe { pg_sys::pg_encoding_mblen(encoding, bytes[at..].as_ptr().cast()) as usize }
    };
    let (mut at, mut utf8_at) = (0, 0);
    for (n, &offset) in offsets.iter().enumerate() {
        if n.is_multiple_of(CHECK_EVERY) {
            check_interrupts();
        }
        while utf8_at < offset {
            let next = at + length(at);
            // One by one: there are characters that are two in UTF-8.
            utf8_at += bytes_utf8(&bytes[at..next]).len();
            at = next;
        }
        found.grow_push(at);
    }
    found
}

/// The text in UTF-8 as [`bytes_utf8`] makes it, but with replacement characters for bytes that a
/// database in SQL_ASCII has and UTF-8 has not.
pub fn utf8_lossy(bytes: &[u8]) -> String {
    match server::GetDatabaseEncoding() as pg_enc::Type {
        pg_enc::PG_SQL_ASCII => String::from_utf8_lossy(bytes).into_owned(),
        _ => bytes_utf8(bytes).into_owned(),
    }
}

/// Returns whether the database has UTF-8.
pub fn is_utf8() -> bool {
    server::GetDatabaseEncoding() as pg_enc::Type == pg_enc::PG_UTF8
}

/// A text in the server's encoding and the current memory context. Characters that the encoding
/// does not have are written as `\uXXXX` or `\UXXXXXXXX`.
pub fn datum(text: &str) -> Datum {
    varlena::build(&[&converted(text, |unknown, out| escape(unknown, "\\", out))])
}

/// A text in the server's encoding, as [`datum`] makes it, but with a question mark for each
/// character that the encoding does not have.
pub fn lossy_datum(text: &str) -> Datum {
    varlena::build(&[&converted(text, |_, out| out.grow_push(b'?'))])
}

/// The bytes of [`datum`], with what is given for the backslash.
pub fn server_bytes(text: String, backslash: &str) -> Vec<u8> {
    match converted(&text, |unknown, out| escape(unknown, backslash, out)) {
        Cow::Borrowed(_) => text.into_bytes(),
        Cow::Owned(bytes) => bytes,
    }
}

fn escape(unknown: char, backslash: &str, out: &mut Vec<u8>) {
    let code = u32::from(unknown);
    let mut digits = [0; 9];
    let mut rest = &mut digits[..];
    // There is room for all of them.
    let _ = if code < 0x1_0000 {
        write!(rest, "u{code:04X}")
    } else {
        write!(rest, "U{code:08X}")
    };
    let left = rest.len();
    out.grow_by(backslash.as_bytes());
    out.grow_by(&digits[..digits.len() - left]);
}

/// Bytes at most that a byte becomes in another encoding (MAX_CONVERSION_GROWTH).
const GROWTH: usize = 4;
/// Fewest and most bytes that are converted in one go. The most fits the server's integers.
const PIECES: RangeInclusive<usize> = 1 << 6..=1 << 14;
/// Pieces between two looks for a request to cancel.
const CHECK_EVERY: usize = 1 << 10;

/// A text in the server's encoding; `substitute` writes something for what that does not have.
fn converted(text: &str, substitute: impl Fn(char, &mut Vec<u8>)) -> Cow<'_, [u8]> {
    let encoding = server::GetDatabaseEncoding();
    let utf8 = pg_enc::PG_UTF8;
    if text.is_ascii() || [utf8, pg_enc::PG_SQL_ASCII].contains(&(encoding as pg_enc::Type)) {
        return Cow::Borrowed(text.as_bytes());
    }
    // There is one for each encoding of a server.
    let conversion = server::FindDefaultConversionProc(utf8 as i32, encoding);
    let mut out = Vec::new();
    out.ensure_room(text.len());
    let mut buffer = Vec::new();
    buffer.grow_exact(GROWTH * PIECES.end() + 1, 0_u8);
    let mut unknown = UnknownChars::default();
    let mut rest = text;
    let mut most = *PIECES.end();
    for n in 1_usize.. {
        let Some(first) = rest.chars().next() else {
            break;
        };
        if n.is_multiple_of(CHECK_EVERY) {
            check_interrupts();
        }
        if unknown.contains(first) {
            substitute(first, &mut out);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let piece = unknown.before(&rest[..rest.floor_char_boundary(most)]);
        // SAFETY: both buffers have the lengths passed; the server ends what it writes with a zero
        // and, as asked, stops at a character that it cannot convert without an error.
        let (taken, made) = unsafe {
            let taken = pg_sys::pg_do_encoding_conversion_buf(
                conversion,
                utf8 as i32,
                encoding,
                piece.as_ptr().cast_mut(),
                piece.len() as i32,
                buffer.as_mut_ptr(),
                buffer.len() as i32,
                true,
            );
            (taken as usize, CStr::from_ptr(buffer.as_ptr().cast()))
        };
        out.grow_by(made.to_bytes());
        most = (2 * most).min(*PIECES.end());
        if taken < piece.len() {
            // It is asked for once; and where there is one, there may be more soon.
            unknown.extend(piece[taken..].chars().next());
            most = *PIECES.start();
        }
        rest = &rest[taken..];
    }
    Cow::Owned(out)
}

/// Characters that an encoding was seen not to have.
#[derive(Default)]
struct UnknownChars {
    /// A bit for each code point, once there are any.
    bits: Vec<u64>,
}

impl UnknownChars {
    fn extend(&mut self, unknown: Option<char>) {
        let Some(c) = unknown else {
            return;
        };
        if self.bits.is_empty() {
            self.bits.grow_exact(char::MAX as usize / 64 + 1, 0);
        }
        self.bits[c as usize / 64] |= 1 << (c as usize % 64);
    }

    fn contains(&self, c: char) -> bool {
        (self.bits.get(c as usize / 64)).is_some_and(|bits| bits >> (c as usize % 64) & 1 == 1)
    }

    /// The start of a text up to the first of them.
    fn before<'a>(&self, text: &'a str) -> &'a str {
        if self.bits.is_empty() {
            return text;
        }
        let end = text.char_indices().find(|&(_, c)| self.contains(c));
        &text[..end.map_or(text.len(), |(at, _)| at)]
    }
}

fn checked(bytes: &[u8], encoding: pg_enc::Type) -> &str {
    match simdutf8::compat::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let at = error.valid_up_to();
            let raised = UserError::bad_encoding("text is not valid UTF-8").detail(format!(
                "The byte 0x{:02x} at position {} does not belong to a valid character.",
                bytes[at],
                at + 1
            ));
            if encoding == pg_enc::PG_SQL_ASCII {
                raised
                    .hint(
                        "The encoding SQL_ASCII does not say what bytes mean. If they are \
                           LATIN1, pass convert_from(convert(convert_to(x, 'SQL_ASCII'), \
                           'LATIN1', 'UTF8'), 'SQL_ASCII').",
                    )
                    .raise()
            } else {
                raised.raise()
            }
        }
    }
}
