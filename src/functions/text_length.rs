//! `neardup_text_length(body, html, accents)`: number of characters of a text in normal form, in
//! which copies of a text that differ in case, width or white space are equally long.
use neardup_sketch::text_length;
use pgrx::pg_sys::Datum;

use super::text_options;
use neardup_pg::fmgr::{Call, export};
use neardup_pg::memory::check_interrupts;

/// `neardup_text_length(body, html, accents)`: number of characters of a text in normal form.
fn of_text(call: &mut Call) -> Datum {
    let accents = text_options::named(call, 2);
    let length = text_length(&call.utf8(0), call.bool(1), accents, &mut check_interrupts);
    Datum::from(length)
}

export! {
    guarded "neardup_text_length" => of_text;
}
