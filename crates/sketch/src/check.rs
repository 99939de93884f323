//! Cancellation check of the caller, shared by several parts of a computation.

use std::cell::RefCell;

/// `check` callback that several parts of a computation call.
pub(crate) struct SharedCheck<'a>(RefCell<&'a mut dyn FnMut()>);

impl<'a> SharedCheck<'a> {
    /// Wraps the caller's callback.
    pub fn new(check: &'a mut dyn FnMut()) -> Self {
        Self(RefCell::new(check))
    }

    /// Calls the callback, which may unwind.
    pub fn call(&self) {
        (self.0.borrow_mut())();
    }
}
