//! What padding policies for commands cost, and which give away least for their bytes.

#![warn(clippy::indexing_slicing)]

mod best_table;
mod bucket;
mod bucket_table;
mod cap_exchange;
mod filling;
mod min_cut;
mod random_floor;
mod table_goal;
mod table_rules;

pub use best_table::BestTable;
pub use bucket_table::{BucketTable, TableSearch};
pub use filling::FloorOf;
pub use random_floor::PaddingFloor;
pub use sizeleak_padding_policy::{
    Draw, MAX_BUCKETS, MAX_PADDING_UNIT, MAX_RANDOM_BYTES, POLICY_VERSION, PaddedSize, PaddingKey, PaddingPolicy,
    PolicyError, PolicyFile, RandomRow, TLS_RECORD_BYTES,
};
pub use table_goal::Goal;
pub use table_rules::{Objective, TableRules};
