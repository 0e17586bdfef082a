//! The actions that add up to a sum: how many multisets of them there are, and which are the most probable.
//!
//! The inventory is a small automaton (`automaton`) that all walks through the actions run over; a walk is a multiset
//! of actions. What the ways to go on from each of its states amount to (`way_table`) says how many there are
//! ([`WayCounts`]), or with the weights of a prior (`prior_walk`) how probable they are ([`WayWeights`]). The heaviest
//! ones are found by [`HeaviestWays`].
//!
//! ```
//! use sizeleak_inference::search::{HeaviestWays, WayCounts, WayWeights};
//! use sizeleak_model::{Action, Device, Inventory};
//!
//! let actions = [("on", 40), ("off", 41)].map(|(name, size)| Action::new(name, size));
//! let plugs = Device { name: "plug".into(), count: 3, actions: vec!["on".into(), "off".into()], safe: true };
//! let limits = Inventory { devices: vec![plugs] }.limits(&actions)?;
//!
//! let mut counts = WayCounts::new(&actions, &limits)?;
//! assert_eq!(counts.count(121)?, 1);
//! assert_eq!(counts.count(4 * 40)?, 0); // three plugs take at most three actions
//!
//! let mut weights = WayWeights::flat(&actions, &limits).expect("the table is small");
//! assert!(weights.prepare(121));
//! let ways = HeaviestWays::find(&weights, &[(121, 1.0)], 1, 10);
//! let found: Vec<_> = ways.iter().map(|way| (way.actions, way.probability)).collect();
//! assert_eq!(found, [(&[(0, 2), (1, 1)][..], 1.0)]); // `on` twice and `off` once
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod automaton;
mod heaviest_ways;
mod prior_walk;
mod way_counts;
mod way_table;
mod way_weights;

pub use heaviest_ways::{HeaviestWays, Way};
pub use prior_walk::WalkPrior;
pub use way_counts::{RangeCount, SearchError, SumTooLarge, WayCounts};
pub use way_weights::WayWeights;

#[cfg(test)]
mod tests;
