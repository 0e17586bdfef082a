//! The actions that add up to a sum: how many multisets of them there are, and which are the most probable.
//!
//! The inventory is a small automaton (`automaton`) that all walks through the actions run over; a walk is a multiset of
//! actions. One table says what the ways to go on from each of its states amount to (`way_table`): how many there are
//! ([`Solver`]), or with the weights of a prior (`prior_walk`) how probable they are ([`WayWeights`]). The heaviest ones
//! are found by [`HeaviestWays`].
//!
//! ```
//! use sizeleak_inference::search::Solver;
//! use sizeleak_model::{Action, Device, Inventory};
//!
//! let actions = [("on", 40), ("off", 41)].map(|(name, size)| Action::new(name, size));
//! let plugs = Device { name: "plug".into(), count: 3, actions: vec!["on".into(), "off".into()], safe: true };
//! let limits = Inventory { devices: vec![plugs] }.limits(&actions)?;
//!
//! let mut solver = Solver::new(&actions, &limits)?;
//! let solutions: Vec<Vec<u32>> = solver.solutions(121)?.collect();
//! assert_eq!(solutions, [[2, 1]]); // `on` twice and `off` once
//! assert_eq!(solver.count(4 * 40)?, 0); // three plugs take at most three actions
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod automaton;
mod heaviest_ways;
mod prior_walk;
mod range_count;
mod solver;
mod way_table;
mod way_weights;

pub use heaviest_ways::{HeaviestWays, Way};
pub use prior_walk::WalkPrior;
pub use range_count::RangeCount;
pub use solver::{Solutions, Solver, SolverError, SumTooLarge};
pub use way_weights::WayWeights;

#[cfg(test)]
mod tests;
