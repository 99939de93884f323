//! The options of `CREATE INDEX ... WITH (...)`.
use core::ffi::{CStr, c_int};
use core::mem::offset_of;
use std::sync::atomic::{AtomicU32, Ordering};

use neardup_blocktree::bands::MAX_BANDS;
use neardup_blocktree::block_layout::{
    BlockLayout, BlockLayoutError, MAX_DISTANCE, MAX_TABLES, default_distance,
};
use neardup_blocktree::build::Fill;
use neardup_sketch::minhash::MAX_HASHES;
use pgrx::{PgSqlErrorCode, pg_sys};

use super::keys::Layout;
use super::metric::Metric;
use super::minhash::options::{BandOptions, MAX_ROWS};
use super::values::Values;
use crate::pg::compat::{int_option, real_option};
use crate::pg::errors::UserError;
use crate::pg::rel::Rel;

/// Distance that is chosen by the width of the fingerprints.
const DEFAULT_DISTANCE: c_int = -1;
const MAX_BLOCKS: c_int = 64;
const DEFAULT_FILL: c_int = 90;
const MIN_FILL: c_int = 50;

/// The options as the server keeps them with the index (`rd_options`).
#[repr(C)]
struct Options {
    /// The header of a variable-length value.
    length: i32,
    /// Below 0: chosen by the width.
    distance: c_int,
    /// 0: chosen by the number of rows.
    blocks: c_int,
    fillfactor: c_int,
    /// The estimated similarity from which on signatures are found by bands; 0: the default, or
    /// what follows from `bands`.
    similarity: f64,
    /// Values of a signature.
    hashes: c_int,
    /// 0: chosen by the similarity.
    bands: c_int,
    /// Values in a band; 0: all are shared out.
    rows: c_int,
}

static KIND: AtomicU32 = AtomicU32::new(0);

/// The whole numbers among the options: name, description, place, and default, least and greatest
/// value.
const INT_OPTIONS: [(&CStr, &CStr, usize, [c_int; 3]); 6] = [
    (
        c"distance",
        c"Radius, in bits, up to which a search looks up its own leading bits only",
        offset_of!(Options, distance),
        [DEFAULT_DISTANCE, 0, MAX_DISTANCE as c_int],
    ),
    (
        c"blocks",
        c"Blocks that a fingerprint is cut into; 0 chooses by the number of rows",
        offset_of!(Options, blocks),
        [0, 0, MAX_BLOCKS],
    ),
    (
        c"fillfactor",
        c"How full a build packs leaves, in per cent",
        offset_of!(Options, fillfactor),
        [DEFAULT_FILL, MIN_FILL, 100],
    ),
    (
        c"hashes",
        c"Values of the signatures that are indexed; 0 for the default of minhash()",
        offset_of!(Options, hashes),
        [0, 0, MAX_HASHES as c_int],
    ),
    (
        c"bands",
        c"Bands that signatures are cut into; 0 chooses by the similarity",
        offset_of!(Options, bands),
        [0, 0, MAX_BANDS as c_int],
    ),
    (
        c"rows",
        c"Values in a band of a signature; 0 shares all out evenly",
        offset_of!(Options, rows),
        [0, 0, MAX_ROWS],
    ),
];

/// Makes the options known to the server. Called once, when the library is loaded.
pub fn register() {
    let lock = pg_sys::AccessExclusiveLock as pg_sys::LOCKMODE;
    // SAFETY: called while the server loads the library, as it asks for.
    unsafe {
        let kind = pg_sys::add_reloption_kind();
        KIND.store(kind, Ordering::Relaxed);
        for (name, about, _, [default, least, most]) in INT_OPTIONS {
            let (name, about) = (name.as_ptr(), about.as_ptr());
            pg_sys::add_int_reloption(kind, name, about, default, least, most, lock);
        }
        pg_sys::add_real_reloption(
            kind,
            c"similarity".as_ptr(),
            c"Estimated similarity from which on signatures are found by bands; 0 for the default"
                .as_ptr(),
            0.0,
            0.0,
            1.0,
            lock,
        );
    }
}

/// `amoptions`: reads and checks the options.
pub fn parse(reloptions: pg_sys::Datum, validate: bool) -> *mut pg_sys::bytea {
    let mut elements = INT_OPTIONS
        .map(|(name, _, place, _)| int_option(name, place))
        .to_vec();
    elements.push(real_option(c"similarity", offset_of!(Options, similarity)));
    let (kind, count) = (KIND.load(Ordering::Relaxed), elements.len() as c_int);
    // SAFETY: the elements describe the struct whose size is given; the result is null, or a struct
    // of that kind.
    let (raw, options) = unsafe {
        let size = size_of::<Options>();
        let raw =
            pg_sys::build_reloptions(reloptions, validate, kind, size, elements.as_ptr(), count);
        (raw, raw.cast::<Options>().as_ref())
    };
    if let Some(options) = options
        && validate
        && options.blocks != 0
    {
        check(u32::try_from(options.distance).ok(), options.blocks as u32);
    }
    raw.cast()
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
        assert!(index.is_neardup_index());
        // SAFETY: the server keeps what `parse` returned, or null.
        let options = unsafe { (*index.raw()).rd_options.cast::<Options>().as_ref() };
        let (distance, blocks, leaf) = options.map_or((DEFAULT_DISTANCE, 0, DEFAULT_FILL), |o| {
            (o.distance, o.blocks, o.fillfactor)
        });
        let signatures = options.map_or_else(BandOptions::default, |o| BandOptions {
            similarity: o.similarity,
            hashes: o.hashes as usize,
            bands: o.bands as usize,
            rows: o.rows as usize,
        });
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
    pub fn metric(&self, layout: &Layout) -> Metric {
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
        let (what, hint, others) = match layout.values {
            Values::Fingerprints(_) | Values::Balls(_) => {
                ("fingerprints", own(FINGERPRINTS), vec![signatures])
            }
            Values::Signatures => ("signatures", own(SIGNATURES), vec![fingerprints]),
            Values::Sets => ("arrays", OF_SETS.to_owned(), vec![fingerprints, signatures]),
        };
        if let Some((other, _)) = others.into_iter().find(|(_, is_given)| *is_given) {
            UserError::invalid_parameter(format!("an index on {what} has no options {other}"))
                .hint(hint)
                .raise();
        }
        let bands = || Some(self.signatures.bands());
        Metric::new(layout.values.metric(), bands).expect("bands, or an error")
    }

    /// The tables of an index of `rows` rows with that layout and metric. Raises an error if the
    /// options allow none.
    pub fn block_layout<const N: usize>(
        &self,
        layout: &Layout,
        metric: &Metric,
        rows: f64,
    ) -> BlockLayout<N> {
        let scope = layout.scope_words() > 0;
        let of_parameters = || {
            let bits = 64 * layout.values.words() as u32;
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
