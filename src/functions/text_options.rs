//! The parameters that say how a text becomes features, as every function that takes a text has them:
//! `tokens text, shingle int, [weight text,] html boolean, accents text, digits text`.
//!
//! They are read anew in each call: comparing a few names takes less time than finding out whether
//! they are still the same.
use std::ops::RangeInclusive;

use neardup_sketch::options::{
    MAX_KEYWORDS, MAX_SHINGLE, NamedOption, Normalize, TextOptions, Tokens, UnknownName, Weight,
};

use super::dictionary;
use crate::pg::errors::UserError;
use crate::pg::fmgr::Call;
use crate::pg::varlena;

/// Shingles that are taken.
const SHINGLES: RangeInclusive<i32> = 1..=MAX_SHINGLE as i32;

/// Options of a function with `weight`, from the argument at position `first` on.
///
/// # Safety
/// The function is declared with these parameters and strict.
pub unsafe fn weighted(call: &Call, first: usize) -> TextOptions {
    // SAFETY: as the caller promises.
    unsafe {
        let weight = choice(call, first + 2);
        read(
            call,
            [first, first + 1, first + 3, first + 4, first + 5],
            weight,
        )
    }
}

/// Options of a function without `weight`, which looks at sets of features, likewise.
///
/// # Safety
/// As for [`weighted`].
pub unsafe fn unweighted(call: &Call, first: usize) -> TextOptions {
    // SAFETY: as the caller promises.
    unsafe { read(call, std::array::from_fn(|n| first + n), Weight::Set) }
}

unsafe fn read(call: &Call, at: [usize; 5], weight: Weight) -> TextOptions {
    let [tokens, shingle, html, accents, digits] = at;
    // SAFETY: as the caller promises.
    let (tokens, keywords) = tokens_of(unsafe { varlena::bytes(call.arg(tokens)) });
    if tokens.need_dictionary() {
        dictionary::load();
    }
    // SAFETY: as the caller promises.
    unsafe {
        TextOptions {
            tokens,
            shingle: shingle_of(call.arg(shingle).value() as i32),
            weight,
            normalize: Normalize {
                accents: choice(call, accents),
                digits: choice(call, digits),
            },
            html: call.arg(html).value() != 0,
            keywords,
        }
    }
}

/// The tokens that are named, with the number of keywords that `jieba_tfidf:50` asks for; 0 if none is.
fn tokens_of(name: &[u8]) -> (Tokens, usize) {
    let Some(number) = name.strip_prefix(KEYWORDS) else {
        let tokens = Tokens::from_name(name).unwrap_or_else(|error| refuse(&error, name));
        return (tokens, 0);
    };
    let number = str::from_utf8(number)
        .ok()
        .and_then(|number| number.parse().ok());
    match number {
        Some(number @ 1..=MAX_KEYWORDS) => (Tokens::JiebaTfidf, number),
        _ => UserError::invalid_parameter(format!(
            "unknown value for tokens: \"{}\"",
            crate::pg::errors::shown(name)
        ))
        .detail(format!(
            "After \"jieba_tfidf:\" stands the number of keywords, from 1 to {MAX_KEYWORDS}."
        ))
        .raise(),
    }
}

/// What stands before the number of keywords.
const KEYWORDS: &[u8] = b"jieba_tfidf:";

/// The choice that the argument names.
unsafe fn choice<T: NamedOption>(call: &Call, at: usize) -> T {
    // SAFETY: the caller promises a text.
    let name = unsafe { varlena::bytes(call.arg(at)) };
    T::from_name(name).unwrap_or_else(|error| refuse(&error, name))
}

/// Raises the error about a name that stands for nothing.
#[cold]
pub fn refuse(error: &UnknownName, name: &[u8]) -> ! {
    let raised = UserError::invalid_parameter(format!(
        "unknown value for {}: \"{}\"",
        error.parameter,
        crate::pg::errors::shown(name)
    ))
    .detail(format!("Known are: {}.", error.known.join(", ")));
    match mistaken_for(error.parameter, name) {
        Some(hint) => raised.hint(hint).raise(),
        None => raised.raise(),
    }
}

/// What the caller may have meant: the second argument of a function can be something else for an
/// array or a tsvector.
fn mistaken_for(parameter: &str, name: &[u8]) -> Option<&'static str> {
    if parameter != Tokens::PARAMETER {
        return None;
    }
    if name.starts_with(b"{") {
        Some("For features with weights, say that the first argument is an array: '{a,b}'::text[].")
    } else if name.contains(&b' ') {
        Some(
            "The text is the first argument. For the dictionaries of a text search configuration, pass to_tsvector('english', text) as the only one.",
        )
    } else {
        None
    }
}

fn shingle_of(shingle: i32) -> usize {
    if !SHINGLES.contains(&shingle) {
        UserError::invalid_parameter(format!("shingle {shingle} is out of range"))
            .detail(format!(
                "It is the number of consecutive tokens in a feature, from {} to {}.",
                SHINGLES.start(),
                SHINGLES.end()
            ))
            .raise();
    }
    shingle as usize
}
