//! The kinds that come by the million, records and the rows of batches, encoded and decoded by hand. The bytes, and what
//! they mean, are serde's; only nothing is asked of what is known beforehand.

mod decode;
mod encode;

pub(crate) use decode::frame as decode;
pub(crate) use encode::{packets as encode_packets, record as encode_record, segments as encode_segments};
