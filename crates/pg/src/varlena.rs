//! Values of variable length (text, bytea, bit) as byte slices, and back; new values.
use pgrx::pg_sys;

/// The bytes of a text or bytea, uncompressed and read back from TOAST where need be.
///
/// # Safety
/// `datum` is a value of a variable-length type; the result lives as long as the memory context
/// that is current now, and as long as `datum`.
#[inline]
pub unsafe fn bytes<'a>(datum: pg_sys::Datum) -> &'a [u8] {
    // SAFETY: the caller promises a varlena; detoasting yields one with a plain or short header.
    unsafe {
        use pgrx::varlena::{varatt_is_1b, varatt_is_1b_e, varatt_is_4b_u};
        let mut plain: *mut pg_sys::varlena = datum.cast_mut_ptr();
        // A call costs more than most of what is done with a short text.
        if !varatt_is_4b_u(plain) && (!varatt_is_1b(plain) || varatt_is_1b_e(plain)) {
            plain = pg_sys::pg_detoast_datum_packed(plain);
        }
        core::slice::from_raw_parts(
            pgrx::varlena::vardata_any(plain).cast::<u8>(),
            pgrx::varlena::varsize_any_exhdr(plain),
        )
    }
}

/// The payload of a value aligned to four bytes, uncompressed and read back from TOAST where need
/// be.
///
/// # Safety
/// As for [`bytes`]; the type's alignment is `int4`. The payload begins behind a header of four
/// bytes, and so is aligned to four bytes as well.
#[inline]
pub unsafe fn aligned<'a>(datum: pg_sys::Datum) -> &'a [u8] {
    // SAFETY: the caller promises a varlena; one that is plain already is taken as it is, and
    // detoasting makes any other one plain.
    unsafe {
        let mut plain: *mut pg_sys::varlena = datum.cast_mut_ptr();
        if !pgrx::varlena::varatt_is_4b_u(plain) {
            plain = pg_sys::pg_detoast_datum(plain);
        }
        core::slice::from_raw_parts(
            plain.cast::<u8>().add(pg_sys::VARHDRSZ),
            pgrx::varlena::varsize_4b(plain) - pg_sys::VARHDRSZ,
        )
    }
}

/// The payload of a value with a plain header, to be changed.
///
/// # Safety
/// `datum` is a value of a variable-length type with a plain header. Nothing else uses it as long
/// as the result lives.
pub unsafe fn plain_body_mut<'a>(datum: pg_sys::Datum) -> &'a mut [u8] {
    let start = datum.cast_mut_ptr::<u8>();
    // SAFETY: the caller's promise. The header states the size.
    unsafe {
        let size = pgrx::varlena::varsize_4b(start.cast());
        core::slice::from_raw_parts_mut(start.add(pg_sys::VARHDRSZ), size - pg_sys::VARHDRSZ)
    }
}

/// A new varlena in the current memory context whose payload is `parts`, one after the other.
#[inline]
pub fn build(parts: &[&[u8]]) -> pg_sys::Datum {
    let size = pg_sys::VARHDRSZ + parts.iter().map(|part| part.len()).sum::<usize>();
    // SAFETY: `size` bytes are allocated, the header takes the first four, the parts the rest.
    unsafe {
        let varlena = pg_sys::palloc(size).cast::<u8>();
        pgrx::varlena::set_varsize_4b(varlena.cast(), size as i32);
        let mut at = varlena.add(pg_sys::VARHDRSZ);
        for part in parts {
            core::ptr::copy_nonoverlapping(part.as_ptr(), at, part.len());
            at = at.add(part.len());
        }
        pg_sys::Datum::from(varlena)
    }
}

/// A new value of a type of fixed length, passed by reference, in the current memory context.
#[inline]
pub fn by_reference<T: Copy>(value: T) -> pg_sys::Datum {
    const { assert!(align_of::<T>() <= 8) };
    // SAFETY: as many bytes are allocated as are written, aligned to eight bytes.
    unsafe {
        let place = pg_sys::palloc(size_of::<T>()).cast::<T>();
        place.write(value);
        pg_sys::Datum::from(place)
    }
}

/// A text as the C string that an output function returns, in the current memory context.
pub fn cstring(text: &str) -> pg_sys::Datum {
    // SAFETY: one byte more than the text is allocated, for the terminator.
    unsafe {
        let cstring = pg_sys::palloc(text.len() + 1).cast::<u8>();
        core::ptr::copy_nonoverlapping(text.as_ptr(), cstring, text.len());
        *cstring.add(text.len()) = 0;
        pg_sys::Datum::from(cstring)
    }
}

/// A number of type `numeric` from its text form, in the current memory context. Raises an error
/// unless the text is a number.
pub fn numeric(text: &str) -> pg_sys::Datum {
    let text = cstring(text).cast_mut_ptr();
    let (input, none) = (pg_sys::Oid::from(pg_sys::F_NUMERIC_IN), pg_sys::InvalidOid);
    // SAFETY: the input function takes a terminated string, an element type and a type modifier,
    // which may both be absent.
    unsafe { pg_sys::OidInputFunctionCall(input, text, none, -1) }
}
