//! Differences of two texts by words: `neardup_diff`, `neardup_diff_html`, `neardup_diff_ansi`.
use std::fmt::{self, Write};

use neardup_sketch::memory::GrowString;
use neardup_textdiff::html::Html;
use neardup_textdiff::terminal::Terminal;
use neardup_textdiff::{Diff, MAX_BYTES, MAX_TOKENS, Notation, Span, TooLong};
use pgrx::PgSqlErrorCode;
use pgrx::pg_sys::Datum;

use neardup_pg::errors::UserError;
use neardup_pg::fmgr::{Call, export};
use neardup_pg::memory::{ServerHost, check_interrupts};
use neardup_pg::server_text::ServerText;
use neardup_pg::srf::SetReturning;
use neardup_pg::text;

/// Returns the differences of two texts by words. Raises an error if a text is too long.
pub fn compared<'a>(a: &'a str, b: &'a str) -> Diff<'a> {
    Diff::new(a, b, &mut ServerHost).unwrap_or_else(|error| refuse(error))
}

/// Raises the error about a text that is too long.
#[cold]
fn refuse(error: TooLong) -> ! {
    let found = match error {
        TooLong::Bytes(bytes) => format!("One of the texts has {bytes} bytes in UTF-8."),
        TooLong::Tokens => {
            format!("One of the texts has more than {MAX_TOKENS} words and symbols.")
        }
    };
    UserError::invalid_parameter("texts are too long to be compared word by word")
        .detail(format!(
            "{found} A text can have at most {MAX_BYTES} bytes, and at most {MAX_TOKENS} words and \
             symbols."
        ))
        .hint("Compare parts of the texts, such as those that neardup_segments returns.")
        .raise()
}

/// Spans of a comparison, returned as rows of `neardup_diff`.
struct SpanRows {
    texts: [ServerText<'static>; 2],
    spans: std::vec::IntoIter<Span>,
    ordinal: i32,
}

impl SetReturning for SpanRows {
    fn next(&mut self, columns: &mut Vec<Option<Datum>>) -> bool {
        let Some(span) = self.spans.next() else {
            return false;
        };
        self.ordinal += 1;
        columns.extend([
            Some(Datum::from(self.ordinal)),
            Some(text::datum(span.kind.name())),
        ]);
        for (part, text) in [&span.a, &span.b].into_iter().zip(&self.texts) {
            let part = text.part_between(part.bytes.clone());
            columns.extend([
                Some(Datum::from(part.start())),
                Some(Datum::from(part.end())),
                Some(text.datum(&part)),
            ]);
        }
        true
    }
}

/// `neardup_diff(a, b)`: equal and changed spans of two texts, in text order.
fn rows(call: &mut Call) -> Datum {
    call.return_set(|call| {
        let texts = [0, 1].map(|n| call.server_text(n).into_owned());
        let spans = compared(texts[0].utf8(), texts[1].utf8())
            .into_spans()
            .into_iter();
        SpanRows {
            texts,
            spans,
            ordinal: 0,
        }
    })
}

/// Maximum number of bytes of a text in the server. A longer result raises an error.
const MAX_TEXT: usize = (1 << 30) - 5;
/// Number of bytes written between two checks for interrupts.
const CHECK_BYTES: usize = 1 << 18;

/// Buffer for a printed comparison. Raises an error if it grows too long or an allocation fails,
/// and checks for interrupts.
#[derive(Default)]
struct TextBuffer {
    text: String,
    /// Number of bytes written since the last check for interrupts.
    unchecked: usize,
}

impl Write for TextBuffer {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if self.text.len() + part.len() > MAX_TEXT {
            UserError::new(
                PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                "text with marked changes is too long",
            )
            .detail(format!("A text can have at most {MAX_TEXT} bytes."))
            .hint("Pass a number of words as \"context\", or compare parts of the texts.")
            .raise();
        }
        self.text.grow_str(part);
        self.unchecked += part.len();
        if self.unchecked >= CHECK_BYTES {
            self.unchecked = 0;
            check_interrupts();
        }
        Ok(())
    }
}

/// Returns the comparison of the texts in arguments 0 and 1 as a text in a notation, such as HTML.
/// Argument 2 is the number of equal words shown beside a change, or NULL to show both texts
/// completely. Returns NULL if a text is NULL.
fn printed(call: &mut Call, notation: &dyn Notation) -> Datum {
    if call.is_null(0) || call.is_null(1) {
        return call.return_null();
    }
    let context = (!call.is_null(2)).then(|| call.int4(2)).map(|context| {
        usize::try_from(context).unwrap_or_else(|_| {
            UserError::invalid_parameter("\"context\" must not be negative")
                .detail(format!("The value is {context}."))
                .hint(
                    "Pass the number of words to show before and after each change. NULL shows the \
                     whole text.",
                )
                .raise()
        })
    });
    let [a, b] = [0, 1].map(|n| call.utf8(n));
    let mut out = TextBuffer::default();
    (compared(&a, &b).print(notation, context, &mut out)).expect("errors are raised");
    text::datum(&out.text)
}

/// `neardup_diff_html(a, b, context)`: comparison of two texts as HTML.
fn as_html(call: &mut Call) -> Datum {
    printed(call, &Html)
}

/// `neardup_diff_ansi(a, b, context)`: comparison of two texts with colours for a terminal.
fn as_ansi(call: &mut Call) -> Datum {
    printed(call, &Terminal)
}

export! {
    guarded "neardup_diff" => rows;
    guarded "neardup_diff_html" => as_html;
    guarded "neardup_diff_ansi" => as_ansi;
}
