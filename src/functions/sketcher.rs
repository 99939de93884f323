//! The sketcher of this backend, with the memory that is reused from one text to the next.
use std::cell::Cell;

use neardup_sketch::{Sketcher, TextOptions};

thread_local! {
    static SKETCHER: Cell<Option<Box<Sketcher>>> = const { Cell::new(None) };
}

/// Runs `compute` with the backend's sketcher, set to these options. If it ends in an error, the
/// sketcher is dropped, and the next call makes a new one.
pub fn with_sketcher<R>(options: TextOptions, compute: impl FnOnce(&mut Sketcher) -> R) -> R {
    let mut sketcher = match SKETCHER.take() {
        Some(mut sketcher) => {
            sketcher.set_options(options);
            sketcher
        }
        None => Box::new(Sketcher::new(options)),
    };
    let result = compute(&mut sketcher);
    SKETCHER.set(Some(sketcher));
    result
}
