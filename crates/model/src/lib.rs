//! The model of a gateway: what the sizes of its messages mean.
//!
//! A command has the size |s| = |ac| + ε + Σ |aᵢ|·nbᵢ: the overhead, a variation ε, and the sizes of its actions.
//! [`EpsilonDistribution`] is the distribution of ε, [`Prior`] the probability of actions, and [`ReplyCountModel`],
//! [`ReplyBytesModel`] and [`SingleReplies`] say how replies depend on them. [`Model`] holds all of it and reads and
//! writes `model.toml`; `sizeleak-learning` learns it. This crate handles only numbers and names, not frames, captures or
//! clocks.

mod action;
mod epsilon_distribution;
mod fit_judgement;
mod inventory;
mod kinds;
mod limits;
mod model;
mod model_file;
mod model_set;
mod neighbours;
mod noise_statistics;
mod pmf;
pub mod policies;
mod prior;
mod reply_models;
mod scope;
mod single_replies;
pub mod statistics;
pub mod step_function;

pub use action::{Action, LabelledCommand, MAX_ACTION_SIZE, MAX_COUNT_OF_ACTION, MAX_MESSAGE_SIZE};
pub use epsilon_distribution::{EpsilonDistribution, Smoothing};
pub use fit_judgement::{FALSE_ALARMS, FitJudgement, JudgedSize, MisfitCause, PaddingTest};
pub use inventory::{
    Device, DeviceTypes, GivenActions, Inventory, InventoryError, MAX_ACTION_CLASSES, MAX_DEVICE_TYPES, MAX_DEVICES,
    choose,
};
pub use kinds::{Kind, KindReplies, Kinds, SeenCommand};
pub use limits::{Condition, Limits};
pub use model::{
    Basis, CaptureDigest, FitMethod, MAX_SEEN, Model, Provenance, SizeBlocks, SizeError, WireSize, command_mark,
};
pub use model_file::{ModelError, ModelFault, SCHEMA};
pub use model_set::{Assumption, Choice, FlowEnds, GatewaysSeen, ModelSet, Scopes, Uncovered};
pub use neighbours::{EpsilonTuple, MAX_TUPLES, Neighbours, WeightedEpsilon};
pub use noise_statistics::{
    GatewayRecords, MAX_NOISE_SIZES, MIN_OCCURRENCES, NoiseStatistics, RecordLayout, ServiceRecords,
};
pub use pmf::{Multiples, Pmf, UNLIKELY, Weight};
pub use policies::LearnedPadding;
pub use prior::{Prior, RecurringCommand};
pub use reply_models::{MAX_REPLY_WITHIN_MS, ReplyBytesModel, ReplyCountModel, ReplyWindows};
pub use scope::{Scope, ServiceName, ServiceNameError, TLS};
pub use single_replies::{Component, Interpretation, ReplyClass, ReplyReader, SeenReplies, SingleReplies};
pub use statistics::Rank;
