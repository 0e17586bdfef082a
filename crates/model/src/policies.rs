//! Padding policies for commands: what each does to sizes, and their names and files. What they cost and hide is in
//! `sizeleak-audit`.

#![warn(clippy::indexing_slicing)]

mod padding_key;
mod padding_policy;
mod policy_error;
mod policy_file;
mod policy_name;

pub use padding_key::PaddingKey;
pub use padding_policy::{Draw, PaddedSize, PaddingPolicy, RandomRow};
pub use policy_error::{MAX_BUCKETS, MAX_PADDING_UNIT, MAX_RANDOM_BYTES, PolicyError, TLS_RECORD_BYTES};
pub use policy_file::{POLICY_VERSION, PolicyFile};
