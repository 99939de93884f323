//! Options of a neardup index (`CREATE INDEX ... WITH (...)`), and the block layout that follows
//! from them. A block layout divides the bits of a fingerprint into blocks, and determines the
//! permutations (ordered copies of all keys).
use core::ffi::{CStr, c_int};
use std::rc::Rc;
use std::sync::OnceLock;

use neardup_blocktree::bands::MAX_BANDS;
use neardup_blocktree::block_layout::{
    BlockLayout, BlockLayoutError, MAX_PERMUTATIONS, max_radius,
};
use neardup_blocktree::build::{DEFAULT_LEAF_FILL, Fill};
use neardup_blocktree::index_metric::IndexMetric;
use neardup_blocktree::layout_choice;
use neardup_blocktree::metric::{Metric, UsualBound};
use neardup_sketch::minhash::MAX_HASHES;
use pgrx::{PgSqlErrorCode, pg_sys};

use super::keys::Layout;
use super::minhash::options::{BandOptions, MAX_ROWS};
use neardup_pg::errors::UserError;
use neardup_pg::rel::Rel;
use neardup_pg::reloptions::{IntOption, OptionKind, OptionTexts, Options, RealOption};

/// Value of the option `radius` if it is not given. The radius then follows from the expression
/// that makes the fingerprints, or from the width of the fingerprints.
const DEFAULT_RADIUS: c_int = -1;
/// Maximum value of the option `radius`: the width in bits of the widest fingerprints.
const MAX_RADIUS: c_int = 256;
const MAX_BLOCKS: c_int = 64;
const DEFAULT_FILL: c_int = DEFAULT_LEAF_FILL as c_int;
const MIN_FILL: c_int = 50;

/// Kind of options that the server has assigned to neardup indexes (`add_reloption_kind`). Set when
/// the library is loaded.
static KIND: OnceLock<OptionKind> = OnceLock::new();

const SIMILARITY: &CStr =
    c"Least estimated similarity of most searches for signatures; 0 for the default";

/// Declaration of the options. [`Values`] has their values in this order.
const OPTIONS: Options<6, 1> = Options {
    ints: [
        // A negative value means that the option is not given.
        IntOption {
            name: c"radius",
            about: c"Radius of most searches, in bits, which the layout is chosen for",
            default: DEFAULT_RADIUS,
            min: 0,
            max: MAX_RADIUS,
        },
        // 0 lets the build choose the blocks together with the radius that the permutations
        // guarantee.
        IntOption {
            name: c"blocks",
            about: c"Blocks that a fingerprint is cut into; 0 chooses by radius and number of rows",
            default: 0,
            min: 0,
            max: MAX_BLOCKS,
        },
        IntOption {
            name: c"fillfactor",
            about: c"How full a build packs leaves, in per cent",
            default: DEFAULT_FILL,
            min: MIN_FILL,
            max: 100,
        },
        IntOption {
            name: c"hashes",
            about: c"Values of the signatures that are indexed; 0 for the default of minhash()",
            default: 0,
            min: 0,
            max: MAX_HASHES as c_int,
        },
        // 0 means that the number of bands follows from the option `rows`, or from the similarity
        // if `rows` is 0 too.
        IntOption {
            name: c"bands",
            about: c"Bands that signatures are cut into; 0 chooses by the similarity",
            default: 0,
            min: 0,
            max: MAX_BANDS as c_int,
        },
        // 0 divides all hashes of a signature evenly among the bands.
        IntOption {
            name: c"rows",
            about: c"Values in a band of a signature; 0 shares all out evenly",
            default: 0,
            min: 0,
            max: MAX_ROWS,
        },
    ],
    reals: [
        // 0 means the conventional similarity of near-duplicates.
        RealOption {
            name: c"similarity",
            about: SIMILARITY,
            default: 0.0,
            min: 0.0,
            max: 1.0,
        },
    ],
};

/// Values of the integer options and of the floating-point options.
type Values = ([c_int; 6], [f64; 1]);

/// Registers the options with the server. Called once, when the library is loaded.
pub fn register() {
    KIND.get_or_init(|| OPTIONS.register());
}

/// Parses the options of a statement (`amoptions`), and returns them in the form in which the
/// server caches them. If `validate` is true, raises an error for impossible options.
pub fn parse(texts: OptionTexts, validate: bool) -> *mut pg_sys::bytea {
    let kind = *KIND.get().expect("registered when the library was loaded");
    let parsed = OPTIONS.parse(kind, texts, validate);
    if let Some(([radius, blocks, ..], _)) = parsed.values()
        && let Ok(radius) = u32::try_from(radius)
        && validate
        && blocks != 0
    {
        check(radius, blocks as u32);
    }
    parsed.into_raw()
}

/// Options of an index that determine how it is built.
#[derive(PartialEq)]
pub struct BuildOptions {
    /// Option `radius`, in bits, for fingerprints; `None` if not given.
    radius: Option<u32>,
    /// Option `blocks` for fingerprints; 0 if not given.
    blocks: u32,
    /// Options for signatures.
    signatures: BandOptions,
    /// How full a build packs leaves and inner pages.
    pub fill: Fill,
}

impl BuildOptions {
    /// Reads the options of a neardup index from the relation cache.
    pub fn from_index(index: Rel) -> Self {
        Self::from_values(OPTIONS.of_index(index))
    }

    /// Reads the options of a neardup index that the current command has changed.
    pub fn from_altered_index(index: Rel) -> Self {
        Self::from_values(OPTIONS.of_altered_index(index))
    }

    fn from_values(values: Option<Values>) -> Self {
        let ([radius, blocks, leaf, ..], _) =
            values.unwrap_or(([DEFAULT_RADIUS, 0, DEFAULT_FILL, 0, 0, 0], [0.0]));
        let signatures = values.map_or_else(
            BandOptions::default,
            |([_, _, _, hashes, bands, rows], [similarity])| BandOptions {
                similarity,
                hashes: hashes as usize,
                bands: bands as usize,
                rows: rows as usize,
            },
        );
        let fill = Fill {
            leaf: leaf as u8,
            ..Fill::default()
        };
        BuildOptions {
            radius: u32::try_from(radius).ok(),
            blocks: blocks as u32,
            signatures,
            fill,
        }
    }

    /// Returns the option `radius`, in bits; `None` if it is not given.
    pub fn radius(&self) -> Option<u32> {
        self.radius
    }

    /// Returns the option `similarity`, from 0 to 1; `None` if it is not given.
    pub fn similarity(&self) -> Option<f64> {
        let similarity = self.signatures.similarity;
        (similarity != 0.0).then_some(similarity)
    }

    /// Returns the metric of an index whose keys have the layout `layout`. Raises an error if an
    /// option is given that is not for the values of this index, such as `radius` for signatures.
    pub fn metric(&self, layout: &Layout) -> IndexMetric {
        const FINGERPRINTS: &str = "\"radius\" and \"blocks\"";
        const OF_SETS: &str = "The only option of this index is \"fillfactor\".";
        const SIGNATURES: &str = "\"similarity\", \"hashes\", \"bands\" and \"rows\"";
        let (for_fingerprints, for_signatures) = (
            self.radius.is_some() || self.blocks != 0,
            self.signatures != BandOptions::default(),
        );
        let fingerprints = (FINGERPRINTS, for_fingerprints);
        let signatures = (SIGNATURES, for_signatures);
        let own = |options| format!("The options of this index are {options}.");
        let (what, hint, others) = match layout.metric {
            Metric::Hamming { .. } => ("fingerprints", own(FINGERPRINTS), vec![signatures]),
            Metric::Jaccard(()) => ("signatures", own(SIGNATURES), vec![fingerprints]),
            Metric::Overlap => ("arrays", OF_SETS.to_owned(), vec![fingerprints, signatures]),
        };
        if let Some((other, _)) = others.into_iter().find(|(_, is_given)| *is_given) {
            UserError::invalid_parameter(format!(
                "indexes on {what} do not support the options {other}"
            ))
            .hint(hint)
            .raise();
        }
        let bands = |()| Some(Rc::new(self.signatures.bands()));
        (layout.metric.try_map(bands)).expect("`BandOptions::bands` raises its errors")
    }

    /// Returns the block layout of an index of `rows` rows. `layout` is the layout of the keys, and
    /// `bound` is the radius or similarity that most searches will use. Raises an error if no block
    /// layout fits the options.
    pub fn block_layout<const N: usize>(
        &self,
        layout: &Layout,
        metric: &IndexMetric,
        bound: Option<UsualBound>,
        rows: f64,
    ) -> BlockLayout<N> {
        let scope = layout.scope_words() > 0;
        let of_parameters = || {
            let Some(UsualBound::Radius(radius)) = bound else {
                unreachable!("an index on fingerprints has a radius");
            };
            match self.blocks {
                0 => Ok(layout_choice::best_layout(scope, radius, rows)),
                blocks => {
                    let bits = 64 * layout.metric.words() as u32;
                    let guaranteed = guaranteed_radius(radius, blocks, bits);
                    BlockLayout::for_index(scope, guaranteed, blocks)
                        .map_err(|error| (radius, blocks, error))
                }
            }
        };
        (metric.block_layout(scope, of_parameters))
            .unwrap_or_else(|(radius, blocks, error)| refuse(radius, blocks, error))
    }
}

/// Returns the guaranteed radius of an index on fingerprints of `bits` bits. A search within this
/// radius reads at most one range of each permutation. `radius` and `blocks` are the options of the
/// index. The guaranteed radius is smaller than `radius` if there are too few blocks or bits for a
/// layout that guarantees `radius`.
fn guaranteed_radius(radius: u32, blocks: u32, bits: u32) -> u32 {
    radius.min(blocks - 1).min(max_radius(bits))
}

/// Raises an error if no width of fingerprints allows the options `radius` and `blocks`. The width
/// of this index is not known here, so a build checks the options again.
fn check(radius: u32, blocks: u32) {
    const WIDEST: usize = 4;
    let errors = [64, 128, 64 * WIDEST as u32].map(|bits| {
        BlockLayout::<WIDEST>::new(guaranteed_radius(radius, blocks, bits), blocks).err()
    });
    if let [Some(error), Some(_), Some(_)] = errors {
        refuse(radius, blocks, error);
    }
}

fn refuse(radius: u32, blocks: u32, error: BlockLayoutError) -> ! {
    let detail = match error {
        BlockLayoutError::TooManyPermutations(permutations) => {
            let permutations = match u32::try_from(permutations) {
                Ok(permutations) => permutations.to_string(),
                Err(_) => "billions of".to_owned(),
            };
            format!(
                "These blocks need {permutations} permutations, but an index can have at most \
                 {MAX_PERMUTATIONS}."
            )
        }
        BlockLayoutError::RadiusTooLarge(_) | BlockLayoutError::BlocksOutOfRange => {
            unreachable!("`guaranteed_radius` fits the blocks and the width")
        }
    };
    UserError::new(
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        format!("cannot divide fingerprints into {blocks} blocks for radius {radius}"),
    )
    .detail(detail)
    .hint(
        "Omit \"blocks\" to let neardup choose the number of blocks from the radius and the number \
         of rows.",
    )
    .raise()
}
