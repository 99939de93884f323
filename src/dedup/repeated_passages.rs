//! `neardup_repeated_passages`: passages of documents that an earlier document of the table
//! contains as well.
//!
//! The rows are read once, in the order of preference. [`PassageWindows`] collects their tokens,
//! and a store of the server keeps their keys and texts. Texts that may contain repeated passages
//! are then split into tokens again, which costs less than keeping the positions of all tokens.
use std::borrow::Cow;
use std::ops::Range;

use neardup_blocktree::repeated_passages::{DocumentTokens, PassageWindows, RepeatedPassages};
use neardup_sketch::TextOptions;
use neardup_sketch::html::html_text;
use neardup_sketch::memory::GrowVec;
use neardup_sketch::passages::{PassageLength, TokenSequence};
use pgrx::{PgSqlErrorCode, pg_sys};

use super::key_type::KeyType;
use super::keys::key_of_rows;
use super::progress::Progress;
use crate::functions::{passages, text_options};
use neardup_pg::acl;
use neardup_pg::caller_sql::{Condition, Expression};
use neardup_pg::catalog::relation_kind;
use neardup_pg::cursor::Store;
use neardup_pg::errors::UserError;
use neardup_pg::fmgr::{Call, export};
use neardup_pg::memory::{check_interrupts, maintenance_work_mem};
use neardup_pg::order_by::OrderBy;
use neardup_pg::rel::{OpenRelation, Rel};
use neardup_pg::server_text::ServerText;
use neardup_pg::spi::{self, Connection};
use neardup_pg::storage::temp::TempSpace;
use neardup_pg::text;
use neardup_pg::value::Value;

export! {
    guarded "neardup_repeated_passages" => repeated_passages;
}

// Positions of the arguments.
const KEY_TYPE: usize = 0;
const RELATION: usize = 1;
const BODY: usize = 2;
const LENGTH: usize = 3;
const KEY: usize = 4;
const KEEP: usize = 5;
const FILTER: usize = 6;
/// Position of the first text option among the arguments. The other text options follow it.
const OPTIONS: usize = 7;

/// Positions and names of the arguments that must not be NULL.
const REQUIRED: [(usize, &str); 7] = [
    (RELATION, "relation"),
    (BODY, "body"),
    (LENGTH, "length"),
    (OPTIONS, "tokens"),
    (OPTIONS + 1, "html"),
    (OPTIONS + 2, "accents"),
    (OPTIONS + 3, "digits"),
];

/// Query for the result, sorted by document, then by the position of the passage in the document.
const RESULT: &[u8] = b"SELECT d.key, r.passage_start, r.passage_end, r.token_count, o.key
    FROM \"neardup repeats\" AS r
    JOIN \"neardup documents\" AS d ON d.number OPERATOR(pg_catalog.=) r.document
    JOIN \"neardup documents\" AS o ON o.number OPERATOR(pg_catalog.=) r.original
    ORDER BY r.document, r.passage_start";

/// `neardup_repeated_passages(key_type, relation, body, length, key, keep, filter, tokens, html,
/// accents, digits)`.
fn repeated_passages(call: &mut Call) -> pg_sys::Datum {
    call.return_collected(|call, give| {
        if let Some((_, name)) = REQUIRED.iter().find(|(n, _)| call.is_null(*n)) {
            UserError::null_not_allowed(format!("\"{name}\" must not be NULL")).raise();
        }
        let key_type = KeyType::from_argument(call, KEY_TYPE);
        let options = text_options::single_tokens(call, OPTIONS);
        let length = passages::length(call, LENGTH, &options);
        acl::check_any_column(call.oid(RELATION));
        let relation = OpenRelation::any(call.oid(RELATION), pg_sys::AccessShareLock);
        let query = documents_query(call, relation.rel(), key_type);
        spi::connected(c"SELECT document", |connection| {
            let columns = [
                (c"number", pg_sys::INT8OID),
                (c"key", key_type.oid()),
                (c"body", pg_sys::TEXTOID),
            ];
            let mut documents = connection.store(c"neardup documents", &columns);
            let progress = Progress::estimated("reading texts", "rows", rows(relation.rel()));
            let windows = read(
                connection,
                &query,
                length,
                &options,
                &mut documents,
                progress,
            );
            let columns = [
                (c"document", pg_sys::INT8OID),
                (c"original", pg_sys::INT8OID),
                (c"passage_start", pg_sys::INT4OID),
                (c"passage_end", pg_sys::INT4OID),
                (c"token_count", pg_sys::INT4OID),
            ];
            let mut repeats = connection.store(c"neardup repeats", &columns);
            find(connection, windows, &options, &documents, &mut repeats);
            let stores = [&documents, &repeats];
            connection.open(RESULT, &[], &stores).for_each(|row| {
                let columns: Vec<_> = row.iter().map(|value| value.map(Value::datum)).collect();
                give(&columns);
            });
        });
    })
}

/// Returns the query for the key and the text of each document, the most preferred document first.
/// Documents that are equal by the order of preference are in the order of their keys.
fn documents_query(call: &Call, relation: Rel, key_type: KeyType) -> Vec<u8> {
    let expression = |n, name| call.text(n).map(|text| Expression::parse(name, &text));
    let body = expression(BODY, "body").expect("checked above");
    let keep = call.text(KEEP).map(|text| OrderBy::parse("keep", &text));
    let filter = (call.text(FILTER)).map(|text| Condition::parse("filter", &text));
    // Raises an error with the type's name if the type has no order.
    key_type.less_than();
    let key = key_type.sql(&key_of_rows(relation, expression(KEY, "key"), key_type));
    let body = body.as_text(body.check("body", relation));
    let condition = filter.map(|filter| [b" WHERE ", filter.expression().as_slice()].concat());
    let order = keep.map(|keep| [keep.sql().as_slice(), b", "].concat());
    // A name in ORDER BY refers to a column of the result first, so the names of these columns must
    // be unusual.
    [
        b"SELECT ",
        key.as_slice(),
        b" AS \"neardup key\", ",
        &body,
        b" AS \"neardup text\" FROM ",
        &relation.qualified_name(),
        &condition.unwrap_or_default(),
        b" ORDER BY ",
        &order.unwrap_or_default(),
        &key,
    ]
    .concat()
}

/// Returns the estimated number of rows of a relation, or 0 if the relation has no rows of its own.
fn rows(relation: Rel) -> f64 {
    match relation_kind(relation.oid()) {
        pg_sys::RELKIND_RELATION | pg_sys::RELKIND_MATVIEW => {
            let blocks = relation.blocks(pg_sys::ForkNumber::MAIN_FORKNUM);
            relation.rows_per_block().unwrap_or(0.0) * f64::from(blocks)
        }
        _ => 0.0,
    }
}

/// Reads the documents that `query` returns, and returns their windows: all sequences of `length`
/// consecutive tokens. Skips documents with fewer tokens. Numbers the other documents, from 0, and
/// stores the number, the key and the text of each of them in `documents`.
fn read(
    connection: &Connection,
    query: &[u8],
    length: PassageLength,
    options: &TextOptions,
    documents: &mut Store,
    mut progress: Progress,
) -> PassageWindows<TempSpace> {
    let files = &mut TempSpace;
    let separator = TokenSequence::separator(options.tokens);
    let mut windows = PassageWindows::new(files, length.get(), separator, maintenance_work_mem());
    connection.open(query, &[], &[]).for_each(|row| {
        progress.advance(1);
        let [key, Some(body)] = row else {
            return;
        };
        let tokens = body.with_body(|bytes| {
            TokenSequence::new(&text::bytes_utf8(bytes), options, &mut check_interrupts)
        });
        if tokens.len() < length.get() {
            return;
        }
        let key = key.unwrap_or_else(|| refuse_null());
        let number = windows.documents();
        if number == u32::MAX {
            refuse_number();
        }
        windows.push(files, document(&tokens));
        documents.push(&[Value::int8(number.into()), key, *body]);
    });
    progress.finish();
    windows
}

fn document(tokens: &TokenSequence) -> DocumentTokens<'_> {
    DocumentTokens {
        bytes: tokens.bytes(),
        starts: tokens.starts(),
    }
}

/// Finds the repeated passages of the documents by their `windows`, and stores them in `repeats`.
/// Reads the texts from `documents`.
fn find(
    connection: &Connection,
    windows: PassageWindows<TempSpace>,
    options: &TextOptions,
    documents: &Store,
    repeats: &mut Store,
) {
    let files = &mut TempSpace;
    let number_of_documents = windows.documents();
    let mut progress = Progress::new("sorting passages", "passages", windows.windows() as f64);
    let mut repeated = windows.candidates(files, || progress.advance(1));
    progress.finish();
    let mut progress = Progress::new("comparing passages", "texts", number_of_documents.into());
    let query = b"SELECT number, body FROM \"neardup documents\"";
    connection.open(query, &[], &[documents]).for_each(|row| {
        progress.advance(1);
        let [Some(number), Some(body)] = row else {
            return;
        };
        let number = number.integer().unwrap_or_default() as u32;
        if repeated.has_candidates(files, number) {
            body.with_body(|bytes| {
                store_runs(&mut repeated, number, bytes, options, repeats);
            });
        }
    });
    progress.finish();
}

/// Finds the repeated passages of a document among the candidates in `repeated`, and stores them in
/// `repeats`. `number` is the number of the document, and `bytes` is its text in the server
/// encoding.
fn store_runs(
    repeated: &mut RepeatedPassages<TempSpace>,
    number: u32,
    bytes: &[u8],
    options: &TextOptions,
    repeats: &mut Store,
) {
    let text = ServerText::from_bytes(bytes);
    let tokens = TokenSequence::new(text.utf8(), options, &mut check_interrupts);
    let mut runs: Vec<Range<usize>> = Vec::new();
    let mut originals = Vec::new();
    repeated.runs(&mut TempSpace, number, document(&tokens), |run| {
        runs.grow_push(run.tokens);
        originals.grow_push(run.original);
    });
    if runs.is_empty() {
        return;
    }
    let spans = tokens.spans(text.utf8(), options, &runs, &mut check_interrupts);
    let visible = match options.html {
        true => {
            let visible = html_text(text.utf8(), &mut check_interrupts);
            ServerText::from_utf8(Cow::Owned(visible))
        }
        false => text,
    };
    for ((run, original), span) in runs.iter().zip(originals).zip(spans) {
        // Without a span, the caller could not cut the passage out of the text.
        let Some(span) = span else {
            continue;
        };
        let part = visible.part_of_code_points(span.code_points());
        repeats.push(&[
            Value::int8(number.into()),
            Value::int8(original.into()),
            Value::int4(part.start()),
            Value::int4(part.end()),
            Value::int4(run.len() as i32),
        ]);
    }
}

fn refuse_null() -> ! {
    UserError::null_not_allowed("the key of a document is NULL")
        .detail("The key must identify the row.")
        .hint("Choose another key, or exclude such rows with filter => '... IS NOT NULL'.")
        .raise()
}

fn refuse_number() -> ! {
    UserError::new(
        PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
        "too many documents",
    )
    .detail("At most 4294967295 documents can be compared.")
    .hint("To compare only a part of the table, pass the argument filter.")
    .raise()
}
