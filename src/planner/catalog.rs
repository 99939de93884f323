//! The extension's own objects by OID, found through the schema that the extension lives in.
//!
//! Nothing is looked up by search_path: the schema is that of the support function that the
//! server has just called. The result is kept for the backend and dropped whenever a function or
//! an operator changes in the catalogue.
use core::cell::{Cell, RefCell};
use core::ffi::CStr;
use std::rc::Rc;

use pgrx::pg_sys::{self, Datum, Oid, SysCacheIdentifier};

use crate::pg::catalog::{Named, find, schema_of_function};
use crate::types::distance::Threshold;
use crate::types::{Bigint, Fingerprint64, Fingerprint128, Fingerprint256};

/// The objects of the extension that the planner support builds expressions from.
pub struct Catalog {
    /// The domain `hamming`.
    pub hamming: Oid,
    /// `_neardup_radius(bigint)`.
    pub radius: Oid,
    /// `_neardup_radius_below(bigint)`.
    pub radius_below: Oid,
    /// `_neardup_floor_radius(float8)`, `_neardup_floor_radius_below` and `_neardup_whole_radius`.
    pub float_radii: [Oid; 3],
    /// The same three of numeric.
    pub numeric_radii: [Oid; 3],
    /// `_neardup_similarity_radius(float8, int4)` and `_neardup_similarity_radius_above`.
    pub similarity_radii: [Oid; 2],
    /// One for each type that is searched by distance, as far as the SQL script has them.
    pub metrics: Vec<Metric>,
}

/// The objects that belong to a type whose values are searched by their distance.
pub struct Metric {
    /// The type.
    pub value: Oid,
    /// Its ball type.
    pub ball: Oid,
    /// `<#>`, the distance as int4, or `<%>`.
    pub distance_operator: Oid,
    /// `<@`, which indexes know.
    pub contained_operator: Oid,
    /// `ball(value, bound)`, with the greatest distance as its bound.
    pub ball_function: Oid,
    /// `_neardup_within(value, value, bound...)`.
    pub within_function: Oid,
    /// Functions of two values that return an estimated Jaccard similarity.
    pub similarity_functions: Vec<Oid>,
    /// Objects that only this kind of type has.
    pub space: Space,
}

/// The distance of a type's values.
pub enum Space {
    /// Differing bits of fingerprints.
    Hamming(Hamming),
    /// Estimated Jaccard distance of MinHash signatures.
    MinHash(MinHash),
}

/// Objects of one fingerprint type.
pub struct Hamming {
    /// `_neardup_at_distance(fingerprint, fingerprint, int4)`.
    pub at_distance_function: Oid,
    /// Width of the type.
    pub traits: &'static Traits,
}

/// Objects of MinHash signatures.
pub struct MinHash {
    /// `_neardup_ball(signature, float8, int4)`, for the other kinds of bound.
    pub bound_function: Oid,
    /// `_neardup_approximate(ball)`.
    pub approximate_function: Oid,
}

/// Width of a fingerprint type.
pub struct Traits {
    /// The name of the type; `None` for bigint, which is the server's.
    name: Option<&'static CStr>,
    ball_name: &'static CStr,
    /// The width in bits.
    pub bits: u32,
    /// The greatest distance for which `~=` holds.
    pub near_duplicate: u32,
}

impl Traits {
    const fn of<T: Threshold>(name: Option<&'static CStr>, ball_name: &'static CStr) -> Self {
        Traits {
            name,
            ball_name,
            bits: T::BITS,
            near_duplicate: T::NEAR_DUPLICATE,
        }
    }
}

static TRAITS: [Traits; 4] = [
    Traits::of::<Fingerprint64>(Some(c"fingerprint"), c"fingerprint_ball"),
    Traits::of::<Fingerprint128>(Some(c"fingerprint128"), c"fingerprint128_ball"),
    Traits::of::<Fingerprint256>(Some(c"fingerprint256"), c"fingerprint256_ball"),
    Traits::of::<Bigint>(None, c"bigint_ball"),
];

thread_local! {
    static KNOWN: RefCell<Option<(Oid, Rc<Catalog>)>> = const { RefCell::new(None) };
    static STALE: Cell<bool> = const { Cell::new(false) };
    static WATCHING: Cell<bool> = const { Cell::new(false) };
}

/// The objects in the schema of `function`, a function of the extension. `None` if objects are
/// missing, as in the middle of the extension's own script: then nothing is to be rewritten.
pub fn catalog(function: Oid) -> Option<Rc<Catalog>> {
    watch();
    of_schema(schema_of_function(function))
}

/// The objects that this backend asked for last, as the catalogue has them now. `None` if it has
/// asked for none yet.
pub fn current() -> Option<Rc<Catalog>> {
    of_schema(KNOWN.with_borrow(|known| known.as_ref().map(|(schema, _)| *schema))?)
}

fn of_schema(schema: Oid) -> Option<Rc<Catalog>> {
    if STALE.take() {
        KNOWN.set(None);
    }
    let known = KNOWN.with_borrow(|known| {
        known
            .as_ref()
            .filter(|(of, _)| *of == schema)
            .map(|(_, catalog)| catalog.clone())
    });
    if known.is_some() {
        return known;
    }
    let catalog = Rc::new(Catalog::find(schema)?);
    // A change that arrives during the look-up has set STALE again, so that the next call repeats
    // it.
    KNOWN.set(Some((schema, catalog.clone())));
    Some(catalog)
}

impl Catalog {
    /// The metric of a type.
    pub fn by_value(&self, oid: Oid) -> Option<&Metric> {
        self.metrics.iter().find(|metric| metric.value == oid)
    }

    /// The metric of a ball type.
    pub fn by_ball(&self, oid: Oid) -> Option<&Metric> {
        self.metrics.iter().find(|metric| metric.ball == oid)
    }

    /// The metric of a distance operator.
    pub fn by_distance(&self, operator: Oid) -> Option<&Metric> {
        (self.metrics.iter()).find(|metric| metric.distance_operator == operator)
    }

    fn find(schema: Oid) -> Option<Self> {
        let function = |name, argument| find(schema, name, Named::Function(&[argument]));
        let radii = |number| {
            Some([
                function(c"_neardup_floor_radius", number)?,
                function(c"_neardup_floor_radius_below", number)?,
                function(c"_neardup_whole_radius", number)?,
            ])
        };
        let of_similarity = |name| {
            let arguments = [pg_sys::FLOAT8OID, pg_sys::INT4OID];
            find(schema, name, Named::Function(&arguments))
        };
        Some(Catalog {
            hamming: find(schema, c"hamming", Named::Type)?,
            radius: function(c"_neardup_radius", pg_sys::INT8OID)?,
            radius_below: function(c"_neardup_radius_below", pg_sys::INT8OID)?,
            float_radii: radii(pg_sys::FLOAT8OID)?,
            numeric_radii: radii(pg_sys::NUMERICOID)?,
            similarity_radii: [
                of_similarity(c"_neardup_similarity_radius")?,
                of_similarity(c"_neardup_similarity_radius_above")?,
            ],
            // A type that this schema lacks belongs to a later version of the SQL script than is
            // installed; the others work without it.
            metrics: (TRAITS.iter())
                .map(|traits| Metric::of_fingerprints(schema, traits))
                .chain([Metric::of_signatures(schema)])
                .flatten()
                .collect(),
        })
    }
}

impl Metric {
    /// Objects of fingerprints, if these are fingerprints.
    pub fn hamming(&self) -> Option<&Hamming> {
        match &self.space {
            Space::Hamming(hamming) => Some(hamming),
            Space::MinHash(_) => None,
        }
    }

    /// Objects of signatures, if these are signatures.
    pub fn minhash(&self) -> Option<&MinHash> {
        match &self.space {
            Space::Hamming(_) => None,
            Space::MinHash(minhash) => Some(minhash),
        }
    }

    fn of_fingerprints(schema: Oid, traits: &'static Traits) -> Option<Self> {
        let value = match traits.name {
            Some(name) => find(schema, name, Named::Type)?,
            None => pg_sys::INT8OID,
        };
        let ball = find(schema, traits.ball_name, Named::Type)?;
        let bound = [pg_sys::INT4OID];
        let pair = [value, value, pg_sys::INT4OID];
        let space = Space::Hamming(Hamming {
            at_distance_function: find(schema, c"_neardup_at_distance", Named::Function(&pair))?,
            traits,
        });
        Self::find(schema, c"<#>", value, ball, &bound, space)
    }

    fn of_signatures(schema: Oid) -> Option<Self> {
        let value = find(schema, c"minhash_signature", Named::Type)?;
        let ball = find(schema, c"minhash_ball", Named::Type)?;
        let bound = [pg_sys::FLOAT8OID, pg_sys::INT4OID];
        let function = |name, arguments: &[Oid]| find(schema, name, Named::Function(arguments));
        let space = Space::MinHash(MinHash {
            bound_function: function(c"_neardup_ball", &[value, bound[0], bound[1]])?,
            approximate_function: function(c"_neardup_approximate", &[ball])?,
        });
        Self::find(schema, c"<%>", value, ball, &bound, space)
    }

    /// Looks up what all metrics have. `bound`: the types of what follows the two values in a call
    /// of `_neardup_within`.
    fn find(
        schema: Oid,
        distance: &CStr,
        value: Oid,
        ball: Oid,
        bound: &[Oid],
        space: Space,
    ) -> Option<Self> {
        let within = [&[value, value], bound].concat();
        let similarity = |name| find(schema, name, Named::Function(&[value, value]));
        let mut similarity_functions = vec![similarity(c"fingerprint_similarity")?];
        // A function of this name on fingerprints is none of the extension's.
        if let Space::MinHash(_) = space {
            similarity_functions.push(similarity(c"minhash_similarity")?);
        }
        Some(Metric {
            value,
            ball,
            distance_operator: find(schema, distance, Named::Operator(value, value))?,
            contained_operator: find(schema, c"<@", Named::Operator(value, ball))?,
            ball_function: find(schema, c"ball", Named::Function(&[value, bound[0]]))?,
            within_function: find(schema, c"_neardup_within", Named::Function(&within))?,
            similarity_functions,
            space,
        })
    }
}

/// Asks the server, once for each backend, to be told of changes.
fn watch() {
    if !WATCHING.replace(true) {
        for cache in [SysCacheIdentifier::PROCOID, SysCacheIdentifier::OPEROID] {
            // SAFETY: the callback stays valid: libraries are never unloaded.
            unsafe {
                pg_sys::CacheRegisterSyscacheCallback(cache as i32, Some(forget), Datum::null())
            };
        }
    }
}

/// Called by the server when a function or an operator has changed. It must not fail.
unsafe extern "C-unwind" fn forget(_argument: Datum, _cache: i32, _hash: u32) {
    STALE.set(true);
}
