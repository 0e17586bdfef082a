//! The actions that add up to a command's size: change-making by dynamic programming, within what the inventory allows
//! (paper, section IV).
//!
//! [`Solver`] counts and enumerates the ways to make up one sum; [`Decomposer`] asks it for every value of ε. The
//! inventory is a small automaton (`automaton`) that both recursions run over. The solver's table counts ways
//! (`solver`); with a prior, a second table weighs them (`weight_table`), so that a best-first search lists the most
//! probable ones first (`best_first`).
//!
//! ```
//! use sizeleak_decomposer::Solver;
//! use sizeleak_model::{Action, Device, Inventory};
//!
//! let actions = [("on", 40), ("off", 41)].map(|(name, size)| Action::new(name, size));
//! let plugs = Device { name: "plug".into(), count: 3, actions: vec!["on".into(), "off".into()] };
//! let limits = Inventory { devices: vec![plugs] }.limits(&actions)?;
//!
//! let mut solver = Solver::new(&actions, &limits)?;
//! let solutions: Vec<Vec<u32>> = solver.solutions(121)?.collect();
//! assert_eq!(solutions, [[2, 1]]); // `on` twice and `off` once
//! assert_eq!(solver.count(4 * 40)?, 0); // three plugs take at most three actions
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod automaton;
mod best_first;
mod candidate_list;
mod decomposer;
mod deviation;
mod entropy;
mod kind_candidates;
mod options;
mod prior_walk;
mod recurring_candidates;
mod reply_candidates;
mod solver;
mod sum_table;
mod target_sums;
mod varying_sizes;
mod weight_table;

pub use decomposer::Decomposer;
pub use entropy::prior_bits;
pub use options::Options;
pub use solver::{Solutions, Solver, SolverError, SumTooLarge};
