//! Shared use of the callback `check`, by which a caller can cancel a computation.

use std::cell::RefCell;

/// Wrapper of the caller's `check` callback, so that several parts of a computation can call it.
pub(crate) struct SharedCheck<'a>(RefCell<&'a mut dyn FnMut()>);

impl<'a> SharedCheck<'a> {
    /// Wraps `check`.
    pub fn new(check: &'a mut dyn FnMut()) -> Self {
        Self(RefCell::new(check))
    }

    /// Calls the caller's callback, which may unwind to cancel the computation.
    pub fn call(&self) {
        (self.0.borrow_mut())();
    }
}
