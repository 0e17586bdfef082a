//! The variation of a command's size, from the labelled commands nearest in size (paper, section IV).

mod corrector;
mod options;

pub use corrector::EpsilonCorrector;
pub use options::Options;
