//! What padding policies and other countermeasures cost and give away, and which tables give away least for their bytes.

#![warn(clippy::indexing_slicing)]

mod best_table;
mod bucket;
mod bucket_table;
mod cap_exchange;
mod coarse_groups;
mod countermeasure_effect;
mod countermeasure_error;
mod countermeasures;
mod exact_table;
mod filling;
mod home_traffic;
mod judged_policy;
mod message_leak;
mod message_trace;
mod min_cut;
mod padded_home;
mod padded_observation;
mod padding_cost;
mod random_floor;
mod random_table;
mod repeated_padding;
mod reply_traffic;
mod seen_sizes;
mod shared_record;
mod sparse_sums;
mod table_goal;
mod table_rules;
mod table_source;

pub use best_table::BestTable;
pub use bucket_table::{BucketTable, TableSearch};
pub use countermeasure_effect::{CountermeasureCost, CountermeasureEffect};
pub use countermeasure_error::CountermeasureError;
pub use countermeasures::{Countermeasures, ReplyForm, Sending};
pub use exact_table::{NoTable, exact_table};
pub use filling::FloorOf;
pub use home_traffic::HomeTraffic;
pub use judged_policy::JudgedPolicy;
pub use message_leak::MessageLeak;
pub use message_trace::{FIRST_REPLY_NS, NEXT_REPLY_NS, TraceDirection, TraceRecord, TraceSource};
pub use padded_home::PaddedHome;
pub use padded_observation::{PaddedOutputs, seen_groups, seen_rows};
pub use padding_cost::PaddingCost;
pub use random_floor::PaddingFloor;
pub use random_table::best_random_table;
pub use repeated_padding::{named_after, named_with_known_key};
pub use reply_traffic::ReplyTraffic;
pub use sizeleak_model::policies::{
    Draw, MAX_BUCKETS, MAX_PADDING_UNIT, MAX_RANDOM_BYTES, POLICY_VERSION, PaddedSize, PaddingKey, PaddingPolicy,
    PolicyError, PolicyFile, RandomRow, TLS_RECORD_BYTES,
};
pub use table_goal::Goal;
pub use table_rules::{Objective, TableRules};
pub use table_source::{SourceLanguage, table_source};
