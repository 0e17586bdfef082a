//! What a gateway's message sizes mean: actions, inventory, size variation, replies, and how all of it is learned.
//!
//! Everything here is about numbers and names; it knows no frames, no captures and no clock.

mod action;
mod epsilon;
mod fit;
mod inventory;
mod labels;
mod matching;
mod model;
mod paper;
mod reply;
mod robust;
mod syntax;

pub use action::Action;
pub use epsilon::{Neighbours, NoTuples, Tuple, WeightedEpsilon};
pub use fit::{Fit, FitError, LabelledCommand, Method};
pub use inventory::{Device, Inventory, InventoryError, Limits, MOST_KINDS};
pub use labels::{Label, LabelError, Labels};
pub use matching::{Matching, match_labels};
pub use model::{Basis, CaptureDigest, Learned, Model, ModelError, SCHEMA, SizeError};
pub use reply::ReplyModel;
