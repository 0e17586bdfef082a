//! How probable a command's size and replies are, all its possible actions together, and which actions those most
//! probably are. No list of all multisets of actions is made.
//!
//! The actions fall into *groups*: those of a group send the same numbers of replies of each class, and the same
//! devices have them. Replies and inventory then depend on a command's actions through the number of actions of each
//! group alone, the *numbers* n:
//!
//! ```text
//! P(s, R) = Σ over n of  P(R | n) · (share of devices that are free) · P(|n|) / Z · (T₁(n₁) * T₂(n₂) * …)(s)
//! ```
//!
//! T(k) holds the sums that k actions of a group have, with the weights of the prior, and * is convolution. The replies
//! nearly tell n, so few n have to be looked at; those left out are known to matter less than a set share, since they
//! all are less likely than a threshold, and sizes alone have a known probability ([`ReplyInference`]).
//!
//! The prior is that of the decomposer's table (`docs/method.md`), to rounding. This crate knows the model, but no
//! frames and no stages.

mod action_group;
mod best_actions;
pub mod channel;
mod command_class;
mod device_limits;
mod foreign_messages;
mod habit_belief;
mod habits;
mod hypotheses;
mod inference;
mod number_moments;
mod number_walk;
mod own_habits;
mod possible_commands;
pub mod search;
pub mod space;
mod step_habits;
mod symmetric;

pub use best_actions::{InferredActions, MostProbable};
pub use foreign_messages::ForeignBelief;
pub use habit_belief::{HabitBelief, RecurringClass};
pub use habits::{HabitTable, Habits, LearnedHabits};
pub use hypotheses::{Belief, Beside, ExplainedStates, Hypotheses, StateBelief, StatePrior};
pub use inference::{ExplainedReplies, ReplyInference};
pub use number_walk::{Beyond, WeightedSum};
pub use possible_commands::{MAX_BY_ONE_ACTION, PossibleCommands, asked_sums};

#[cfg(test)]
mod tests;
