//! Sizes of actions from commands without labels.
//!
//! A command has the size |s| = |ac| + ε + Σ |aᵢ|·nbᵢ and what length fields add to it. [`learn`] estimates all of it
//! from sizes and single replies alone, by blind deconvolution: each action sends one reply of its own size, or none,
//! so the replies tell how many actions of each class a command has, and the sizes of commands tell how large they
//! are. Labels are welcome, however few: they give actions their names, and count as evidence with everything else.

mod blind_fit;
mod certainty;
mod expectation;
mod learning;
mod length_fields;
mod lengths_alone;
mod naming;
mod regression;
mod reply_classes;
mod rows;
mod search;
mod sparsity;
mod sums;

pub use blind_fit::{Alternative, BlindAction, BlindFit, BlindFitError, Observation, UncertainNames};
pub use learning::learn;
pub use length_fields::LengthFields;
