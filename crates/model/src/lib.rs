//! What a gateway's message sizes mean: actions, inventory, size variation, habits, replies, and how all of it is learned.
//!
//! Everything here is about numbers and names; it knows no frames, no captures and no clock.

mod action;
mod design;
mod deviation;
mod epsilon;
mod fit;
mod imputed;
mod inventory;
mod labels;
mod limits;
mod linear;
mod matching;
mod model;
mod model_file;
mod noise;
mod paper;
mod prior;
mod rank;
mod reply;
mod reply_bytes;
mod robust;
mod steps;
mod syntax;
#[cfg(test)]
mod testing;
mod variation;

pub use action::Action;
pub use design::ExperimentDesign;
pub use epsilon::{EpsilonTuple, Neighbour, Neighbours, NoTuples, WeightedEpsilon};
pub use fit::{Fit, FitError, FitMethod, LabelledCommand, MAX_FITTED_ACTIONS};
pub use inventory::{Device, Inventory, InventoryError, MAX_ACTION_CLASSES, MAX_DEVICE_KINDS};
pub use labels::{Label, LabelError, Labels};
pub use limits::{Condition, Limits};
pub use matching::{Matching, match_labels};
pub use model::{Basis, CaptureDigest, Model, ModelError, Provenance, SizeError, WireSize};
pub use model_file::{ModelFault, SCHEMA};
pub use noise::{GatewayRecords, MAX_NOISE_SIZES, MIN_OCCURRENCES, NoiseStatistics, RecordLayout, ServiceRecords};
pub use prior::Prior;
pub use rank::Rank;
pub use reply::ReplyCountModel;
pub use reply_bytes::ReplyBytesModel;
pub use variation::{EpsilonDistribution, Smoothing};
