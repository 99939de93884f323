//! MinHash signatures in SQL: `minhash` of a text, of features and of a tsvector, the aggregate
//! `minhash_agg`, `minhash_union`, `minhash_values` and `minhash_from_values`.
use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;

use neardup_sketch::Sketcher;
use neardup_sketch::minhash::{self, HashFamily, HashFamilyCache, Scheme, SignatureBuilder};
use neardup_sketch::options::NamedOption;
use pgrx::pg_sys::Datum;

use super::text_options;
use crate::types::signature::{HASHES, Signature};
use neardup_pg::arrays::bigint_array;
use neardup_pg::errors::UserError;
use neardup_pg::fmgr::{Call, export};
use neardup_pg::memory::check_interrupts;
use neardup_pg::text;

/// Default number of values in a signature.
const DEFAULT_HASHES: usize = 128;
/// Number of features between two checks for interrupts.
const CHECK_EVERY: usize = 4096;

thread_local! {
    static FAMILIES: RefCell<HashFamilyCache> = const { RefCell::new(HashFamilyCache::new()) };
}

/// Returns the hash family (the hash functions of a signature) that the arguments `hashes`, `seed`
/// and `scheme` describe. `first` is the position of `hashes`. Raises an error if an argument is
/// out of range.
pub fn family_argument(call: &Call, first: usize) -> Rc<HashFamily> {
    let (hashes, seed) = (hashes(call.int4(first)), call.int8(first + 1));
    family(text_options::named(call, first + 2), hashes, seed as u64)
}

/// Returns the hash family that `minhash` uses by default.
pub fn default_family() -> Rc<HashFamily> {
    family(Scheme::Neardup1, DEFAULT_HASHES, 0)
}

/// Returns the family of `hashes` hash functions with this scheme and seed, from the cache of this
/// backend. Creates it if the cache does not have it. Raises an error if the seed is out of range
/// for the scheme.
fn family(scheme: Scheme, hashes: usize, seed: u64) -> Rc<HashFamily> {
    let found = FAMILIES.with_borrow_mut(|families| families.get(scheme, hashes, seed));
    found.unwrap_or_else(|_| {
        UserError::invalid_parameter(format!("seed {} is out of range", seed as i64))
            .detail(format!(
                "A seed of scheme {} must be from 0 to {}.",
                scheme.name(),
                u32::MAX
            ))
            .raise()
    })
}

/// Returns the argument `hashes`, the number of values in a signature, as `usize`. Raises an error
/// if it is out of range.
fn hashes(hashes: i32) -> usize {
    usize::try_from(hashes)
        .ok()
        .filter(|hashes| HASHES.contains(hashes))
        .unwrap_or_else(|| {
            UserError::invalid_parameter(format!("value {hashes} is out of range for \"hashes\""))
                .detail(format!(
                    "The number of values in a signature must be from {} to {}.",
                    HASHES.start(),
                    HASHES.end()
                ))
                .raise()
        })
}

/// Converts the values of a signature, made by `family`, to a Datum of type `minhash_signature`.
pub fn signature(family: &HashFamily, values: &[u32]) -> Datum {
    Signature {
        scheme: family.scheme(),
        seed: family.seed(),
        values,
    }
    .into_datum()
}

/// `minhash(body, options, hashes, seed, scheme)`: signature of a text, or NULL if the text has no
/// feature.
fn of_text(call: &mut Call) -> Datum {
    let (text, options) = (call.utf8(0), text_options::unweighted(call, 1));
    let family = family_argument(call, 6);
    let values = Sketcher::with_thread_local(options, |sketcher| {
        sketcher.signature(&text, &family, &mut check_interrupts)
    });
    call.return_value(values.map(|values| signature(&family, &values)))
}

/// `minhash(features, hashes, seed, scheme)`: signature of an array of features, or NULL if it is
/// empty.
fn of_features(call: &mut Call) -> Datum {
    let family = family_argument(call, 1);
    let features = call.array::<Cow<str>>(0, "features");
    let signature = of_set(&family, features.iter());
    call.return_value(signature)
}

/// `minhash(tsvector, hashes, seed, scheme)`: signature of the lexemes of a tsvector, or NULL if it
/// has none.
fn of_tsvector(call: &mut Call) -> Datum {
    let family = family_argument(call, 1);
    let lexemes = call.tsvector(0);
    let texts = lexemes.iter().map(|lexeme| text::bytes_utf8(lexeme.bytes));
    let signature = of_set(&family, texts);
    call.return_value(signature)
}

/// Returns the signature of a set of features, or `None` if there are no features.
fn of_set<'a>(family: &HashFamily, features: impl Iterator<Item = Cow<'a, str>>) -> Option<Datum> {
    let mut builder = SignatureBuilder::default();
    builder.reset(family);
    for (n, feature) in features.enumerate() {
        if n % CHECK_EVERY == 0 {
            check_interrupts();
        }
        builder.add(family, feature.as_bytes());
    }
    let values = builder.finish(family);
    values.map(|values| signature(family, values))
}

/// Transition function of `minhash_agg`: adds a feature to the state, which is a signature. Ignores
/// NULL features, like the server's aggregates.
fn accumulate(call: &mut Call) -> Datum {
    if call.is_null(1) {
        return if call.is_null(0) {
            call.return_null()
        } else {
            call.arg(0)
        };
    }
    let feature = call.utf8(1);
    if call.is_null(0) {
        let family = aggregate_family(call);
        let mut values = vec![u32::MAX; family.hashes()];
        family.add(&mut values, feature.as_bytes());
        // The server copies the result into memory that lives as long as the group.
        return signature(&family, &values);
    }
    let state = Signature::argument(call, 0);
    let family = family(state.scheme, state.values.len(), state.seed);
    Signature::edit_state(call, |values| family.add(values, feature.as_bytes()))
}

/// Returns the hash family that the optional arguments 2 to 4 of `minhash_agg` describe: `hashes`,
/// `seed` and `scheme`.
fn aggregate_family(call: &Call) -> Rc<HashFamily> {
    let given = |n: usize| n < call.arg_count() && !call.is_null(n);
    let hashes = if given(2) {
        hashes(call.int4(2))
    } else {
        DEFAULT_HASHES
    };
    let seed = if given(3) { call.int8(3) } else { 0 };
    let scheme = if given(4) {
        text_options::named(call, 4)
    } else {
        Scheme::Neardup1
    };
    family(scheme, hashes, seed as u64)
}

/// `minhash_union(a, b)`: signature of the union of two sets, computed from their signatures.
fn union(call: &mut Call) -> Datum {
    let [a, b] = [0, 1].map(|n| Signature::argument(call, n));
    a.expect_comparable(&b);
    Signature::edit_state(call, |values| minhash::merge(values, b.values))
}

/// `minhash_values(signature)`: values of a signature as bigint[].
fn values(call: &mut Call) -> Datum {
    let signature = Signature::argument(call, 0);
    bigint_array(signature.values.iter().map(|value| i64::from(*value)))
}

/// `minhash_from_values(values, seed, scheme)`: signature from values that another program has
/// computed.
fn from_values(call: &mut Call) -> Datum {
    let values = call.array::<i64>(0, "values");
    let scheme = text_options::named(call, 2);
    let family = family(scheme, hashes(values.len() as i32), call.int8(1) as u64);
    let values: Vec<u32> = (values.iter().enumerate())
        .map(|(n, value)| {
            u32::try_from(value).unwrap_or_else(|_| {
                UserError::invalid_parameter("a value of a signature is out of range")
                    .detail(format!(
                        "Value {} is {value}, but values must be from 0 to {}.",
                        n + 1,
                        u32::MAX
                    ))
                    .raise()
            })
        })
        .collect();
    signature(&family, &values)
}

export! {
    guarded "minhash_text" => of_text;
    guarded "minhash_features" => of_features;
    guarded "minhash_tsvector" => of_tsvector;
    guarded "_neardup_minhash_accumulate" => accumulate;
    guarded "minhash_union" => union;
    guarded "minhash_values" => values;
    guarded "minhash_from_values" => from_values;
}
