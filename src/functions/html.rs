//! `html_text(html)`: the text of an HTML page.
use neardup_sketch::html::html_text;
use pgrx::pg_sys::Datum;

use super::simhash::require_memory;
use crate::pg::call::{Call, export};
use crate::pg::text;

fn of_page(call: &mut Call) -> Datum {
    // SAFETY: declared to take text.
    let page = unsafe { text::utf8(call.arg(0)) };
    require_memory(page.len());
    let visible = html_text(&page, &mut || {
        pgrx::check_for_interrupts!();
    });
    text::lossy_datum(&visible)
}

export! {
    guarded "html_text" => of_page;
}
