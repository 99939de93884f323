//! Byte slices of SQL values of variable length (text, bytea, bit), and new SQL values in the
//! server's memory.
use pgrx::pg_sys;

/// Returns the bytes of a varlena, such as a text or bytea, after its header. Decompresses the
/// value and reads it from TOAST if necessary.
///
/// # Safety
/// `datum` is a varlena. It and the current memory context outlive the result.
#[inline]
pub unsafe fn bytes<'a>(datum: pg_sys::Datum) -> &'a [u8] {
    // SAFETY: the caller promises a varlena. Detoasting returns one with a plain or short header.
    unsafe {
        use pgrx::varlena::{varatt_is_1b, varatt_is_1b_e, varatt_is_4b_u};
        let mut plain: *mut pg_sys::varlena = datum.cast_mut_ptr();
        // Avoids the detoasting call if possible, because it takes longer than most work on a short
        // text.
        if !varatt_is_4b_u(plain) && (!varatt_is_1b(plain) || varatt_is_1b_e(plain)) {
            plain = pg_sys::pg_detoast_datum_packed(plain);
        }
        core::slice::from_raw_parts(
            pgrx::varlena::vardata_any(plain).cast::<u8>(),
            pgrx::varlena::varsize_any_exhdr(plain),
        )
    }
}

/// Returns the bytes of a varlena after its header, aligned to four bytes. Decompresses the value
/// and reads it from TOAST if necessary.
///
/// # Safety
/// The conditions of [`bytes`] hold, and the type's alignment is `int4`. The bytes follow a header
/// of four bytes, so they are also aligned to four bytes.
#[inline]
pub unsafe fn aligned<'a>(datum: pg_sys::Datum) -> &'a [u8] {
    // SAFETY: the caller promises a varlena. Detoasting makes it plain if it is not.
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

/// Returns the bytes of a varlena with a plain header (four bytes, not compressed) for changes in
/// place.
///
/// # Safety
/// `datum` is a varlena with a plain header. No other code uses it while the result lives.
pub unsafe fn plain_body_mut<'a>(datum: pg_sys::Datum) -> &'a mut [u8] {
    let start = datum.cast_mut_ptr::<u8>();
    // SAFETY: the caller's promise. The header states the size.
    unsafe {
        let size = pgrx::varlena::varsize_4b(start.cast());
        core::slice::from_raw_parts_mut(start.add(pg_sys::VARHDRSZ), size - pg_sys::VARHDRSZ)
    }
}

/// Makes a varlena in the current memory context. Its bytes after the header are the concatenation
/// of `parts`.
#[inline]
pub fn build(parts: &[&[u8]]) -> pg_sys::Datum {
    let size = pg_sys::VARHDRSZ + parts.iter().map(|part| part.len()).sum::<usize>();
    // SAFETY: `size` bytes are allocated for the header of four bytes and the parts.
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

/// Makes a value of a fixed-length type that is passed by reference, in the current memory context.
/// `T` must have the type's layout.
#[inline]
pub fn by_reference<T: Copy>(value: T) -> pg_sys::Datum {
    const { assert!(align_of::<T>() <= 8) };
    // SAFETY: the allocation has the size of the value and is aligned to eight bytes.
    unsafe {
        let pointer = pg_sys::palloc(size_of::<T>()).cast::<T>();
        pointer.write(value);
        pg_sys::Datum::from(pointer)
    }
}

/// Makes a C string in the current memory context, for example the result of a type's output
/// function.
pub fn cstring(text: &str) -> pg_sys::Datum {
    // SAFETY: one byte more than the text is allocated, for the terminator.
    unsafe {
        let cstring = pg_sys::palloc(text.len() + 1).cast::<u8>();
        core::ptr::copy_nonoverlapping(text.as_ptr(), cstring, text.len());
        *cstring.add(text.len()) = 0;
        pg_sys::Datum::from(cstring)
    }
}

/// Makes a `numeric` in the current memory context from its text form. Raises an error if the text
/// is not a number.
pub fn numeric(text: &str) -> pg_sys::Datum {
    let text = cstring(text).cast_mut_ptr();
    let (input, none) = (pg_sys::Oid::from(pg_sys::F_NUMERIC_IN), pg_sys::InvalidOid);
    // SAFETY: the input function takes a terminated string, an element type and a type modifier,
    // which may both be absent.
    unsafe { pg_sys::OidInputFunctionCall(input, text, none, -1) }
}
