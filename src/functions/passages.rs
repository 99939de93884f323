//! SQL functions on passages, which are runs of tokens that texts share.
//!
//! - `passages(body, length, options)` returns hashes of a text's passages.
//! - `passages_without` does the same, but ignores the features of a set.
//! - `passages_in_common(a, b)` counts the hashes that two arrays have in common.
//! - `shared_passages(a, b, length, options)` lists the passages that two texts share.
use neardup_sketch::common_features::FeatureSet;
use neardup_sketch::memory::GrowVec;
use neardup_sketch::options::{NamedOption, Tokens};
use neardup_sketch::passages::{MAX_LENGTH, PassageError, PassageLength, SharedPassages};
use neardup_sketch::{Sketcher, TextOptions};
use pgrx::PgSqlErrorCode;
use pgrx::pg_sys::Datum;

use super::feature_sets::has_null;
use super::html::visible_text;
use super::text_options;
use super::without::fitting_set;
use neardup_pg::arrays::bigint_array;
use neardup_pg::errors::UserError;
use neardup_pg::fmgr::{Call, export};
use neardup_pg::memory::check_interrupts;
use neardup_pg::server_text::ServerText;
use neardup_pg::srf::SetReturning;
use neardup_pg::text;

/// Maximum number of elements of a `bigint[]` result. More raise an error, because the server
/// cannot allocate so much memory at once.
const MAX_HASHES: usize = 100_000_000;
/// Number of comparisons between two checks for interrupts.
const CHECK_EVERY: usize = 1 << 16;

/// Returns the length in argument `n`: the number of tokens of the shortest passage that is found
/// with certainty. Raises an error if passages with the text options `options` cannot have this
/// length.
pub fn length(call: &Call, n: usize, options: &TextOptions) -> PassageLength {
    let length = call.int4(n);
    PassageLength::new(length.into(), options).unwrap_or_else(|error| match error {
        PassageError::OutOfRange => {
            UserError::invalid_parameter(format!("length {length} is out of range"))
                .detail(format!(
                    "The length is the number of tokens in the shortest passage that is certain to \
                     be found. It must be from 1 to {MAX_LENGTH}."
                ))
                .hint("For comparison, an English sentence has about 20 words.")
                .raise()
        }
        PassageError::ShorterThanShingle => {
            let shingle = options.shingle;
            UserError::invalid_parameter(format!(
                "\"length\" ({length}) is less than \"shingle\" ({shingle})"
            ))
            .detail(format!(
                "Each hash covers {shingle} consecutive tokens, so a passage must have at least \
                 {shingle} tokens."
            ))
            .hint(format!(
                "Pass a length from {shingle} to {MAX_LENGTH}, or a smaller value for \
                 \"shingle\"."
            ))
            .raise()
        }
        PassageError::Unordered => {
            let ordered = Tokens::NAMES
                .iter()
                .filter(|(_, tokens)| !tokens.are_keywords());
            let ordered: Vec<&str> = ordered.map(|(name, _)| *name).collect();
            let name = options.tokens.name();
            UserError::invalid_parameter(format!("cannot find passages with tokens => '{name}'"))
                .detail(
                    "A passage is a sequence of consecutive tokens, but keywords are not \
                     consecutive.",
                )
                .hint(format!(
                    "Pass one of these values for \"tokens\": {}.",
                    ordered.join(", ")
                ))
                .raise()
        }
    })
}

/// Returns the hashes of the passages of a text as a `bigint[]`. `length` is the number of tokens
/// of the shortest passage that is found with certainty. `options` says how the text is split into
/// tokens. Ignores the features in the set `without`, if it is given.
fn hashes(
    text: &str,
    length: PassageLength,
    options: TextOptions,
    without: Option<&FeatureSet>,
) -> Datum {
    let hashes = Sketcher::with_thread_local(options, |sketcher| {
        sketcher.passages(text, length, without, &mut check_interrupts)
    });
    if hashes.len() > MAX_HASHES {
        let count = hashes.len();
        UserError::new(
            PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            "text has too many passages for an array",
        )
        .detail(format!(
            "The text has {count} hashes of passages, but an array can have at most {MAX_HASHES}."
        ))
        .hint("Pass a greater length, or split the text into parts.")
        .raise();
    }
    bigint_array(hashes.into_iter().map(|hash| hash as i64))
}

/// `passages(body, length, tokens, shingle, html, accents, digits)`: hashes of the passages of a
/// text.
fn of_text(call: &mut Call) -> Datum {
    let options = text_options::unweighted(call, 2);
    hashes(&call.utf8(0), length(call, 1, &options), options, None)
}

/// `passages_without(body, without, length, tokens, shingle, html, accents, digits)`: hashes of the
/// passages of a text. Ignores the features in the set `without`.
fn of_text_without(call: &mut Call) -> Datum {
    if has_null(call) {
        return call.return_null();
    }
    let options = text_options::unweighted(call, 3);
    let length = length(call, 2, &options);
    let set = fitting_set(call, &options);
    hashes(&call.utf8(0), length, options, set.as_deref())
}

/// Returns the distinct elements of the array in argument `n` in ascending order. `name` is the
/// argument's name, for errors.
fn sorted(call: &Call, n: usize, name: &str) -> Vec<i64> {
    let mut elements = Vec::new();
    elements.grow_all(call.array::<i64>(n, name).iter());
    // Arrays that `passages` returned are already sorted.
    if !elements.is_sorted() {
        let mut left = CHECK_EVERY;
        elements.sort_unstable_by(|a, b| {
            left -= 1;
            if left == 0 {
                left = CHECK_EVERY;
                check_interrupts();
            }
            a.cmp(b)
        });
    }
    elements.dedup();
    elements
}

/// `passages_in_common(a, b)`: number of distinct elements that both arrays have.
fn count_shared(call: &mut Call) -> Datum {
    let (a, b) = (sorted(call, 0, "a"), sorted(call, 1, "b"));
    let (mut a, mut b) = (a.as_slice(), b.as_slice());
    let (mut shared, mut step) = (0_i32, 0_usize);
    while let ([x, a_rest @ ..], [y, b_rest @ ..]) = (a, b) {
        step += 1;
        if step.is_multiple_of(CHECK_EVERY) {
            check_interrupts();
        }
        (a, b) = match x.cmp(y) {
            std::cmp::Ordering::Less => (a_rest, b),
            std::cmp::Ordering::Greater => (a, b_rest),
            std::cmp::Ordering::Equal => {
                shared += 1;
                (a_rest, b_rest)
            }
        };
    }
    Datum::from(shared)
}

/// Passages that two texts share, returned as rows of `shared_passages`.
struct PassageRows {
    found: SharedPassages,
    /// Texts to which the positions of the passages refer: the visible texts if the arguments are
    /// HTML.
    texts: [ServerText<'static>; 2],
    next: usize,
}

impl SetReturning for PassageRows {
    fn next(&mut self, columns: &mut Vec<Option<Datum>>) -> bool {
        let Some(passage) = self.found.passages.get(self.next) else {
            return false;
        };
        self.next += 1;
        let [a, b] = [(passage.a, &self.texts[0]), (passage.b, &self.texts[1])]
            .map(|(span, text)| Some(text.part_of_code_points(span?.code_points())));
        let share = passage.tokens as f64 / self.found.a_tokens as f64;
        columns.extend([
            a.as_ref().map(|part| Datum::from(part.start())),
            a.as_ref().map(|part| Datum::from(part.end())),
            b.as_ref().map(|part| Datum::from(part.start())),
            b.as_ref().map(|part| Datum::from(part.end())),
            Some(Datum::from(passage.tokens as i32)),
            Some(Datum::from(share.to_bits())),
            Some(match &a {
                Some(part) => self.texts[0].datum(part),
                None => text::datum(&passage.text),
            }),
        ]);
        true
    }
}

/// `shared_passages(a, b, length, tokens, html, accents, digits)`: passages that two texts share,
/// with their positions in both.
fn list(call: &mut Call) -> Datum {
    call.return_set(|call| {
        let options = text_options::single_tokens(call, 3);
        let length = length(call, 2, &options);
        let [a, b] = [0, 1].map(|n| call.utf8(n));
        let found = SharedPassages::new(&a, &b, length, &options, &mut check_interrupts);
        PassageRows {
            found,
            texts: [0, 1].map(|n| visible_text(call, n, options.html).into_owned()),
            next: 0,
        }
    })
}

export! {
    guarded "passages_text" => of_text;
    guarded "passages_without" => of_text_without;
    guarded "passages_in_common" => count_shared;
    guarded "shared_passages" => list;
}
