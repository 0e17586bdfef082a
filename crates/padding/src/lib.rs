//! Padding policies for commands: what they do, what they cost, and which give away least for their bytes.

#![warn(clippy::indexing_slicing)]

mod best_table;
mod bucket;
mod bucket_table;
mod cap_exchange;
mod filling;
mod min_cut;
mod padding_key;
mod padding_limits;
mod padding_policy;
mod policy_error;
mod policy_file;
mod policy_name;
mod random_floor;
mod table_goal;
mod table_rules;

pub use best_table::BestTable;
pub use bucket_table::{BucketTable, TableSearch};
pub use filling::FloorOf;
pub use padding_key::PaddingKey;
pub use padding_limits::{MAX_BUCKETS, MAX_PADDING_UNIT, MAX_RANDOM_BYTES, TLS_RECORD_BYTES};
pub use padding_policy::{Draw, PaddedSize, PaddingPolicy, RandomRow};
pub use policy_error::PolicyError;
pub use policy_file::{POLICY_VERSION, PolicyFile};
pub use random_floor::PaddingFloor;
pub use table_goal::Goal;
pub use table_rules::{Objective, TableRules};
