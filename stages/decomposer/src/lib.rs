//! The actions that add up to a command's size: change-making by dynamic programming, within what the inventory allows
//! (paper, section IV).
//!
//! [`Solver`] counts and enumerates the ways to make up one sum; [`Decomposer`] asks it for every value of ε. The
//! inventory is a small automaton (`inventory`) over which the recursion (`count`) runs; its table (`cache`) grows with
//! the largest sum asked for, and [`Solutions`] (`enumerate`) walks it without dead ends. Where the model has a prior, the
//! same automaton is walked with weights (`ranking`) along the turns that lead to an end (`open`), so that the most probable
//! ways come first: the next best each time (`ranked`), or all of them at once (`whole`).

mod answers;
mod cache;
mod count;
mod decomposer;
mod enumerate;
mod inventory;
mod list;
mod open;
mod options;
mod ranked;
mod ranking;
mod sums;
mod uncertainty;
mod whole;

pub use count::{Solver, SolverError, SumTooLarge};
pub use decomposer::Decomposer;
pub use enumerate::Solutions;
pub use options::{Options, Prior};
pub use uncertainty::prior_bits;
