//! Padding policies for commands: what they do, what they cost, and which give away least for their bytes.

#![warn(clippy::indexing_slicing)]

mod best_table;
mod bucket;
mod bucket_table;
mod cap_exchange;
mod filling;
mod min_cut;
mod padded_observation;
mod padding_cost;
mod padding_key;
mod padding_limits;
mod padding_policy;
mod policy_error;
mod policy_file;
mod policy_name;
mod random_floor;
mod repeated_padding;
mod table_goal;
mod table_rules;
mod table_source;

pub use best_table::BestTable;
pub use bucket_table::{BucketTable, TableSearch};
pub use filling::FloorOf;
pub use padded_observation::{PaddedOutputs, seen_groups, seen_rows};
pub use padding_cost::PaddingCost;
pub use padding_key::PaddingKey;
pub use padding_limits::{MAX_BUCKETS, MAX_PADDING_UNIT, MAX_RANDOM_BYTES, TLS_RECORD_BYTES};
pub use padding_policy::{Draw, PaddedSize, PaddingPolicy, RandomRow};
pub use policy_error::PolicyError;
pub use policy_file::{POLICY_VERSION, PolicyFile};
pub use random_floor::PaddingFloor;
pub use repeated_padding::{named_after, named_with_known_key};
pub use table_goal::Goal;
pub use table_rules::{Objective, TableRules};
pub use table_source::{SourceLanguage, table_source};
