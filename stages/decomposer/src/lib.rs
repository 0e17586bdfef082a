//! The actions that add up to a command's size: change-making by dynamic programming, within what the inventory allows
//! (paper, section IV).
//!
//! [`Solver`] counts and enumerates the ways to make up one sum; [`Decomposer`] asks it for every value of ε.

mod decomposer;
mod options;
mod solutions;
mod solver;

pub use decomposer::Decomposer;
pub use options::Options;
pub use solutions::Solutions;
pub use solver::{Solver, SolverError};
