//! The decompositions that the traffic after a command does not contradict.
//!
//! How many records the gateway sends in reply says something about the number of actions. `paper` takes it at its word
//! and loses the truth where a reply was lost; `learned` weighs each candidate by how likely the replies are for it
//! (`posterior`). Only replies that say nothing of actions leave every candidate as it was (`evidence`).

mod evidence;
mod inventory;
mod options;
mod posterior;
mod pruner;
mod remembered;
#[cfg(test)]
mod testing;

pub use options::{Mode, Options};
pub use pruner::Pruner;
