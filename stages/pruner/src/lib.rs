//! The decompositions that the traffic after a command does not contradict.
//!
//! The number of records that the gateway sends in reply says something about the number of actions (`reply_evidence`).
//! [`PruningMode::Paper`] keeps the candidates with exactly that many actions, and loses the truth when a reply is
//! lost. [`PruningMode::Learned`] weighs each candidate by how likely the replies are for it (`posterior`). Replies
//! that say nothing about actions leave every candidate as it was. Commands that overlap share their replies: an
//! identification waits until all of them are there (`shared_replies`), and each gets every share of the replies that
//! may be its own, weighed by how probable the rest is for the others (`shared_evidence`).

mod options;
mod posterior;
mod pruner;
mod reply_evidence;
mod shared_evidence;
mod shared_replies;

pub use options::Options;
pub use pruner::{Pruner, PruningMode};
