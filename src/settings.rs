//! Settings `neardup.allow_approximate` and `neardup.progress`. The settings of jieba's words are
//! in `functions/dictionary.rs`.
use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting};

/// Permission to plan queries with bands that can miss rows.
static ALLOW_APPROXIMATE: GucSetting<bool> = GucSetting::<bool>::new(false);

/// True if long functions report their progress.
static PROGRESS: GucSetting<bool> = GucSetting::<bool>::new(false);

/// Registers the settings with the server. Called once, when the library is loaded.
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
        c"Tells by NOTICEs how far neardup_pairs and neardup_clusters are.",
        c"One when a phase begins, and one a second while it lasts.",
        &PROGRESS,
        GucContext::Userset,
        GucFlags::default(),
    );
}

/// `neardup.allow_approximate`.
pub fn allow_approximate() -> bool {
    ALLOW_APPROXIMATE.get()
}

/// `neardup.progress`.
pub fn progress() -> bool {
    PROGRESS.get()
}
