//! Functions that made the fingerprints of a column or an index, read from the catalogue: those
//! called by a generation expression or an index expression.
use core::ffi::CStr;

use neardup_blocktree::metric::NEAR_DUPLICATE_SIMILARITY;
use neardup_sketch::minhash_fingerprint;
use pgrx::pg_sys::Oid;

use neardup_pg::catalog::name_in_extension_of;
use neardup_pg::expr::Expr;
use neardup_pg::rel::Rel;

/// Function of the extension that returns fingerprints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maker {
    Minhash64,
    Minhash128,
    Simhash,
    Simhash128,
}

impl Maker {
    fn from_name(name: &CStr) -> Option<Self> {
        match name.to_bytes() {
            b"minhash64" => Some(Maker::Minhash64),
            b"minhash128" => Some(Maker::Minhash128),
            b"simhash" => Some(Maker::Simhash),
            b"simhash128" => Some(Maker::Simhash128),
            _ => None,
        }
    }

    /// Width of its fingerprints.
    pub fn bits(self) -> u32 {
        match self {
            Maker::Minhash64 | Maker::Simhash => 64,
            Maker::Minhash128 | Maker::Simhash128 => 128,
        }
    }

    /// Returns whether the distance of its fingerprints estimates a similarity.
    pub fn estimates_similarity(self) -> bool {
        matches!(self, Maker::Minhash64 | Maker::Minhash128)
    }

    /// Largest distance of near-duplicates: similarity 0.8, or for simhash, which estimates none,
    /// 3 of 64 bits (Manku, Jain, Das Sarma, WWW 2007, section 5.1.1) and the same share of 128.
    pub fn usual_radius(self) -> u32 {
        let similarity = NEAR_DUPLICATE_SIMILARITY;
        match self {
            Maker::Minhash64 | Maker::Minhash128 => {
                minhash_fingerprint::radius(similarity, self.bits()).unsigned_abs()
            }
            Maker::Simhash => 3,
            Maker::Simhash128 => 6,
        }
    }
}

/// Returns the distinct makers of the values in the last column of an index. `function` is any
/// function of the extension.
pub fn makers_of_index(function: Oid, table: Rel, index: Rel) -> Vec<Maker> {
    let (columns, expression) = match index.index_form().columns.last() {
        Some(0) | None => {
            let expression = index.last_expression();
            (
                expression.map_or_else(Vec::new, Expr::columns_used),
                expression,
            )
        }
        Some(&column) => (vec![column], None),
    };
    let mut makers = expression.map_or_else(Vec::new, |expression| called(function, expression));
    for column in columns.into_iter().filter(|&column| column > 0) {
        makers.extend(makers_of_column(function, table, column));
    }
    distinct(makers)
}

/// Returns the distinct makers of the values in a column; none unless the column is generated.
/// `function` is any function of the extension.
pub fn makers_of_column(function: Oid, table: Rel, column: i16) -> Vec<Maker> {
    let expression = table.generation_expression(column);
    expression.map_or_else(Vec::new, |expression| called(function, expression))
}

/// Returns the distinct makers that an expression calls.
fn called(function: Oid, expression: Expr) -> Vec<Maker> {
    let names = (expression.functions_called().into_iter())
        .filter_map(|called| name_in_extension_of(function, called));
    distinct(names.filter_map(|name| Maker::from_name(&name)))
}

fn distinct(makers: impl IntoIterator<Item = Maker>) -> Vec<Maker> {
    let mut all = Vec::new();
    for maker in makers {
        if !all.contains(&maker) {
            all.push(maker);
        }
    }
    all
}
