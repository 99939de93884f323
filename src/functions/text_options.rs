//! Reads the text options, which are parameters of all SQL functions that turn a text into
//! features: `tokens text, shingle int, [weight text,] html boolean, accents text, digits text`.
//!
//! Each call parses the options, because parsing a few names is faster than comparing them with the
//! names of the last call.
use std::ops::RangeInclusive;

use neardup_sketch::options::{
    MAX_KEYWORDS, MAX_SHINGLE, NamedOption, Normalize, TextOptions, Tokens, TokensError,
    UnknownName, Weight,
};

use super::dictionary;
use neardup_pg::errors::UserError;
use neardup_pg::fmgr::Call;

/// Valid values of `shingle`, the number of consecutive tokens in a feature.
const SHINGLES: RangeInclusive<i32> = 1..=MAX_SHINGLE as i32;

/// Reads the options of a strict function (no argument is NULL) that has all options. `first` is
/// the position of `tokens`.
pub fn weighted(call: &Call, first: usize) -> TextOptions {
    let weight = named(call, first + 2);
    let positions = [first, first + 1, first + 3, first + 4, first + 5];
    parse(call, positions, weight)
}

/// Reads the options of a strict function that has all options but `weight`, because it uses sets
/// of features. `first` is the position of `tokens`.
pub fn unweighted(call: &Call, first: usize) -> TextOptions {
    parse(call, std::array::from_fn(|n| first + n), Weight::Set)
}

/// Reads the options of a strict function that has all options but `shingle` and `weight`, because
/// each of its features is a single token. `first` is the position of `tokens`.
pub fn single_tokens(call: &Call, first: usize) -> TextOptions {
    parse_with(call, std::array::from_fn(|n| first + n), 1, Weight::Set)
}

/// Reads the options of a function that has all options. If `shingle` or `weight` is NULL, takes
/// its value from `defaults`. `first` is the position of `tokens`.
pub fn with_defaults(call: &Call, first: usize, defaults: TextOptions) -> TextOptions {
    let weight = match call.is_null(first + 2) {
        true => defaults.weight,
        false => named(call, first + 2),
    };
    let shingle = match call.is_null(first + 1) {
        true => defaults.shingle,
        false => shingle_of(call.int4(first + 1)),
    };
    let [tokens, html, accents, digits] = [0, 3, 4, 5].map(|n| first + n);
    parse_with(call, [tokens, html, accents, digits], shingle, weight)
}

/// Reads the options of an aggregate of feature sets, which has three overloads. From argument
/// `first` on, an overload has no options, or `tokens` and `shingle`, or all options but `weight`.
pub fn of_aggregate(call: &Call, first: usize) -> TextOptions {
    match call.arg_count() - first {
        0 => TextOptions::SET,
        2 => {
            let (tokens, keywords) = loaded_tokens(call.bytes(first));
            TextOptions {
                tokens,
                keywords,
                shingle: shingle_of(call.int4(first + 1)),
                ..TextOptions::SET
            }
        }
        _ => unweighted(call, first),
    }
}

/// Reads the options from the arguments, except `weight`. `positions` has the argument positions of
/// `tokens`, `shingle`, `html`, `accents` and `digits`.
fn parse(call: &Call, positions: [usize; 5], weight: Weight) -> TextOptions {
    let [tokens, shingle, html, accents, digits] = positions;
    let shingle = shingle_of(call.int4(shingle));
    parse_with(call, [tokens, html, accents, digits], shingle, weight)
}

/// Reads the options from the arguments, except `shingle` and `weight`. `positions` has the
/// argument positions of `tokens`, `html`, `accents` and `digits`.
fn parse_with(call: &Call, positions: [usize; 4], shingle: usize, weight: Weight) -> TextOptions {
    let [tokens, html, accents, digits] = positions;
    let (tokens, keywords) = loaded_tokens(call.bytes(tokens));
    TextOptions {
        tokens,
        shingle,
        weight,
        normalize: Normalize {
            accents: named(call, accents),
            digits: named(call, digits),
        },
        html: call.bool(html),
        keywords,
    }
}

/// Returns the kind of tokens with this name, and the number of keywords, which is 0 by default.
/// Loads jieba's dictionary if these tokens need it.
fn loaded_tokens(name: &[u8]) -> (Tokens, usize) {
    let (tokens, keywords) = tokens_of(name);
    if tokens.need_dictionary() {
        dictionary::load();
    }
    (tokens, keywords)
}

/// Returns the kind of tokens with this name, and the number of keywords, which is 0 by default.
/// Raises an error if the name is unknown.
fn tokens_of(name: &[u8]) -> (Tokens, usize) {
    match Tokens::parse(name) {
        Ok(parsed) => parsed,
        Err(TokensError::UnknownName(error)) => refuse(&error, name),
        Err(TokensError::KeywordNumber(tokens)) => UserError::invalid_parameter(format!(
            "unknown value for \"tokens\": \"{}\"",
            neardup_pg::errors::shown(name)
        ))
        .detail(format!(
            "The number of keywords after \"{tokens}:\" must be from 1 to {MAX_KEYWORDS}."
        ))
        .raise(),
    }
}

/// Returns the option value that the text in argument `n` names, such as `keep`. Raises an error if
/// the text is not the name of a value of the option `T`.
pub fn named<T: NamedOption>(call: &Call, n: usize) -> T {
    let name = call.bytes(n);
    T::from_name(name).unwrap_or_else(|error| refuse(&error, name))
}

/// Raises the error that `name` is not a value of an option.
#[cold]
fn refuse(error: &UnknownName, name: &[u8]) -> ! {
    let raised = UserError::invalid_parameter(format!(
        "unknown value for \"{}\": \"{}\"",
        error.parameter,
        neardup_pg::errors::shown(name)
    ))
    .detail(format!("The known values are {}.", error.known.join(", ")));
    match overload_hint(error.parameter, name) {
        Some(hint) => raised.hint(hint).raise(),
        None => raised.raise(),
    }
}

/// Returns a hint if the caller may have meant another overload of the function, which takes an
/// array or a tsvector and has no argument `tokens`. `parameter` is the argument that has the
/// unknown value `name`.
fn overload_hint(parameter: &str, name: &[u8]) -> Option<&'static str> {
    if parameter != Tokens::PARAMETER {
        return None;
    }
    if name.starts_with(b"{") {
        Some("For features with weights, cast the first argument to an array: '{a,b}'::text[].")
    } else if name.contains(&b' ') {
        Some(
            "The text is the first argument. For the dictionaries of a text search configuration, \
             pass to_tsvector('english', text) as the only argument.",
        )
    } else {
        None
    }
}

/// Returns the argument `shingle` as `usize`. Raises an error if it is out of range.
fn shingle_of(shingle: i32) -> usize {
    if !SHINGLES.contains(&shingle) {
        UserError::invalid_parameter(format!("value {shingle} is out of range for \"shingle\""))
            .detail(format!(
                "The number of consecutive tokens in a feature must be from {} to {}.",
                SHINGLES.start(),
                SHINGLES.end()
            ))
            .raise();
    }
    shingle as usize
}
