//! The frame contract of sizeleak: the kinds of frame that stages exchange, their `MessagePack` form, and its limits.
//!
//! A stream is `MessagePack` values one after another with nothing between them. Each is a map of one entry,
//! `{kind: body}`. The first is `hello`, the last `summary`; a stream that ends otherwise was cut. `docs/frames.md`
//! specifies every kind for people who write a stage in another language.
//!
//! This crate holds what is said on the wire and nothing of what stages do with it.
#![warn(clippy::indexing_slicing)]

mod address;
mod buffer;
mod command;
mod content_type;
mod correction;
mod direction;
mod extent;
mod flow;
mod frame;
mod frequent;
mod hello;
mod identification;
mod limit;
mod notice;
mod packet;
mod reader;
mod record;
mod segment;
mod session;
mod shared_list;
mod sink;
mod store;
mod summary;
mod unknown;
mod writer;

pub use buffer::{ReadBuffer, SpareBuffers};
pub use command::Command;
pub use content_type::{ContentType, UnknownContentType};
pub use correction::{Correction, WeightedEpsilon};
pub use direction::Direction;
pub use flow::{Flow, Transport};
pub use frame::{Frame, KINDS};
pub use hello::{Hello, SCHEMA};
pub use identification::{Actions, Candidate, Identification};
pub use limit::{BATCH_BYTES, BATCH_ROWS, BatchLimit, MAX_DEPTH, MAX_VALUE_BYTES};
pub use notice::{Notice, what};
pub use packet::{Packet, PacketAppender, PacketIter, Packets, SkippedPackets};
pub use reader::{FrameReader, ReadError};
pub use record::Record;
pub use segment::{Segment, Segments};
pub use session::Session;
pub use shared_list::SharedList;
pub use sink::FrameSink;
pub use summary::{StageSummary, Summary};
pub use unknown::Unknown;
pub use writer::{FrameWriter, WriteError};
