//! Text of the server's encoding as UTF-8, and back.
use std::borrow::Cow;
use std::ffi::CStr;

use pgrx::pg_sys::{self, Datum, pg_enc};

use super::errors::UserError;
use super::varlena;

/// The text in UTF-8, converted if the database has another encoding. A database in SQL_ASCII
/// does not know what its bytes mean: they are taken as UTF-8, and it is error 22021 if they
/// are not.
///
/// # Safety
/// `datum` is a text; the result lives as long as it and as the current memory context.
pub unsafe fn utf8<'a>(datum: Datum) -> Cow<'a, str> {
    // SAFETY: as the caller promises.
    bytes_utf8(unsafe { varlena::bytes(datum) })
}

/// The same of text that is a part of some other value.
pub fn bytes_utf8(bytes: &[u8]) -> Cow<'_, str> {
    // Which are the same in all encodings of a database.
    if bytes.is_ascii()
        && let Ok(text) = str::from_utf8(bytes)
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
        let text = checked(CStr::from_ptr(converted.cast()).to_bytes(), to).to_owned();
        pg_sys::pfree(converted.cast());
        Cow::Owned(text)
    }
}

/// A text in the server's encoding and the current memory context. Characters that the encoding does
/// not have are written as `\uXXXX` or `\UXXXXXXXX`.
pub fn datum(text: &str) -> Datum {
    varlena::build(&[&server_bytes(text, "\\")])
}

/// The same, with a question mark for characters that the encoding does not have.
pub fn lossy_datum(text: &str) -> Datum {
    varlena::build(&[&converted(text, |_| "?".to_owned())])
}

/// The bytes of [`datum`], with what is given for the backslash.
pub fn server_bytes<'a>(text: &'a str, backslash: &str) -> Cow<'a, [u8]> {
    converted(text, |unknown| {
        let code = u32::from(unknown);
        if code < 0x1_0000 {
            format!("{backslash}u{code:04X}")
        } else {
            format!("{backslash}U{code:08X}")
        }
    })
}

/// A text in the server's encoding, with `substitute` for what that does not have.
fn converted(text: &str, substitute: impl Fn(char) -> String) -> Cow<'_, [u8]> {
    // SAFETY: reads a setting of the process.
    let encoding = unsafe { pg_sys::GetDatabaseEncoding() };
    let utf8 = pg_enc::PG_UTF8;
    if text.is_ascii() || [utf8, pg_enc::PG_SQL_ASCII].contains(&(encoding as pg_enc::Type)) {
        return Cow::Borrowed(text.as_bytes());
    }
    // SAFETY: looks up a function in the catalogue; there is one for each encoding of a server.
    let conversion = unsafe { pg_sys::FindDefaultConversionProc(utf8 as i32, encoding) };
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        // Bounded, so that the lengths fit the server's integers.
        let piece = &rest[..rest.floor_char_boundary(1 << 16)];
        let mut converted = vec![0_u8; GROWTH * piece.len() + 1];
        // SAFETY: both buffers have the lengths passed; the server ends what it writes with a zero
        // and, as asked, stops at a character that it cannot convert without an error.
        let (taken, made) = unsafe {
            let taken = pg_sys::pg_do_encoding_conversion_buf(
                conversion,
                utf8 as i32,
                encoding,
                piece.as_ptr().cast_mut(),
                piece.len() as i32,
                converted.as_mut_ptr(),
                converted.len() as i32,
                true,
            );
            (taken as usize, CStr::from_ptr(converted.as_ptr().cast()))
        };
        out.extend_from_slice(made.to_bytes());
        rest = &rest[taken..];
        if taken < piece.len() {
            let mut chars = rest.chars();
            let unknown = chars.next().unwrap_or_default();
            out.extend_from_slice(substitute(unknown).as_bytes());
            rest = chars.as_str();
        }
    }
    Cow::Owned(out)
}

/// Bytes at most that a byte becomes in another encoding (MAX_CONVERSION_GROWTH).
const GROWTH: usize = 4;

fn checked(bytes: &[u8], encoding: pg_enc::Type) -> &str {
    match str::from_utf8(bytes) {
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
                    .hint("The encoding SQL_ASCII does not say what bytes mean. If they are LATIN1, pass convert_from(convert(convert_to(x, 'SQL_ASCII'), 'LATIN1', 'UTF8'), 'SQL_ASCII').")
                    .raise()
            } else {
                raised.raise()
            }
        }
    }
}
