//! `html_text(html)`: the text of an HTML page.
use neardup_sketch::html::html_text;
use pgrx::pg_sys::Datum;

use crate::pg::fmgr::{Call, export};
use crate::pg::memory::check_interrupts;
use crate::pg::text;

fn of_page(call: &mut Call) -> Datum {
    let visible = html_text(&call.utf8(0), &mut check_interrupts);
    text::lossy_datum(&visible)
}

export! {
    guarded "html_text" => of_page;
}
