//! Notice to a user who has changed options of a neardup index by ALTER INDEX. Options that
//! determine the layout take effect at the next REINDEX.
use pgrx::pg_sys;

use super::index::{Index, is_readable, words_of};
use super::keys::with_words;
use super::layout_change::{Description, next_layout};
use super::options::BuildOptions;
use neardup_pg::altered_index;
use neardup_pg::errors::UserNotice;
use neardup_pg::rel::{OpenRelation, Rel};

/// Makes the server call `notice` with each neardup index that a command has changed. Called once,
/// when the library is loaded.
pub fn register() {
    altered_index::install(notice);
}

/// Tells the user which layout a REINDEX will make, if the current command has changed options of
/// an index and the layout will change. Raises an error if no layout fits the new options.
fn notice(index: Rel) {
    let options = BuildOptions::from_altered_index(index);
    // No notice is needed for an index without a readable meta page: it must be rebuilt anyway.
    if options == BuildOptions::from_index(index) || !is_readable(index) {
        return;
    }
    let table = OpenRelation::any(index.index_form().table, pg_sys::AccessShareLock);
    let (now, next) = with_words!(words_of(index), N => {
        let index = Index::<N>::open(index);
        let next = next_layout(table.rel(), &index, &options, index.rows());
        (Description::from_index(&index), next)
    });
    if let Some(next) = next {
        UserNotice {
            message: format!(
                "index \"{}\" keeps its layout until it is rebuilt",
                index.shown()
            ),
            detail: format!("The index now has {now}. After REINDEX, it will have {next}."),
            hint: format!("REINDEX INDEX CONCURRENTLY {};", index.shown_qualified()),
        }
        .report();
    }
}
