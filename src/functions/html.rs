//! `html_text(html)`: the text of an HTML page.
use neardup_sketch::html::html_text;
use pgrx::pg_sys::Datum;

use crate::pg::fmgr::{Call, export};
use crate::pg::memory::check_interrupts;
use crate::pg::text;

fn of_page(call: &mut Call) -> Datum {
    // SAFETY: declared to take text.
    let page = unsafe { text::utf8(call.arg(0)) };
    let visible = html_text(&page, &mut check_interrupts);
    text::lossy_datum(&visible)
}

export! {
    guarded "html_text" => of_page;
}
