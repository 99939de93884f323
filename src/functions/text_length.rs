//! `neardup_text_length(body, html, accents)`: text length without details in which copies differ.
use neardup_sketch::text_length;
use pgrx::pg_sys::Datum;

use super::text_options;
use neardup_pg::fmgr::{Call, export};
use neardup_pg::memory::check_interrupts;

fn of_text(call: &mut Call) -> Datum {
    let accents = text_options::named(call, 2);
    let length = text_length(&call.utf8(0), call.bool(1), accents, &mut check_interrupts);
    Datum::from(length)
}

export! {
    guarded "neardup_text_length" => of_text;
}
