//! The actions that add up to a command's size: change-making within what the inventory allows (paper, section IV).
//!
//! [`Decomposer`] takes every value of ε, which leave some sums (`decomposition`), and asks for the actions that make
//! them up ([`sizeleak_inference::search`]). Beside them it knows commands that recur (`recurring_candidates`), kinds
//! (`kind_candidates`) and, where there are too many to list, the replies (`reply_candidates`).

mod decomposer;
mod decomposition;
mod kind_candidates;
mod options;
mod recurring_candidates;
mod reply_candidates;

pub use decomposer::Decomposer;
pub use options::Options;
