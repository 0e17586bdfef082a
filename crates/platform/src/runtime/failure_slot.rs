//! Where a source leaves why it could not read everything.

use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

/// Where a source leaves why it could not read everything, instead of failing the run.
#[derive(Debug, Clone, Default)]
pub struct FailureSlot(Arc<Mutex<Option<String>>>);

impl FailureSlot {
    /// Leaves a reason.
    pub(crate) fn put(&self, reason: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
    }

    /// Takes the reason that was left, if the source could not read everything.
    pub fn take(&self) -> Option<String> {
        mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
