//! The options of an index on signatures: how they become bands.
use neardup_blocktree::bands::{Bands, BandsError, MAX_BAND_ROWS, MAX_BANDS};
use neardup_blocktree::metric::NEAR_DUPLICATE_SIMILARITY;
use pgrx::PgSqlErrorCode;

use crate::types::signature::{Bound, HASHES};
use neardup_pg::errors::UserError;

/// The most values in a band.
pub const MAX_ROWS: i32 = MAX_BAND_ROWS as i32;

/// The length of signatures unless it is given, as that of `minhash()`.
pub const DEFAULT_HASHES: usize = 128;

/// The options as they were given; 0 stands for those that were not.
#[derive(Clone, Copy, Default, PartialEq)]
pub struct BandOptions {
    /// The estimated similarity.
    pub similarity: f64,
    /// Values of a signature.
    pub hashes: usize,
    /// The number of bands.
    pub bands: usize,
    /// Values in a band.
    pub rows: usize,
}

impl BandOptions {
    /// The bands; raises an error if there are none like that.
    pub fn bands(&self) -> Bands {
        let or = |given: usize, default| if given == 0 { default } else { given };
        let hashes = or(self.hashes, DEFAULT_HASHES);
        if !HASHES.contains(&hashes) {
            UserError::invalid_parameter(format!("hashes {hashes} is out of range"))
                .detail(format!(
                    "It is the number of values in the signatures, from {} to {}.",
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
                BandsError::BandsOutOfRange => format!("There can be 1 to {MAX_BANDS} bands."),
                BandsError::TooManyRows => {
                    format!("A signature of {hashes} hashes has too few values.")
                }
            };
            let (what, hint) = if named {
                (
                    format!(
                        "cannot cut signatures into {count} bands of {} rows",
                        self.rows.max(1)
                    ),
                    "Leave out \"bands\" and \"rows\" to have them chosen by the similarity.",
                )
            } else {
                (
                    format!("cannot find all signatures of similarity {similarity} by bands"),
                    "Choose a higher similarity, or signatures of fewer hashes.",
                )
            };
            UserError::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, what)
                .detail(detail)
                .hint(hint)
                .raise()
        })
    }
}
