//! `html_text(html)`: visible text of an HTML page.
use std::borrow::Cow;

use neardup_sketch::html::html_text;
use pgrx::pg_sys::Datum;

use neardup_pg::fmgr::{Call, export};
use neardup_pg::memory::check_interrupts;
use neardup_pg::server_text::ServerText;
use neardup_pg::text;

/// Returns the text in argument `n`. If `html` is true, the argument is an HTML page, and the
/// result is its visible text, as `html_text` returns it.
pub fn visible_text(call: &Call, n: usize, html: bool) -> ServerText<'_> {
    match html {
        true => {
            let visible = html_text(&call.utf8(n), &mut check_interrupts);
            ServerText::from_utf8(Cow::Owned(visible))
        }
        false => call.server_text(n),
    }
}

/// `html_text(html)`: visible text of an HTML page, without tags, scripts and styles.
fn of_page(call: &mut Call) -> Datum {
    let visible = html_text(&call.utf8(0), &mut check_interrupts);
    text::datum(&visible)
}

export! {
    guarded "html_text" => of_page;
}
