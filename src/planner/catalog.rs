//! OIDs of the extension's objects, looked up in the extension's schema.
//!
//! The search_path is not used: the schema is that of the support function that the server has
//! just called. Each backend caches the result until a function or an operator changes in the
//! catalogue.
use core::cell::{Cell, RefCell};
use core::ffi::CStr;
use std::rc::Rc;

use neardup_blocktree::metric::Metric;
use pgrx::pg_sys::{self, Oid, SysCacheIdentifier};

use neardup_pg::catalog::{Named, find, schema_of_function};
use neardup_pg::catalog_changes::on_change;

/// Objects of the extension that the planner support builds expressions from.
pub struct Catalog {
    /// The domain `hamming`.
    pub hamming: Oid,
    /// `_neardup_radius(bigint)`.
    pub radius: Oid,
    /// `_neardup_radius_below(bigint)`.
    pub radius_below: Oid,
    /// `_neardup_floor_radius(float8)`, `_neardup_floor_radius_below` and `_neardup_whole_radius`.
    pub float_radii: [Oid; 3],
    /// The same three functions of numeric.
    pub numeric_radii: [Oid; 3],
    /// `_neardup_similarity_radius(float8, int4)` and `_neardup_similarity_radius_above`.
    pub similarity_radii: [Oid; 2],
    /// `_neardup_inverse(int4, float8, int4, float8)`.
    pub inverse: Oid,
    /// Types that are searched by distance and exist in the installed version of the SQL script.
    pub types: Vec<SearchedType>,
}

/// Objects of a type whose values are searched by distance.
pub struct SearchedType {
    /// Metric of the type, never [`Metric::Overlap`].
    pub metric: Metric,
    /// Type of the values.
    pub value: Oid,
    /// Ball type of the type.
    pub ball: Oid,
    /// `<#>`, the distance as int4, or `<%>`.
    pub distance_operator: Oid,
    /// `<#|>`, the distance that puts NULL first; `None` for signatures.
    pub nulls_first_operator: Option<Oid>,
    /// `<@`, which indexes support.
    pub contained_operator: Oid,
    /// `ball(value, radius)` or `minhash_ball(value, radius)`.
    pub ball_function: Oid,
    /// `_neardup_within(value, value, bound...)`.
    pub within_function: Oid,
    /// Functions of two values that return an estimated Jaccard similarity.
    pub similarity_functions: Vec<Oid>,
    /// `_neardup_at_distance(fingerprint, fingerprint, int4)`; `None` for signatures.
    pub at_distance_function: Option<Oid>,
    /// `_neardup_ball(signature, float8, int4)`, for other bounds; `None` for fingerprints.
    pub bound_function: Option<Oid>,
    /// `_neardup_approximate(ball)`; `None` for fingerprints.
    pub approximate_function: Option<Oid>,
}

/// Names of a type and of its ball type. The server's own types have no name here.
struct TypeNames {
    metric: Metric,
    value: Option<&'static CStr>,
    ball: &'static CStr,
}

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

/// Returns the objects in the schema of `function`, a function of the extension. `None` if objects
/// are missing, as during the extension's own script; then nothing is rewritten.
pub fn catalog(function: Oid) -> Option<Rc<Catalog>> {
    watch();
    of_schema(schema_of_function(function))
}

/// Returns the objects that this backend looked up last, as they are in the catalogue now. `None`
/// if it has not looked up any.
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
    // A change that arrives during the lookup has set STALE again, so the next call repeats the
    // lookup.
    KNOWN.set(Some((schema, catalog.clone())));
    Some(catalog)
}

impl Catalog {
    /// Returns the searched type with this OID.
    pub fn by_value(&self, oid: Oid) -> Option<&SearchedType> {
        self.types.iter().find(|searched| searched.value == oid)
    }

    /// Returns the searched type of a ball type.
    pub fn by_ball(&self, oid: Oid) -> Option<&SearchedType> {
        self.types.iter().find(|searched| searched.ball == oid)
    }

    /// Returns the searched type of a distance operator.
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
            // A missing type belongs to a later version of the SQL script than is installed. The
            // other types work without it.
            types: (TYPES.iter())
                .filter_map(|names| SearchedType::find(schema, names))
                .collect(),
        })
    }
}

impl SearchedType {
    /// Looks up the objects of a type; `None` if one is missing.
    fn find(schema: Oid, names: &TypeNames) -> Option<Self> {
        let value = match names.value {
            Some(name) => find(schema, name, Named::Type)?,
            None => pg_sys::INT8OID,
        };
        let ball = find(schema, names.ball, Named::Type)?;
        let function = |name, arguments: &[Oid]| find(schema, name, Named::Function(arguments));
        let is_jaccard = names.metric.is_jaccard();
        // Types of the bound in a call of `_neardup_within`, after the two values.
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
            // `minhash_similarity` exists for signatures only.
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

/// Registers for invalidations of the catalogue, once for each backend.
fn watch() {
    if !WATCHING.replace(true) {
        for cache in [SysCacheIdentifier::PROCOID, SysCacheIdentifier::OPEROID] {
            on_change(cache, || STALE.set(true));
        }
    }
}
