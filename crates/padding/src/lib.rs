//! What padding policies for commands cost, and which give away least for their bytes.

#![warn(clippy::indexing_slicing)]

mod best_table;
mod bucket;
mod bucket_table;
mod cap_exchange;
mod coarse_groups;
mod filling;
mod min_cut;
mod padded_observation;
mod padding_cost;
mod random_floor;
mod repeated_padding;
mod table_goal;
mod table_rules;
mod table_source;

pub use best_table::BestTable;
pub use bucket_table::{BucketTable, TableSearch};
pub use coarse_groups::coarse_groups;
pub use filling::FloorOf;
pub use padded_observation::{PaddedOutputs, seen_groups, seen_rows};
pub use padding_cost::PaddingCost;
pub use random_floor::PaddingFloor;
pub use repeated_padding::{named_after, named_with_known_key};
pub use sizeleak_padding_policy::{
    Draw, MAX_BUCKETS, MAX_PADDING_UNIT, MAX_RANDOM_BYTES, POLICY_VERSION, PaddedSize, PaddingKey, PaddingPolicy,
    PolicyError, PolicyFile, RandomRow, TLS_RECORD_BYTES,
};
pub use table_goal::Goal;
pub use table_rules::{Objective, TableRules};
pub use table_source::{SourceLanguage, table_source};
