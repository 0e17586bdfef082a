//! The decompositions that the traffic after a command does not contradict.
//!
//! The number of records that the gateway sends in reply says something about the number of actions (`reply_evidence`).
//! [`PruningMode::Paper`] keeps the candidates with exactly that many actions, and loses the truth when a reply is
//! lost. [`PruningMode::Learned`] weighs each candidate by how likely the replies are for it (`posterior`). Replies
//! that say nothing about actions leave every candidate as it was. Commands that overlap share their replies: an
//! identification waits until all of them are there (`overlap_queue`), and each gets every share of the replies that may be
//! its own, weighed by how probable the rest is for the others (`shared_replies`, `shared_evidence`).
//!
//! ```
//! use sizeleak_frame::{Candidate, Command, Frame, Identification, SingleReply};
//! use sizeleak_model::Model;
//! use sizeleak_pruner::{Pruner, PruningMode};
//! use sizeleak_platform::runtime::Stage;
//!
//! let model = Model::from_toml(
//!     r#"
//!     schema = 1
//!     overhead = 60
//!     k = 1
//!     tuples = [[100, 0, 1]]
//!     action = [{ name = "on", size = 40 }, { name = "dim", size = 80 }]
//!     replies = { fixed = 0.0, per_action = 1.0, missing = 0.05, surplus = 0.01 }
//!     learned = { method = "robust", commands = 1, version = "0.1.0", basis = "wire" }
//!     "#,
//! )?;
//! let mut pruner = Pruner::new(&model, PruningMode::Paper, 0.999)?;
//!
//! // 140 bytes are `on` twice or `dim` once, and the gateway sends two replies.
//! let command = Command {
//!     time_ns: 0,
//!     end_ns: 0,
//!     flow: 1,
//!     size: 140,
//!     records: 1,
//!     replies: 2,
//!     reply_bytes: 90,
//!     single_replies: [SingleReply::from((20, 45)), SingleReply::from((30, 45))].into(),
//!     ..Command::default()
//! };
//! let candidates = [("on", 2), ("dim", 1)].map(|(name, count)| Candidate {
//!     actions: [(name.into(), count)].into_iter().collect(),
//!     epsilon: 0,
//!     probability: 0.5,
//!     likelihood: None,
//! });
//! let candidates = candidates.into();
//! let identification =
//!     Identification { candidates, candidate_count: 2, listed: 2, ..Identification::unanswered(command) };
//!
//! let mut out: Vec<Frame> = Vec::new();
//! pruner.process(identification.into(), &mut out)?;
//! let [Frame::Identification(pruned)] = &out[..] else { panic!("{out:?}") };
//! assert_eq!((pruned.candidate_count, pruned.candidates[0].actions.count("on")), (1, 2));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod candidate_sums;
mod fit_judge;
mod inventory_filter;
mod options;
mod overlap_queue;
mod posterior;
mod pruner;
mod reply_evidence;
mod shared_evidence;
mod shared_replies;
#[cfg(test)]
mod testing;

pub use options::Options;
pub use pruner::{Pruner, PruningMode};
