//! The options of `CREATE INDEX ... WITH (...)`.
use core::ffi::{CStr, c_int};
use std::rc::Rc;
use std::sync::OnceLock;

use neardup_blocktree::bands::MAX_BANDS;
use neardup_blocktree::block_layout::{
    BlockLayout, BlockLayoutError, MAX_DISTANCE, MAX_TABLES, default_distance,
};
use neardup_blocktree::build::Fill;
use neardup_blocktree::index_metric::IndexMetric;
use neardup_blocktree::metric::Metric;
use neardup_sketch::minhash::MAX_HASHES;
use pgrx::{PgSqlErrorCode, pg_sys};

use super::keys::Layout;
use super::minhash::options::{BandOptions, MAX_ROWS};
use neardup_pg::errors::UserError;
use neardup_pg::rel::Rel;
use neardup_pg::reloptions::{IntOption, OptionKind, OptionTexts, Options, RealOption};

/// Distance that is chosen by the width of the fingerprints.
const DEFAULT_DISTANCE: c_int = -1;
const MAX_BLOCKS: c_int = 64;
const DEFAULT_FILL: c_int = 90;
const MIN_FILL: c_int = 50;

static KIND: OnceLock<OptionKind> = OnceLock::new();

const SIMILARITY: &CStr =
    c"Estimated similarity from which on signatures are found by bands; 0 for the default";

/// The options. Readers name their values in this order.
const OPTIONS: Options<6, 1> = Options {
    ints: [
        // Below 0: chosen by the width.
        IntOption {
            name: c"distance",
            about: c"Radius, in bits, up to which a search looks up its own leading bits only",
            default: DEFAULT_DISTANCE,
            min: 0,
            max: MAX_DISTANCE as c_int,
        },
        // 0: chosen by the number of rows.
        IntOption {
            name: c"blocks",
            about: c"Blocks that a fingerprint is cut into; 0 chooses by the number of rows",
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
        // 0: chosen by the similarity.
        IntOption {
            name: c"bands",
            about: c"Bands that signatures are cut into; 0 chooses by the similarity",
            default: 0,
            min: 0,
            max: MAX_BANDS as c_int,
        },
        // 0: all are shared out.
        IntOption {
            name: c"rows",
            about: c"Values in a band of a signature; 0 shares all out evenly",
            default: 0,
            min: 0,
            max: MAX_ROWS,
        },
    ],
    reals: [
        // 0: the default, or what follows from `bands`.
        RealOption {
            name: c"similarity",
            about: SIMILARITY,
            default: 0.0,
            min: 0.0,
            max: 1.0,
        },
    ],
};

/// Makes the options known to the server. Called once, when the library is loaded.
pub fn register() {
    KIND.get_or_init(|| OPTIONS.register());
}

/// `amoptions`: reads and checks the options.
pub fn parse(texts: OptionTexts, validate: bool) -> *mut pg_sys::bytea {
    let kind = *KIND.get().expect("registered when the library was loaded");
    let parsed = OPTIONS.parse(kind, texts, validate);
    if let Some(([distance, blocks, ..], _)) = parsed.values()
        && validate
        && blocks != 0
    {
        check(u32::try_from(distance).ok(), blocks as u32);
    }
    parsed.into_raw()
}

/// Options of a build.
pub struct BuildOptions {
    /// The options for fingerprints, of which an index on signatures must have none. `None`: the
    /// distance of the width.
    distance: Option<u32>,
    blocks: u32,
    /// Those for signatures, of which one on fingerprints must have none.
    signatures: BandOptions,
    /// The fill of its pages.
    pub fill: Fill,
}

impl BuildOptions {
    /// The options of an index of this access method.
    pub fn of(index: Rel) -> Self {
        let values = OPTIONS.of_index(index);
        let ([distance, blocks, leaf, ..], _) =
            values.unwrap_or(([DEFAULT_DISTANCE, 0, DEFAULT_FILL, 0, 0, 0], [0.0]));
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
            distance: u32::try_from(distance).ok(),
            blocks: blocks as u32,
            signatures,
            fill,
        }
    }

    /// The metric of an index of that layout. Raises an error for options of another metric.
    pub fn metric(&self, layout: &Layout) -> IndexMetric {
        const FINGERPRINTS: &str = "\"distance\" and \"blocks\"";
        const OF_SETS: &str = "Its only option is \"fillfactor\".";
        const SIGNATURES: &str = "\"similarity\", \"hashes\", \"bands\" and \"rows\"";
        let (for_fingerprints, for_signatures) = (
            self.distance.is_some() || self.blocks != 0,
            self.signatures != BandOptions::default(),
        );
        let fingerprints = (FINGERPRINTS, for_fingerprints);
        let signatures = (SIGNATURES, for_signatures);
        let own = |options| format!("Its options are {options}.");
        let (what, hint, others) = match layout.metric {
            Metric::Hamming { .. } => ("fingerprints", own(FINGERPRINTS), vec![signatures]),
            Metric::Jaccard(()) => ("signatures", own(SIGNATURES), vec![fingerprints]),
            Metric::Overlap => ("arrays", OF_SETS.to_owned(), vec![fingerprints, signatures]),
        };
        if let Some((other, _)) = others.into_iter().find(|(_, is_given)| *is_given) {
            UserError::invalid_parameter(format!("an index on {what} has no options {other}"))
                .hint(hint)
                .raise();
        }
        let bands = |()| Some(Rc::new(self.signatures.bands()));
        (layout.metric.try_map(bands)).expect("`BandOptions::bands` raises its errors")
    }

    /// The tables of an index of `rows` rows with that layout and metric. Raises an error if the
    /// options allow none.
    pub fn block_layout<const N: usize>(
        &self,
        layout: &Layout,
        metric: &IndexMetric,
        rows: f64,
    ) -> BlockLayout<N> {
        let scope = layout.scope_words() > 0;
        let of_parameters = || {
            let bits = 64 * layout.metric.words() as u32;
            let distance = self.distance.unwrap_or_else(|| default_distance(bits));
            let blocks = match self.blocks {
                0 => BlockLayout::<N>::default_blocks(scope, distance, rows),
                blocks => blocks,
            };
            BlockLayout::in_scope(scope, distance, blocks)
                .map_err(|error| (distance, blocks, error))
        };
        (metric.block_layout(scope, of_parameters))
            .unwrap_or_else(|(distance, blocks, error)| refuse(distance, blocks, error))
    }
}

/// Raises an error unless the two make a block layout for fingerprints of some width. The widest
/// have the most layouts, so that what passes here may still be refused at build, but nothing that
/// is refused here would do.
fn check(distance: Option<u32>, blocks: u32) {
    const WIDEST: usize = 4;
    let distances = match distance {
        Some(distance) => [distance; 3],
        None => [64, 128, 64 * WIDEST as u32].map(default_distance),
    };
    let errors = distances.map(|distance| BlockLayout::<WIDEST>::new(distance, blocks).err());
    if let [Some(error), Some(_), Some(_)] = errors {
        refuse(distances[0], blocks, error);
    }
}

fn refuse(distance: u32, blocks: u32, error: BlockLayoutError) -> ! {
    let detail = match error {
        BlockLayoutError::DistanceTooLarge(most) => {
            format!("The largest distance of fingerprints of this width is {most}.")
        }
        BlockLayoutError::BlocksOutOfRange => format!(
            "With distance {distance} a fingerprint needs at least {} blocks.",
            distance + 1
        ),
        BlockLayoutError::TooManyTables(tables) => {
            let tables = match u32::try_from(tables) {
                Ok(tables) => tables.to_string(),
                Err(_) => "billions of".to_owned(),
            };
            format!("These would need {tables} tables; an index can have {MAX_TABLES}.")
        }
    };
    UserError::new(
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        format!("cannot index distance {distance} with {blocks} blocks"),
    )
    .detail(detail)
    .hint("Leave out \"blocks\" to have it chosen by the number of rows.")
    .raise()
}
