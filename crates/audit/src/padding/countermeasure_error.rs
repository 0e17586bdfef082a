//! Why countermeasures cannot be judged.

use thiserror::Error;

/// Why countermeasures cannot be judged.
#[derive(Debug, Error, Clone, Copy, PartialEq)]
pub enum CountermeasureError {
    /// Too many commands share a record.
    #[error(
        "about {0:.0} commands would share a record, too many to sum over: take a shorter delay, or fewer commands a day"
    )]
    Crowded(f64),
    /// Commands that share a record have too many sizes.
    #[error(
        "commands that share a record have too many sizes to sum over: take smaller batches, a shorter delay or a smaller \
         inventory"
    )]
    TooManySizes,
}
