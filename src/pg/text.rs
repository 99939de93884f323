//! Text of the server's encoding as UTF-8.
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
    // SAFETY: as the caller promises; a conversion returns a new terminated string, or its
    // argument if there is nothing to convert, which is excluded here.
    unsafe {
        let bytes = varlena::bytes(datum);
        let encoding = pg_sys::GetDatabaseEncoding();
        let (from, to) = (encoding as pg_enc::Type, pg_enc::PG_UTF8);
        // An empty text comes back as it is, too, and is not terminated.
        if from == to || from == pg_enc::PG_SQL_ASCII || bytes.is_ascii() {
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
