//! The variation ε of a command's size, from the labelled commands nearest in size (paper, section IV).
//!
//! The method is `sizeleak_model::Neighbours`, with or without smoothing. This crate asks it about each command
//! ([`EpsilonEstimates`]), and reports what has to be assumed about a command's session (`cipher_suites`) or size
//! (`estimates`).
//!
//! ```
//! use sizeleak_epsilon_corrector::EpsilonEstimates;
//! use sizeleak_model::{EpsilonTuple, Neighbours, Smoothing};
//!
//! // Labelled commands of 100 and 200 bytes without their ε.
//! let labelled = Neighbours::new([EpsilonTuple::new(100, 0), EpsilonTuple::new(200, 5)]).ok_or("no tuples")?;
//! let mut estimates = EpsilonEstimates::new(labelled, Smoothing::NEAREST);
//! let values = estimates.over([190, 190]);
//! assert_eq!((values[0].epsilon, values[0].weight), (5, 1.0));
//! # Ok::<(), &str>(())
//! ```

mod cipher_suites;
mod corrector;
mod estimates;
mod flow_shifts;
mod options;
mod reworded_replies;
mod shift_evidence;

pub use corrector::{CorrectorInput, EpsilonCorrector};
pub use estimates::EpsilonEstimates;
pub use options::Options;
