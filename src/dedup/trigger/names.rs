//! Column names in a trigger's arguments, unquoted or quoted as in SQL.
//!
//! An unquoted name is not folded to lower case, and ends at a comma in a list. A name with a
//! comma, an equals sign, a quote, or leading or trailing blanks must be quoted: `"a,b"`. Quotes
//! inside the name are doubled.
use std::ffi::{CStr, CString};

use neardup_pg::catalog;

/// Returns whether an argument begins with a quoted name. Such an argument is not an option, even
/// if it contains an equals sign.
pub fn is_quoted(argument: &[u8]) -> bool {
    argument.trim_ascii().starts_with(b"\"")
}

/// Returns the column name of an argument that consists of one name. The error is a sentence with
/// the reason.
pub fn single(text: &[u8]) -> Result<CString, String> {
    if !is_quoted(text) {
        return not_empty(text.trim_ascii());
    }
    let (name, rest) = quoted(text.trim_ascii())?;
    match rest.trim_ascii() {
        b"" => Ok(name),
        rest => Err(format!(
            "A quoted column name is followed by \"{}\", which is not allowed.",
            String::from_utf8_lossy(rest)
        )),
    }
}

/// Returns the column names of an argument that lists them, separated by commas. The error is a
/// sentence with the reason.
pub fn list(text: &[u8]) -> Result<Vec<CString>, String> {
    let mut names = Vec::new();
    let mut rest = text.trim_ascii();
    loop {
        let name;
        (name, rest) = match is_quoted(rest) {
            true => quoted(rest)?,
            false => {
                let end = rest.iter().position(|&byte| byte == b',');
                let (name, behind) = rest.split_at(end.unwrap_or(rest.len()));
                (not_empty(name.trim_ascii())?, behind)
            }
        };
        names.push(name);
        rest = match rest.trim_ascii() {
            b"" => return Ok(names),
            [b',', behind @ ..] => behind.trim_ascii(),
            rest => {
                return Err(format!(
                    "A quoted column name is followed by \"{}\", where only a comma is allowed.",
                    String::from_utf8_lossy(rest)
                ));
            }
        };
    }
}

/// Returns a column name in the form that [`single`] reads, with quotes if necessary.
pub fn argument(name: &CStr) -> Vec<u8> {
    let name = name.to_bytes();
    let is_plain = name.trim_ascii() == name && !name.iter().any(|byte| b",=\"".contains(byte));
    if is_plain {
        return name.to_vec();
    }
    let doubled = name.iter().flat_map(|&byte| match byte {
        b'"' => vec![byte, byte],
        _ => vec![byte],
    });
    [b"\"".to_vec(), doubled.collect(), b"\"".to_vec()].concat()
}

/// Splits a text that begins with a quoted name into the name and the text after its closing quote.
/// The error is a sentence with the reason.
fn quoted(text: &[u8]) -> Result<(CString, &[u8]), String> {
    let mut name = Vec::new();
    let mut at = 1;
    loop {
        match (text.get(at), text.get(at + 1)) {
            (Some(b'"'), Some(b'"')) => {
                name.push(b'"');
                at += 2;
            }
            (Some(b'"'), _) => return Ok((not_empty(&name)?, &text[at + 1..])),
            (Some(&byte), _) => {
                name.push(byte);
                at += 1;
            }
            (None, _) => return Err("A quoted column name has no closing quote.".into()),
        }
    }
}

fn not_empty(name: &[u8]) -> Result<CString, String> {
    match name {
        b"" => Err("A column name is empty.".into()),
        name => Ok(cstring(name)),
    }
}

/// Returns a column name for messages, quoted as in SQL if necessary.
pub fn shown(name: &CStr) -> String {
    String::from_utf8_lossy(&catalog::quoted(name)).into_owned()
}

/// Creates a C string from bytes that are part of another C string, so that none of them is 0.
pub fn cstring(bytes: &[u8]) -> CString {
    CString::new(bytes).expect("a part of a C string has no byte 0")
}
