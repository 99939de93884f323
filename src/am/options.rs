//! The options of `CREATE INDEX ... WITH (...)`.
use core::ffi::{CStr, c_int};
use std::sync::atomic::{AtomicU32, Ordering};

use neardup_blocktree::bands::{Bands, MAX_BANDS};
use neardup_blocktree::block_layout::{
    BlockLayout, BlockLayoutError, MAX_DISTANCE, MAX_TABLES, default_distance,
};
use neardup_blocktree::build::Fill;
use neardup_sketch::minhash::MAX_HASHES;
use pgrx::{PgSqlErrorCode, pg_sys};

use super::bands::options::{BandOptions, MAX_ROWS};
use super::keys::Layout;
use crate::pg::compat::{int_option, real_option};
use crate::pg::errors::UserError;

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

/// Makes the options known to the server. Called once, when the library is loaded.
pub fn register() {
    // SAFETY: called while the server loads the library, as it asks for.
    unsafe {
        let kind = pg_sys::add_reloption_kind();
        KIND.store(kind, Ordering::Relaxed);
        let add = |name: &CStr, about: &CStr, default, least, most| {
            pg_sys::add_int_reloption(
                kind,
                name.as_ptr(),
                about.as_ptr(),
                default,
                least,
                most,
                pg_sys::AccessExclusiveLock as pg_sys::LOCKMODE,
            );
        };
        add(
            c"distance",
            c"Radius, in bits, up to which a search looks up its own leading bits only",
            DEFAULT_DISTANCE,
            0,
            MAX_DISTANCE as c_int,
        );
        add(
            c"blocks",
            c"Blocks that a fingerprint is cut into; 0 chooses by the number of rows",
            0,
            0,
            MAX_BLOCKS,
        );
        add(
            c"fillfactor",
            c"How full a build packs leaves, in per cent",
            DEFAULT_FILL,
            MIN_FILL,
            100,
        );
        add(
            c"hashes",
            c"Values of the signatures that are indexed; 0 for the default of minhash()",
            0,
            0,
            MAX_HASHES as c_int,
        );
        add(
            c"bands",
            c"Bands that signatures are cut into; 0 chooses by the similarity",
            0,
            0,
            MAX_BANDS as c_int,
        );
        add(
            c"rows",
            c"Values in a band of a signature; 0 shares all out evenly",
            0,
            0,
            MAX_ROWS,
        );
        pg_sys::add_real_reloption(
            kind,
            c"similarity".as_ptr(),
            c"Estimated similarity from which on signatures are found by bands; 0 for the default"
                .as_ptr(),
            0.0,
            0.0,
            1.0,
            pg_sys::AccessExclusiveLock as pg_sys::LOCKMODE,
        );
    }
}

/// `amoptions`: reads and checks the options.
pub unsafe fn parse(reloptions: pg_sys::Datum, validate: bool) -> *mut pg_sys::bytea {
    let elements = [
        int_option(c"distance", core::mem::offset_of!(Options, distance)),
        int_option(c"blocks", core::mem::offset_of!(Options, blocks)),
        int_option(c"fillfactor", core::mem::offset_of!(Options, fillfactor)),
        int_option(c"hashes", core::mem::offset_of!(Options, hashes)),
        int_option(c"bands", core::mem::offset_of!(Options, bands)),
        int_option(c"rows", core::mem::offset_of!(Options, rows)),
        real_option(c"similarity", core::mem::offset_of!(Options, similarity)),
    ];
    // SAFETY: the elements describe the struct whose size is given.
    let options = unsafe {
        pg_sys::build_reloptions(
            reloptions,
            validate,
            KIND.load(Ordering::Relaxed),
            size_of::<Options>(),
            elements.as_ptr(),
            elements.len() as c_int,
        )
    };
    // SAFETY: null, or a struct of that kind.
    if let Some(options) = unsafe { options.cast::<Options>().as_ref() }
        && validate
        && options.blocks != 0
    {
        check(u32::try_from(options.distance).ok(), options.blocks as u32);
    }
    options.cast()
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
    /// The options of an index.
    ///
    /// # Safety
    /// The relation is an open index of this access method.
    pub unsafe fn of(index: pg_sys::Relation) -> Self {
        // SAFETY: the caller's promise; the server keeps what `parse` returned, or null.
        let options = unsafe { (*index).rd_options.cast::<Options>().as_ref() };
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

    /// The bands of an index on signatures.
    pub fn bands(&self) -> Bands {
        if self.distance.is_some() || self.blocks != 0 {
            UserError::invalid_parameter(
                "an index on signatures has no options \"distance\" and \"blocks\"",
            )
            .hint("Its options are \"similarity\", \"hashes\", \"bands\" and \"rows\".")
            .raise();
        }
        self.signatures.bands()
    }

    /// The design for so many rows, in an index of that layout.
    pub fn design<const N: usize>(&self, layout: &Layout, rows: f64) -> BlockLayout<N> {
        if self.signatures != BandOptions::default() {
            UserError::invalid_parameter(
                "an index on fingerprints has no options \"similarity\", \"hashes\", \"bands\" and \
             \"rows\"",
            )
            .hint("Its options are \"distance\" and \"blocks\".")
            .raise();
        }
        let scope = layout.scope_words() > 0;
        let distance = (self.distance)
            .unwrap_or_else(|| default_distance(64 * layout.fingerprint_words as u32));
        let blocks = match self.blocks {
            0 => BlockLayout::<N>::default_blocks(scope, distance, rows),
            blocks => blocks,
        };
        BlockLayout::in_scope(scope, distance, blocks)
            .unwrap_or_else(|error| refuse(distance, blocks, error))
    }
}

/// Raises an error unless the two make a design for fingerprints of some width. The widest have the
/// most designs, so that what passes here may still be refused at build, but nothing that is
/// refused here would do.
fn check(distance: Option<u32>, blocks: u32) {
    const WIDEST: usize = 4;
    let distances = match distance {
        Some(distance) => [distance; 2],
        None => [64, 64 * WIDEST as u32].map(default_distance),
    };
    let errors = distances.map(|distance| BlockLayout::<WIDEST>::new(distance, blocks).err());
    if let [Some(error), Some(_)] = errors {
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
