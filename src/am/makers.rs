//! Finds the functions that make the fingerprints of a column or index. Reads them from the
//! expressions of generated columns and index columns in the catalogue. Considers only functions of
//! this extension. The parameter `function` of most functions in this file is the OID of any
//! function of the extension. A function belongs to the extension if it is in the same extension
//! and the same schema as `function`.
use core::ffi::CStr;
use std::ffi::CString;

use neardup_blocktree::metric::NEAR_DUPLICATE_SIMILARITY;
use neardup_sketch::minhash_fingerprint;
use pgrx::pg_sys::Oid;

use neardup_pg::catalog::{name_in_extension_of, parameter_names};
use neardup_pg::expr::{Expr, ExprKind};
use neardup_pg::rel::Rel;

/// Function of the extension that makes fingerprints, such as `minhash64(body)`.
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

    /// Width in bits of the fingerprints that the function makes.
    pub fn bits(self) -> u32 {
        match self {
            Maker::Minhash64 | Maker::Simhash => 64,
            Maker::Minhash128 | Maker::Simhash128 => 128,
        }
    }

    /// Returns whether the distance of two fingerprints estimates a similarity of the texts from
    /// which the function makes them.
    pub fn estimates_similarity(self) -> bool {
        matches!(self, Maker::Minhash64 | Maker::Minhash128)
    }

    /// Conventional radius of near-duplicates, in bits. For minhash, it corresponds to similarity
    /// 0.8. For simhash, which estimates no similarity, it is 3 bits if the fingerprint has 64 bits
    /// (Manku, Jain, Das Sarma, WWW 2007, section 5.1.1), and 6 bits if it has 128.
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

/// Returns the distinct functions that make the values in the searched column of an index.
/// `function` is the OID of any function of the extension.
pub fn makers_of_index(function: Oid, table: Rel, index: Rel) -> Vec<Maker> {
    let mut makers = Vec::new();
    for_each_expression(table, index, |expression| {
        makers.extend(called(function, expression));
    });
    distinct(makers)
}

/// Calls `each` with each expression that makes values in the searched column of an index. If this
/// column is an expression, these are this expression and the expressions of the generated columns
/// that it uses. If the column is a generated column, it is the expression of that column.
fn for_each_expression(table: Rel, index: Rel, mut each: impl FnMut(Expr)) {
    let columns = match index.index_form().columns[index.searched_column()] {
        0 => {
            let expression = index.searched_expression();
            expression.into_iter().for_each(&mut each);
            expression.map_or_else(Vec::new, Expr::columns_used)
        }
        column => vec![column],
    };
    for column in columns.into_iter().filter(|&column| column > 0) {
        table
            .generation_expression(column)
            .into_iter()
            .for_each(&mut each);
    }
}

/// Options in a call of a function that makes a fingerprint or signature from a text. The list has
/// an element for each parameter after the text: its name, and the constant that the call passes.
/// The constant is `None` if the call passes an expression that is not a constant.
pub type TextCall = Vec<(CString, Option<Constant>)>;

/// Text form of a constant, with the OID of its type. `None` is the constant NULL.
pub type Constant = Option<(CString, Oid)>;

/// Finds the calls that make fingerprints or signatures from a text for the searched column of an
/// index, and returns the options of each call. Calls with equal options are returned once.
/// `function` is the OID of any function of the extension.
pub fn text_calls_of_index(function: Oid, table: Rel, index: Rel) -> Vec<TextCall> {
    let mut found: Vec<TextCall> = Vec::new();
    for_each_expression(table, index, |expression| {
        add_text_calls(function, expression, &mut found);
    });
    found
}

/// Finds the calls that make fingerprints or signatures from a text for a generated column, and
/// returns the options of each call. Calls with equal options are returned once. The list is empty
/// if the column is not generated. `function` is the OID of any function of the extension.
/// `column` is the attribute number of the column, from 1.
pub fn text_calls_of_column(function: Oid, table: Rel, column: i16) -> Vec<TextCall> {
    let mut found = Vec::new();
    if let Some(expression) = table.generation_expression(column) {
        add_text_calls(function, expression, &mut found);
    }
    found
}

/// Adds to `found` the options of each call in `expression` that makes a fingerprint or signature
/// from a text. Omits options that `found` already contains.
fn add_text_calls(function: Oid, expression: Expr, found: &mut Vec<TextCall>) {
    for (called, arguments) in expression.with_default_arguments().calls() {
        let makes_sketch = name_in_extension_of(function, called).is_some_and(|name| {
            let name = name.to_string_lossy();
            let name = name.strip_suffix("_without").unwrap_or(&name);
            [
                "minhash64",
                "minhash128",
                "minhash",
                "simhash",
                "simhash128",
            ]
            .contains(&name)
        });
        let names = parameter_names(called);
        if !makes_sketch || names.first().is_none_or(|name| name.as_c_str() != c"body") {
            continue;
        }
        let constant = |argument: Expr| match argument.kind() {
            ExprKind::Constant(value) => Some(value.map(|value| {
                let text = CString::new(value.output()).unwrap_or_default();
                (text, argument.type_oid())
            })),
            _ => None,
        };
        let options = names
            .into_iter()
            .zip(arguments.iter().map(constant))
            .skip(1)
            .collect();
        if !found.contains(&options) {
            found.push(options);
        }
    }
}

/// Returns the distinct functions that make the values in a generated column, or an empty list if
/// the column is not generated. `function` is the OID of any function of the extension. `column` is
/// the attribute number of the column, from 1.
pub fn makers_of_column(function: Oid, table: Rel, column: i16) -> Vec<Maker> {
    let expression = table.generation_expression(column);
    expression.map_or_else(Vec::new, |expression| called(function, expression))
}

/// Returns the distinct functions that an expression calls to make fingerprints. `function` is the
/// OID of any function of the extension.
fn called(function: Oid, expression: Expr) -> Vec<Maker> {
    let names = (expression.calls().into_iter())
        .filter_map(|(called, _)| name_in_extension_of(function, called));
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
