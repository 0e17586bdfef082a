//! The variation of a command's size, from the labelled commands nearest in size (paper, section IV).
//!
//! The method is `sizeleak_model::Neighbours`; here is what asks it about each command, and what must be known of
//! the session a command travels in.

mod corrector;
mod estimates;
mod options;
mod sessions;
mod unseen_sizes;

pub use corrector::{EpsilonCorrector, Input};
pub use estimates::Estimates;
pub use options::Options;
