//! Sizes from commands of which few or none are labelled.
//!
//! The commands that a pipeline finds without a model are taken apart by their sizes and single replies alone
//! ([`sizeleak_fit::blind`]). What that fit knows becomes a first model; the actions that it names for a command become
//! the command's label, where the user gave none. From these labels [`LearningRun`](crate::LearningRun) learns as from
//! any others: noise, the distribution of ε, replies and priors.

mod answers;
mod first_model;
mod observations;
mod run;

pub use self::run::{FoundSizes, UnlabelledRun};
