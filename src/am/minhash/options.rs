//! Options of an index on MinHash signatures, and the bands (groups of a signature's hashes) that
//! follow from them. Values out of range raise an error.
use neardup_blocktree::bands::{Bands, BandsError, MAX_BAND_WIDTH, MAX_BANDS};
use neardup_blocktree::metric::NEAR_DUPLICATE_SIMILARITY;
use pgrx::PgSqlErrorCode;

use crate::types::signature::{Bound, HASHES};
use neardup_pg::errors::UserError;

/// Maximum of the option `rows`, the number of hashes in a band.
pub const MAX_ROWS: i32 = MAX_BAND_WIDTH as i32;

/// Number of hashes in a signature if the option `hashes` is not given. `minhash()` makes as many
/// by default.
pub const DEFAULT_HASHES: usize = 128;

/// Options of an index on signatures as the user gave them.
#[derive(Clone, Copy, Default, PartialEq)]
pub struct BandOptions {
    /// Minimum similarity for which most searches ask, from 0 to 1; 0 if not given.
    pub similarity: f64,
    /// Number of hashes in a signature; 0 if not given.
    pub hashes: usize,
    /// Number of bands; 0 if not given.
    pub bands: usize,
    /// Number of hashes in a band; 0 if not given.
    pub rows: usize,
}

impl BandOptions {
    /// Returns the bands (groups of the hashes of a signature) that follow from the options. Raises
    /// an error if the options are impossible.
    pub fn bands(&self) -> Bands {
        let or = |given: usize, default| if given == 0 { default } else { given };
        let hashes = or(self.hashes, DEFAULT_HASHES);
        if !HASHES.contains(&hashes) {
            UserError::invalid_parameter(format!("value {hashes} is out of range for \"hashes\""))
                .detail(format!(
                    "The number of values in a signature must be from {} to {}.",
                    HASHES.start(),
                    HASHES.end()
                ))
                .raise();
        }
        let named = self.bands != 0 || self.rows != 0;
        let similarity = match self.similarity {
            0.0 => NEAR_DUPLICATE_SIMILARITY,
            given => given,
        };
        let mismatches = Bound::Similarity.mismatches(hashes, similarity) as usize;
        let count = match (self.bands, self.rows) {
            (0, 0) => Bands::default_count(hashes, mismatches),
            (0, rows) => hashes / rows,
            (count, _) => count,
        };
        Bands::new(hashes, count, self.rows).unwrap_or_else(|error| {
            let detail = match error {
                BandsError::BandsOutOfRange => {
                    format!("The number of bands must be from 1 to {MAX_BANDS}.")
                }
                BandsError::TooManyRows => {
                    format!("A signature of {hashes} hashes has too few values.")
                }
            };
            let (what, hint) = if named {
                (
                    format!(
                        "cannot divide signatures into {count} bands of {} rows",
                        self.rows.max(1)
                    ),
                    "Omit \"bands\" and \"rows\" to let neardup choose them from the similarity.",
                )
            } else {
                (
                    format!("cannot find all signatures of similarity {similarity} by bands"),
                    "Choose a higher similarity, or use signatures with fewer hashes.",
                )
            };
            UserError::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, what)
                .detail(detail)
                .hint(hint)
                .raise()
        })
    }
}
