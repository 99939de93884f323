//! Settings `neardup.allow_approximate` and `neardup.progress`. `functions/dictionary.rs` has the
//! settings of jieba's word lists.
use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting};

/// True if searches for signatures may use bands (groups of a signature's hashes) even where that
/// can miss rows.
static ALLOW_APPROXIMATE: GucSetting<bool> = GucSetting::<bool>::new(false);

/// True if neardup_pairs and neardup_clusters report their progress by NOTICEs.
static PROGRESS: GucSetting<bool> = GucSetting::<bool>::new(false);

/// Defines the settings in the server. Called once, when the library is loaded.
pub fn register() {
    GucRegistry::define_bool_guc(
        c"neardup.allow_approximate",
        c"Lets searches for signatures use bands beyond the similarity that they guarantee.",
        c"Such a search may miss rows. When off, it reads the whole index instead, or none.",
        &ALLOW_APPROXIMATE,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_bool_guc(
        c"neardup.progress",
        c"Reports the progress of neardup_pairs and neardup_clusters by NOTICEs.",
        c"Sends one NOTICE when a phase begins, and one per second while it lasts.",
        &PROGRESS,
        GucContext::Userset,
        GucFlags::default(),
    );
}

/// Value of `neardup.allow_approximate`: whether searches for signatures may miss rows. The bands
/// of an index (groups of a signature's hashes) find all rows only down to some similarity. If this
/// setting is on, searches for a lower similarity also use the bands.
pub fn allow_approximate() -> bool {
    ALLOW_APPROXIMATE.get()
}

/// Value of `neardup.progress`: whether neardup_pairs and neardup_clusters report their progress.
pub fn progress() -> bool {
    PROGRESS.get()
}
