//! `minhash(...)` of a text, of features, of a tsvector, its aggregate, and what is made of
//! signatures.
use std::cell::RefCell;
use std::rc::Rc;

use neardup_sketch::minhash::{self, HashFamily, HashFamilyCache, Scheme, super_shingles};
use neardup_sketch::options::NamedOption;
use pgrx::pg_sys::Datum;

use super::arrays::{self, TEXT, elements};
use super::sketcher::with_sketcher;
use super::text_options;
use crate::pg::errors::UserError;
use crate::pg::fmgr::{Call, export};
use crate::pg::memory::check_interrupts;
use crate::pg::tsvector::Lexemes;
use crate::pg::{text, varlena};
use crate::types::signature::{HASHES, Signature};

/// Features between two looks for a request to cancel.
const CHECK_EVERY: usize = 4096;

thread_local! {
    static KEPT: RefCell<HashFamilyCache> = const { RefCell::new(HashFamilyCache::new()) };
}

/// The functions that the arguments `hashes`, `seed` and `scheme`, from a position on, ask for.
///
/// # Safety
/// The function is declared with `integer`, `bigint` and `text` there, and none of them is NULL.
unsafe fn functions(call: &Call, first: usize) -> Rc<HashFamily> {
    // SAFETY: as the caller promises.
    let scheme = scheme(unsafe { varlena::bytes(call.arg(first + 2)) });
    let hashes = hashes(call.arg(first).value() as i32);
    functions_of(scheme, hashes, call.arg(first + 1).value() as u64)
}

fn functions_of(scheme: Scheme, hashes: usize, seed: u64) -> Rc<HashFamily> {
    let found = KEPT.with_borrow_mut(|kept| kept.get(scheme, hashes, seed));
    found.unwrap_or_else(|_| {
        UserError::invalid_parameter(format!("seed {} is out of range", seed as i64))
            .detail(format!(
                "Seeds of scheme {} are from 0 to {}.",
                scheme.name(),
                u32::MAX
            ))
            .raise()
    })
}

fn scheme(name: &[u8]) -> Scheme {
    Scheme::from_name(name).unwrap_or_else(|error| text_options::refuse(&error, name))
}

fn hashes(hashes: i32) -> usize {
    usize::try_from(hashes)
        .ok()
        .filter(|hashes| HASHES.contains(hashes))
        .unwrap_or_else(|| {
            UserError::invalid_parameter(format!("hashes {hashes} is out of range"))
                .detail(format!(
                    "It is the number of values in a signature, from {} to {}.",
                    HASHES.start(),
                    HASHES.end()
                ))
                .raise()
        })
}

fn returned(call: &mut Call, functions: &HashFamily, values: Option<&[u32]>) -> Datum {
    match values {
        Some(values) => Signature {
            scheme: functions.scheme(),
            seed: functions.seed(),
            values,
        }
        .into_datum(),
        None => call.return_null(),
    }
}

/// The signature of a text; NULL if it has no feature.
fn of_text(call: &mut Call) -> Datum {
    // SAFETY: declared to take text, the parameters of texts, and those of signatures.
    let (text, options, functions) = unsafe {
        (
            text::utf8(call.arg(0)),
            text_options::unweighted(call, 1),
            functions(call, 6),
        )
    };
    let values = with_sketcher(options, |sketcher| {
        sketcher.signature(&text, &functions, &mut check_interrupts)
    });
    returned(call, &functions, values.as_deref())
}

/// The signature of features; NULL if there are none.
fn of_features(call: &mut Call) -> Datum {
    // SAFETY: declared to take text[], and the parameters of signatures.
    unsafe {
        let functions = functions(call, 1);
        of_array(call, &functions, call.arg(0))
    }
}

/// The signature of the lexemes of a tsvector; NULL if there are none.
fn of_tsvector(call: &mut Call) -> Datum {
    // SAFETY: declared to take tsvector, and the parameters of signatures.
    let (functions, lexemes) = unsafe { (functions(call, 1), Lexemes::new(call.arg(0))) };
    let mut making = minhash::SignatureBuilder::default();
    making.reset(&functions);
    // A tsvector has at most a megabyte: no need to look for a request to cancel.
    for lexeme in lexemes.iter() {
        making.add(&functions, text::bytes_utf8(lexeme.bytes).as_bytes());
    }
    returned(call, &functions, making.finish(&functions))
}

unsafe fn of_array(call: &mut Call, functions: &HashFamily, array: Datum) -> Datum {
    // SAFETY: the caller passes a text[].
    let features = unsafe { elements(array, "features", &TEXT) };
    let mut making = minhash::SignatureBuilder::default();
    making.reset(functions);
    for (n, feature) in features.iter().enumerate() {
        if n % CHECK_EVERY == 0 {
            check_interrupts();
        }
        // SAFETY: the elements of text[] are texts, which live as long as the array.
        making.add(functions, unsafe { text::utf8(*feature) }.as_bytes());
    }
    returned(call, functions, making.finish(functions))
}

/// The step of `minhash_agg`: takes a feature into the state, which is a signature. NULL features
/// are left out, as by the server's own aggregates.
fn accumulate(call: &mut Call) -> Datum {
    const PARAMETERS: usize = 5;
    if call.is_null(1) {
        return if call.is_null(0) {
            call.return_null()
        } else {
            call.arg(0)
        };
    }
    // SAFETY: declared to take a signature and a text, and then up to three parameters.
    unsafe {
        let state = (!call.is_null(0)).then(|| call.arg(0));
        let of_parameters = || {
            let given = |n: usize| n < call.len().min(PARAMETERS) && !call.is_null(n);
            let number = if given(2) {
                hashes(call.arg(2).value() as i32)
            } else {
                128
            };
            let seed = if given(3) {
                call.arg(3).value() as u64
            } else {
                0
            };
            let scheme = match given(4) {
                true => scheme(varlena::bytes(call.arg(4))),
                false => Scheme::Neardup1,
            };
            functions_of(scheme, number, seed)
        };
        let feature = text::utf8(call.arg(1));
        match state {
            Some(state) => {
                let before = Signature::from_datum(state);
                let functions = functions_of(before.scheme, before.values.len(), before.seed);
                change(call, state, |values| {
                    functions.add(values, feature.as_bytes())
                })
            }
            None => {
                let functions = of_parameters();
                let mut values = vec![u32::MAX; functions.hashes()];
                functions.add(&mut values, feature.as_bytes());
                let (scheme, seed) = (functions.scheme(), functions.seed());
                let values = &values;
                // The server copies it into the memory of the group.
                Signature {
                    scheme,
                    seed,
                    values,
                }
                .into_datum()
            }
        }
    }
}

/// `minhash_union(a, b)`: the signature of the union of two sets.
fn union(call: &mut Call) -> Datum {
    // SAFETY: declared to take two signatures.
    unsafe {
        let (a, b) = (
            Signature::from_datum(call.arg(0)),
            Signature::from_datum(call.arg(1)),
        );
        // For its error if they are of different kinds.
        a.expect_comparable(&b);
        change(call, call.arg(0), |values| minhash::merge(values, b.values))
    }
}

/// A signature changed: in place if an aggregate owns it, and otherwise in a copy.
unsafe fn change(call: &Call, state: Datum, edit: impl FnOnce(&mut [u32])) -> Datum {
    // SAFETY: the caller passes a signature; a state of an aggregate that is plain was made by
    // these functions, or copied for it, and nobody else uses it.
    unsafe {
        let own = matches!(call.aggregate(), Some((_, true)))
            && pgrx::varlena::varatt_is_4b_u(state.cast_mut_ptr());
        let state = match own {
            true => state,
            // The server copies it in turn, and frees the state before.
            false => Signature::from_datum(state).into_datum(),
        };
        let values = Signature::from_datum(state).values;
        edit(core::slice::from_raw_parts_mut(
            values.as_ptr().cast_mut(),
            values.len(),
        ));
        state
    }
}

/// `minhash_values(signature)`: the values as bigint[].
fn values(call: &mut Call) -> Datum {
    // SAFETY: declared to take a signature.
    let signature = unsafe { Signature::from_datum(call.arg(0)) };
    arrays::of_bigint(signature.values.iter().map(|value| i64::from(*value)))
}

/// `minhash_from_values(values, seed, scheme)`: a signature made elsewhere.
fn from_values(call: &mut Call) -> Datum {
    // SAFETY: declared to take bigint[], bigint and text.
    let (values, scheme) = unsafe {
        (
            elements(call.arg(0), "values", &arrays::INT8),
            scheme(varlena::bytes(call.arg(2))),
        )
    };
    let functions = functions_of(
        scheme,
        hashes(values.len() as i32),
        call.arg(1).value() as u64,
    );
    let values: Vec<u32> = (values.iter().enumerate())
        .map(|(n, value)| {
            let value = value.value() as i64;
            u32::try_from(value).unwrap_or_else(|_| {
                UserError::invalid_parameter("a value of a signature is out of range")
                    .detail(format!(
                        "Value {} is {value}; values are from 0 to {}.",
                        n + 1,
                        u32::MAX
                    ))
                    .raise()
            })
        })
        .collect();
    returned(call, &functions, Some(&values))
}

/// `minhash_super_shingles(signature, groups)`: a hash of each group of positions, as bigint[].
fn super_shingles_of(call: &mut Call) -> Datum {
    // SAFETY: declared to take a signature and an integer.
    let signature = unsafe { Signature::from_datum(call.arg(0)) };
    let groups = call.arg(1).value() as i32;
    let most = signature.values.len();
    if !(1..=most as i32).contains(&groups) {
        UserError::invalid_parameter(format!("groups {groups} is out of range"))
            .detail(format!(
                "A signature of {most} values is cut into 1 to {most} groups."
            ))
            .raise();
    }
    let hashes = super_shingles(signature.values, groups as usize);
    arrays::of_bigint(hashes.into_iter().map(|hash| hash as i64))
}

export! {
    guarded "minhash_text" => of_text;
    guarded "minhash_features" => of_features;
    guarded "minhash_tsvector" => of_tsvector;
    guarded "minhash_accumulate" => accumulate;
    guarded "minhash_union" => union;
    guarded "minhash_values" => values;
    guarded "minhash_from_values" => from_values;
    guarded "minhash_super_shingles" => super_shingles_of;
}
