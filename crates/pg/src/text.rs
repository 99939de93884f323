//! Conversion of text between the database's encoding and UTF-8.
use std::borrow::Cow;
use std::ffi::CStr;
use std::ops::RangeInclusive;

use neardup_sketch::memory::{Grow, GrowVec, copied};
use pgrx::pg_sys::{self, Datum, Oid, pg_enc};

use super::errors::UserError;
use super::memory::check_interrupts;
use super::{server, varlena};

/// Converts a text from the database's encoding to UTF-8. SQL_ASCII does not define the meaning of
/// its bytes, so they are read as UTF-8. Raises error 22021 if they are not UTF-8.
#[inline]
pub fn bytes_utf8(bytes: &[u8]) -> Cow<'_, str> {
    // ASCII text is the same in all encodings of the server.
    if bytes.is_ascii()
        && let Ok(text) = simdutf8::compat::from_utf8(bytes)
    {
        return Cow::Borrowed(text);
    }
    // SAFETY: a conversion returns a new terminated string. It returns its argument only if there
    // is nothing to convert, which is excluded here.
    unsafe {
        let encoding = pg_sys::GetDatabaseEncoding();
        let (from, to) = (encoding as pg_enc::Type, pg_enc::PG_UTF8);
        if from == to || from == pg_enc::PG_SQL_ASCII {
            return Cow::Borrowed(checked(bytes, from));
        }
        let source = bytes.as_ptr().cast_mut();
        let converted =
            pg_sys::pg_do_encoding_conversion(source, bytes.len() as i32, encoding, to as i32);
        // Copies the text, which may be large, so that the server's memory can be freed.
        let text = copied(checked(CStr::from_ptr(converted.cast()).to_bytes(), to));
        pg_sys::pfree(converted.cast());
        Cow::Owned(text)
    }
}

/// Does the same as [`bytes_utf8`], but raises no error in an SQL_ASCII database: bytes that are
/// not valid UTF-8 become replacement characters.
pub fn utf8_lossy(bytes: &[u8]) -> String {
    match server::GetDatabaseEncoding() as pg_enc::Type {
        pg_enc::PG_SQL_ASCII => String::from_utf8_lossy(bytes).into_owned(),
        _ => bytes_utf8(bytes).into_owned(),
    }
}

/// Does the same as [`utf8_lossy`] for a prefix of a text. Drops an incomplete last character:
/// SQL_ASCII counts bytes, so a prefix may end inside a character.
pub fn utf8_beginning(bytes: &[u8]) -> String {
    // A character in UTF-8 has at most four bytes, so an incomplete one begins in the last three.
    let last = bytes.len().saturating_sub(3);
    let starts = |byte: u8| byte & 0xC0 == 0xC0;
    let start = (last..bytes.len()).rev().find(|&at| starts(bytes[at]));
    let end = start.filter(|&start| {
        let part = std::str::from_utf8(&bytes[start..]);
        part.is_err_and(|error| error.error_len().is_none())
    });
    match server::GetDatabaseEncoding() as pg_enc::Type {
        pg_enc::PG_SQL_ASCII => utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]),
        _ => utf8_lossy(bytes),
    }
}

/// Returns whether the database's encoding is UTF-8.
#[inline]
pub fn is_utf8() -> bool {
    server::GetDatabaseEncoding() as pg_enc::Type == pg_enc::PG_UTF8
}

/// Makes an SQL `text` in the current memory context. [`server_bytes`] converts it to the
/// database's encoding.
pub fn datum(text: &str) -> Datum {
    varlena::build(&[&server_bytes(text)])
}

/// Character that replaces each character that the database's encoding does not have. It is one
/// character in every encoding, so later positions stay the same.
const REPLACEMENT: u8 = b'?';

/// Code points that can be the second of the two code points of one EUC_JIS_2004 character. Most
/// also are characters of their own in that encoding; U+309A is not.
const SECOND_HALVES: [char; 5] = ['\u{300}', '\u{301}', '\u{2E5}', '\u{2E9}', '\u{309A}'];

/// Maximum growth of a text by a conversion, in output bytes per input byte
/// (`MAX_CONVERSION_GROWTH`).
const GROWTH: usize = 4;
/// Smallest and largest limit on the size of a piece, in bytes. [`server_bytes`] converts a text in
/// pieces, one in each call of the server. It begins with the largest limit, which fits the
/// server's integers. After a character that cannot be converted, it uses the smallest limit,
/// because more such characters may follow. After each piece, it doubles the limit.
const PIECES: RangeInclusive<usize> = 1 << 6..=1 << 14;
/// Number of converted pieces between two checks for interrupts.
const CHECK_EVERY: usize = 1 << 10;

/// Converts a text from UTF-8 to the database's encoding. Each character that the encoding does not
/// have becomes a question mark. All text that SQL functions return is converted here.
pub fn server_bytes(text: &str) -> Cow<'_, [u8]> {
    let encoding = server::GetDatabaseEncoding();
    let utf8 = pg_enc::PG_UTF8;
    if text.is_ascii() || [utf8, pg_enc::PG_SQL_ASCII].contains(&(encoding as pg_enc::Type)) {
        return Cow::Borrowed(text.as_bytes());
    }
    let conversion = server::FindDefaultConversionProc(utf8 as i32, encoding);
    let mut out = Vec::new();
    out.ensure_room(text.len());
    if conversion == Oid::INVALID {
        // MULE_INTERNAL has no conversion to or from UTF-8.
        let bytes = |c: char| u8::try_from(c).ok().filter(u8::is_ascii);
        out.grow_all(text.chars().map(|c| bytes(c).unwrap_or(REPLACEMENT)));
        return Cow::Owned(out);
    }
    let halves: &[char] = match encoding as pg_enc::Type {
        pg_enc::PG_EUC_JIS_2004 => &SECOND_HALVES,
        _ => &[],
    };
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
            out.grow_push(REPLACEMENT);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let piece = unknown.before(&rest[..piece_end(rest, most, halves)]);
        let taken = convert_piece(conversion, piece, &mut buffer, &mut out);
        most = (2 * most).min(*PIECES.end());
        rest = &rest[taken..];
        if taken < piece.len()
            && let Some(c) = rest.chars().next()
        {
            // More unknown characters may follow, so the next piece is short.
            most = *PIECES.start();
            if halves.contains(&c) {
                // Elsewhere in the text this code point may be the second half of a valid
                // character, so it is not recorded as unknown.
                out.grow_push(REPLACEMENT);
                rest = &rest[c.len_utf8()..];
            } else {
                // Avoids a second conversion attempt for this character.
                unknown.insert(c);
            }
        }
    }
    Cow::Owned(out)
}

/// Converts `piece`, a part of a text, up to the first character that the database's encoding does
/// not have. Appends the result to `out`, and returns the number of bytes of `piece` that were
/// converted. `conversion` is the server's conversion function. `buffer` is working memory, with
/// room for the output.
fn convert_piece(conversion: Oid, piece: &str, buffer: &mut [u8], out: &mut Vec<u8>) -> usize {
    // SAFETY: both buffers have the passed lengths. The server terminates its output with a zero
    // byte and, as requested, stops without an error at a character that it cannot convert.
    let (taken, made) = unsafe {
        let taken = pg_sys::pg_do_encoding_conversion_buf(
            conversion,
            pg_enc::PG_UTF8 as i32,
            server::GetDatabaseEncoding(),
            piece.as_ptr().cast_mut(),
            piece.len() as i32,
            buffer.as_mut_ptr(),
            buffer.len() as i32,
            true,
        );
        (taken as usize, CStr::from_ptr(buffer.as_ptr().cast()))
    };
    out.grow_by(made.to_bytes());
    taken
}

/// Returns the length in bytes of the first piece of `text`, which is converted next: at most
/// `most`, and less where the text cannot be divided.
///
/// In EUC_JIS_2004, two code points can make one character. `halves` holds the code points that can
/// be the second of the two; it is empty for other encodings. A piece does not end before a code
/// point of `halves`, so that both halves of a character are in the same piece. The only exception
/// is a piece in which all code points after the first are in `halves`.
fn piece_end(text: &str, most: usize, halves: &[char]) -> usize {
    let end = text.floor_char_boundary(most);
    let is_half = |c: char| halves.contains(&c);
    if !text[end..].chars().next().is_some_and(is_half) {
        return end;
    }
    let mut before = text[..end].char_indices().rev();
    let first_half = before.find(|&(at, c)| at > 0 && !is_half(c));
    first_half.map_or(end, |(at, _)| at)
}

/// Characters that the database's encoding does not have, as earlier conversions have shown.
#[derive(Default)]
struct UnknownChars {
    /// One bit for each code point; empty until the first insertion.
    bits: Vec<u64>,
}

impl UnknownChars {
    fn insert(&mut self, c: char) {
        if self.bits.is_empty() {
            self.bits.grow_exact(char::MAX as usize / 64 + 1, 0);
        }
        self.bits[c as usize / 64] |= 1 << (c as usize % 64);
    }

    fn contains(&self, c: char) -> bool {
        (self.bits.get(c as usize / 64)).is_some_and(|bits| bits >> (c as usize % 64) & 1 == 1)
    }

    /// Prefix of `text` up to the first unknown character.
    fn before<'a>(&self, text: &'a str) -> &'a str {
        if self.bits.is_empty() {
            return text;
        }
        let end = text.char_indices().find(|&(_, c)| self.contains(c));
        &text[..end.map_or(text.len(), |(at, _)| at)]
    }
}

/// Returns bytes as UTF-8. Raises error 22021 if they are invalid. `encoding` is the encoding that
/// they come from; for SQL_ASCII the error has a hint.
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
                        "The encoding SQL_ASCII does not specify which characters the bytes \
                         represent. If the text is in LATIN1, pass \
                         convert_from(convert(convert_to(x, 'SQL_ASCII'), 'LATIN1', 'UTF8'), \
                         'SQL_ASCII').",
                    )
                    .raise()
            } else {
                raised.raise()
            }
        }
    }
}
