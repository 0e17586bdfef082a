//! The model of a gateway: what the sizes of its messages mean, and how that is learned from labelled commands.
//!
//! A command has the size |s| = |ac| + ε + Σ |aᵢ|·nbᵢ: the overhead, a variation ε, and the sizes of its actions.
//! [`Fit`] learns the sizes, [`EpsilonDistribution`] the distribution of ε, [`Prior`] the probability of actions, and
//! [`ReplyCountModel`], [`ReplyBytesModel`] and [`SingleReplies`] how replies depend on them. [`Model`] holds all of it and reads and
//! writes `model.toml`. This crate handles only numbers and names, not frames, captures or clocks.
//!
//! ```
//! use sizeleak_model::{Fit, FitMethod, LabelledCommand};
//!
//! // Each action on one device and on two: the commands of the paper's procedure.
//! let command = |size, counts: [u32; 2]| LabelledCommand {
//!     sizes: [size; 2],
//!     counts: counts.to_vec(),
//!     replies: 0,
//!     reply_bytes: 0,
//!     single_replies: None,
//!     has_own_replies: true,
//! };
//! let commands = [command(140, [1, 0]), command(180, [2, 0]), command(145, [0, 1]), command(190, [0, 2])];
//! let fit = Fit::learn(FitMethod::Robust, &["on".to_owned(), "off".to_owned()], &commands)?;
//! assert_eq!((fit.overhead, fit.actions[0].size, fit.actions[1].size), (100, 40, 45));
//! # Ok::<(), sizeleak_model::FitError>(())
//! ```

mod action;
mod additivity;
mod basis;
mod device_types;
mod epsilon_distribution;
mod experiment_design;
mod fit;
mod fit_judgement;
mod given_actions;
mod inventory;
mod kinds;
mod labelled_command;
mod labels;
mod learned_padding;
mod least_absolute_deviations;
mod limits;
mod matching;
mod model;
mod model_file;
mod model_set;
mod neighbours;
mod noise_statistics;
pub mod policies;
mod prior;
mod rank;
mod recurring_commands;
mod reply_bytes_model;
mod reply_count_model;
mod reply_deviation;
mod reply_windows;
mod scope;
mod separation;
mod shifted_model;
mod single_replies;
mod step_function;
mod sum_distribution;
#[cfg(test)]
mod testing;
mod toml_error;
mod two_sided;

pub use action::Action;
pub use additivity::{Additivity, padding};
pub use basis::{Basis, SizeError, WireSize};
pub use device_types::DeviceTypes;
pub use epsilon_distribution::{EpsilonDistribution, Smoothing};
pub use experiment_design::ExperimentDesign;
pub use fit::{Fit, FitError, FitMethod, MAX_FITTED_ACTIONS};
pub use fit_judgement::{
    ENOUGH_COMMANDS, FALSE_ALARMS, FitChange, FitJudgement, JudgedSize, MisfitCause, SizeExplanation,
};
pub use given_actions::{GivenActions, choose};
pub use inventory::{Device, Inventory, InventoryError, MAX_ACTION_CLASSES, MAX_DEVICE_KINDS};
pub use kinds::{Kind, KindReplies, Kinds, SeenCommand};
pub use labelled_command::LabelledCommand;
pub use labels::{Label, LabelError, LabelZone, Labels};
pub use learned_padding::LearnedPadding;
pub use limits::{Condition, Limits};
pub use matching::{Matching, match_labels};
pub use model::{CaptureDigest, Model, Provenance};
pub use model_file::{ModelError, ModelFault, SCHEMA};
pub use model_set::{Assumption, Choice, FlowEnds, GatewaysSeen, ModelSet, Scopes, Uncovered};
pub use neighbours::{EpsilonTuple, Neighbours, WeightedEpsilon};
pub use noise_statistics::{
    GatewayRecords, MAX_NOISE_SIZES, MIN_OCCURRENCES, NoiseStatistics, RecordLayout, ServiceRecords,
};
pub use prior::Prior;
pub use rank::Rank;
pub use recurring_commands::RecurringCommand;
pub use reply_bytes_model::ReplyBytesModel;
pub use reply_count_model::ReplyCountModel;
pub use reply_windows::{MAX_REPLY_WITHIN_MS, ReplyWindows};
pub use scope::{Scope, ServiceName, ServiceNameError};
pub use separation::Separation;
pub use single_replies::{LikelihoodTable, ReplyClass, SeenReplies, SingleReplies};
