//! OIDs of the extension's objects that the planner support needs, looked up in the extension's
//! schema.
//!
//! The lookup does not use search_path. The schema is that of the support function that the server
//! has just called. Each backend caches the result until a function or an operator in the database
//! changes.
use core::cell::{Cell, RefCell};
use core::ffi::CStr;
use std::rc::Rc;

use neardup_blocktree::metric::Metric;
use pgrx::pg_sys::{self, Oid, SysCacheIdentifier};

use neardup_pg::catalog::{Named, find, schema_of_function};
use neardup_pg::catalog_changes::on_change;

/// OIDs of the extension's objects from which the planner support builds expressions.
pub struct Catalog {
    /// Type OID of the domain `hamming`, which `<~>` returns.
    pub hamming: Oid,
    /// Function `_neardup_radius(bigint)`, which clamps a radius to the range of int4.
    pub radius: Oid,
    /// Function `_neardup_radius_below(bigint)`, which returns the largest integer radius below a
    /// number.
    pub radius_below: Oid,
    /// The three functions that round a float8 to a radius: `_neardup_floor_radius`,
    /// `_neardup_floor_radius_below` and `_neardup_whole_radius`.
    pub float_radii: [Oid; 3],
    /// The three functions that round a numeric to a radius. They have the same names and the same
    /// order as those in `float_radii`.
    pub numeric_radii: [Oid; 3],
    /// The two functions that convert a similarity to a radius: `_neardup_similarity_radius` and
    /// `_neardup_similarity_radius_above`. Their arguments are the similarity (float8) and the
    /// width of the fingerprints in bits (int4).
    pub similarity_radii: [Oid; 2],
    /// Function `_neardup_inverse(int4, float8, int4, float8)`, which solves a comparison of an
    /// arithmetic operation on float8, such as `y + 0.1 < 0.3`, for `y`. It returns the limit of
    /// `y`.
    pub inverse: Oid,
    /// Types that are searched by distance, as far as they exist in the installed version of the
    /// SQL script.
    pub types: Vec<SearchedType>,
}

/// OIDs of the objects of one type whose values are searched by distance.
pub struct SearchedType {
    /// Metric of the type. It is never [`Metric::Overlap`].
    pub metric: Metric,
    /// Type OID of the values, such as `fingerprint`.
    pub value: Oid,
    /// Type OID of the balls, such as `fingerprint_ball`. A ball consists of a centre and a radius,
    /// and contains all values within the radius of the centre.
    pub ball: Oid,
    /// Distance operator of two values: `<#>`, which returns int4, or `<%>` for signatures.
    pub distance_operator: Oid,
    /// Operator `<#|>`: the distance, or -1 for NULL. It orders rows with NULL first. `None` for
    /// signatures.
    pub nulls_first_operator: Option<Oid>,
    /// Operator `value <@ ball`, which indexes support.
    pub contained_operator: Oid,
    /// Function that makes a ball: `ball(value, radius)`, or `minhash_ball(value, radius)` for
    /// signatures.
    pub ball_function: Oid,
    /// Function `_neardup_within(value, value, bound...)`, which returns whether two values are
    /// within a bound.
    pub within_function: Oid,
    /// Functions of two values that return an estimated Jaccard similarity.
    pub similarity_functions: Vec<Oid>,
    /// Function `_neardup_at_distance(value, value, int4)`, which returns whether two values have
    /// exactly this distance; `None` for signatures.
    pub at_distance_function: Option<Oid>,
    /// Function `_neardup_ball(signature, float8, int4)`, which makes a ball from a bound (float8)
    /// and its kind (int4), such as "similarity at least"; `None` for fingerprints.
    pub bound_function: Option<Oid>,
    /// Function `_neardup_approximate(ball)`, which returns the ball with permission for
    /// approximate searches; `None` for fingerprints.
    pub approximate_function: Option<Oid>,
}

/// Names of a searched type and its ball type, for the lookup.
struct TypeNames {
    /// Metric of the type.
    metric: Metric,
    /// Name of the value type; `None` for bigint, which the extension does not declare.
    value: Option<&'static CStr>,
    /// Name of the ball type.
    ball: &'static CStr,
}

/// The types that are searched by distance.
const TYPES: [TypeNames; 5] = [
    TypeNames {
        metric: Metric::Hamming { bits: 64 },
        value: Some(c"fingerprint"),
        ball: c"fingerprint_ball",
    },
    TypeNames {
        metric: Metric::Hamming { bits: 128 },
        value: Some(c"fingerprint128"),
        ball: c"fingerprint128_ball",
    },
    TypeNames {
        metric: Metric::Hamming { bits: 256 },
        value: Some(c"fingerprint256"),
        ball: c"fingerprint256_ball",
    },
    TypeNames {
        metric: Metric::Hamming { bits: 64 },
        value: None,
        ball: c"bigint_ball",
    },
    TypeNames {
        metric: Metric::Jaccard(()),
        value: Some(c"minhash_signature"),
        ball: c"minhash_ball",
    },
];

thread_local! {
    static KNOWN: RefCell<Option<(Oid, Rc<Catalog>)>> = const { RefCell::new(None) };
    static STALE: Cell<bool> = const { Cell::new(false) };
    static WATCHING: Cell<bool> = const { Cell::new(false) };
}

/// Returns the OIDs of the extension's objects. Looks them up in the schema of `function`, which is
/// a function of the extension. `None` if objects are missing, as while CREATE EXTENSION runs the
/// extension's script. Then the planner support rewrites nothing.
pub fn catalog(function: Oid) -> Option<Rc<Catalog>> {
    watch();
    of_schema(schema_of_function(function))
}

/// Returns the OIDs of the extension's objects in the schema that this backend used last. Repeats
/// the lookup if the catalogue has changed since. `None` if this backend has not looked up any
/// OIDs, or if objects are missing now.
pub fn current() -> Option<Rc<Catalog>> {
    of_schema(KNOWN.with_borrow(|known| known.as_ref().map(|(schema, _)| *schema))?)
}

/// Returns the OIDs of the objects in `schema`. Uses the cache if it is current, and otherwise
/// looks them up.
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
    // A change during the lookup sets STALE again, so the next call repeats the lookup.
    KNOWN.set(Some((schema, catalog.clone())));
    Some(catalog)
}

impl Catalog {
    /// Returns the searched type with this type OID, or `None` for another type.
    pub fn by_value(&self, oid: Oid) -> Option<&SearchedType> {
        self.types.iter().find(|searched| searched.value == oid)
    }

    /// Returns the searched type whose ball type has this OID, or `None` for another type.
    pub fn by_ball(&self, oid: Oid) -> Option<&SearchedType> {
        self.types.iter().find(|searched| searched.ball == oid)
    }

    /// Returns the searched type with this distance operator, or `None` for another operator.
    pub fn by_distance(&self, operator: Oid) -> Option<&SearchedType> {
        (self.types.iter()).find(|searched| searched.distance_operator == operator)
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
            inverse: {
                let (int4, float8) = (pg_sys::INT4OID, pg_sys::FLOAT8OID);
                let arguments = Named::Function(&[int4, float8, int4, float8]);
                find(schema, c"_neardup_inverse", arguments)?
            },
            // A missing type belongs to a later version of the SQL script than the installed one.
            // The other types work without it.
            types: (TYPES.iter())
                .filter_map(|names| SearchedType::find(schema, names))
                .collect(),
        })
    }
}

impl SearchedType {
    /// Looks up the objects of the type that `names` describes in the schema `schema`; `None` if an
    /// object is missing.
    fn find(schema: Oid, names: &TypeNames) -> Option<Self> {
        let value = match names.value {
            Some(name) => find(schema, name, Named::Type)?,
            None => pg_sys::INT8OID,
        };
        let ball = find(schema, names.ball, Named::Type)?;
        let function = |name, arguments: &[Oid]| find(schema, name, Named::Function(arguments));
        let is_jaccard = names.metric.is_jaccard();
        // `bound` has the types of the arguments that follow the two values in a call of
        // `_neardup_within`, and `distance` the name of the distance operator.
        let (distance, bound) = match is_jaccard {
            true => (c"<%>", &[pg_sys::FLOAT8OID, pg_sys::INT4OID][..]),
            false => (c"<#>", &[pg_sys::INT4OID][..]),
        };
        let mut similarity_functions = vec![function(c"fingerprint_similarity", &[value, value])?];
        let ball_function = if is_jaccard { c"minhash_ball" } else { c"ball" };
        let (mut at_distance_function, mut bound_function) = (None, None);
        let mut nulls_first_operator = None;
        let mut approximate_function = None;
        if is_jaccard {
            // The function `minhash_similarity` exists for signatures only.
            similarity_functions.push(function(c"minhash_similarity", &[value, value])?);
            bound_function = Some(function(c"_neardup_ball", &[&[value], bound].concat())?);
            approximate_function = Some(function(c"_neardup_approximate", &[ball])?);
        } else {
            let arguments = [value, value, pg_sys::INT4OID];
            nulls_first_operator = Some(find(schema, c"<#|>", Named::Operator(value, value))?);
            at_distance_function = Some(function(c"_neardup_at_distance", &arguments)?);
        }
        Some(SearchedType {
            metric: names.metric,
            value,
            ball,
            distance_operator: find(schema, distance, Named::Operator(value, value))?,
            nulls_first_operator,
            contained_operator: find(schema, c"<@", Named::Operator(value, ball))?,
            ball_function: function(ball_function, &[value, bound[0]])?,
            within_function: function(c"_neardup_within", &[&[value, value], bound].concat())?,
            similarity_functions,
            at_distance_function,
            bound_function,
            approximate_function,
        })
    }
}

/// Registers a callback that marks the cached OIDs as stale when a function or an operator in the
/// catalogue changes. Does this once for each backend.
fn watch() {
    if !WATCHING.replace(true) {
        for cache in [SysCacheIdentifier::PROCOID, SysCacheIdentifier::OPEROID] {
            on_change(cache, || STALE.set(true));
        }
    }
}
