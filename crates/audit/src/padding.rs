//! What padding policies and other countermeasures cost and give away, and which tables give away least for their bytes.

#![warn(clippy::indexing_slicing)]

mod bucket_table;
mod countermeasures;
mod frontier;
mod home_traffic;
mod padded_home;
mod padded_observation;
mod repeated_padding;
mod shared_record;
mod table_source;

pub use bucket_table::{BucketTable, Goal, TableRules, TableSearch};
pub use countermeasures::{CountermeasureCost, CountermeasureError, Countermeasures, ReplyForm, ReplyTraffic, Sending};
pub use frontier::{Frontier, NoTable, exact_table};
pub use home_traffic::{CountermeasureEffect, HomeTraffic};
pub use padded_home::{JudgedPolicy, PaddedHome, PaddingCost};
pub use padded_observation::{PaddedOutputs, seen_groups, seen_rows};
pub use repeated_padding::{named_after, named_with_known_key};
pub use sizeleak_model::policies::{
    Draw, MAX_BUCKETS, MAX_PADDING_UNIT, MAX_RANDOM_BYTES, POLICY_VERSION, PaddedSize, PaddingKey, PaddingPolicy,
    PolicyError, PolicyFile, RandomRow, TLS_RECORD_BYTES,
};
pub use table_source::{SourceLanguage, table_source};
