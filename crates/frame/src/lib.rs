//! The frame contract of sizeleak: the kinds of frame that stages exchange, their `MessagePack` form, and its limits.
//!
//! A stream is a sequence of `MessagePack` values, each a map of one entry, `{kind: body}`. The first is `hello`, the
//! last `summary`; a stream that ends otherwise was cut. `docs/frames.md` specifies every kind for stages in other
//! languages.
//!
//! ```
//! use sizeleak_frame::{Frame, FrameReader, FrameWriter, Hello, SCHEMA, Summary};
//!
//! let mut writer = FrameWriter::new(Vec::new());
//! let (stage, version) = ("mine".to_owned(), "1.0".to_owned());
//! writer.write(&Hello { schema: SCHEMA, stage, version, upstream: Vec::new() }.into())?;
//! writer.write(&Summary::default().into())?;
//! let stream = writer.into_output()?;
//!
//! let mut reader = FrameReader::new(&stream[..]);
//! while let Some(frame) = reader.next_frame()? {
//!     println!("{}", frame.kind());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! This crate covers the wire format only, not what stages do with frames.
#![warn(clippy::indexing_slicing)]

mod batch;
mod codec;
mod command;
mod extent;
mod fast;
mod flow;
mod frame;
mod identification;
mod reader;
mod record;
mod row_bytes;
mod summary;

pub use batch::{
    Batch, BatchIter, OwnedSegment, Packet, PacketRow, Packets, Row, Segment, SegmentRow, Segments, SkippedPackets,
};
pub use codec::{FrameSink, FrameWriter, NotFrame};
pub use command::{
    Command, Correction, HabitFactors, MAX_EARLIER_COMMANDS, MAX_SINGLE_REPLIES, RecurringClass, SharedList, Shift,
    SingleReply, WeightedEpsilon,
};
pub use extent::{BATCH_BYTES, BATCH_ROWS, BatchLimit, MAX_DEPTH, MAX_VALUE_BYTES};
pub use flow::{Direction, Flow, FlowId, NoFlowId, PerDirection, Session, Transport};
pub use frame::{Frame, KINDS, Unknown};
pub use identification::{Actions, Candidate, DeviceTypeProbability, Identification, NumberProbability};
pub use reader::{FrameReader, ReadBuffer, ReadError, SpareBuffers};
pub use record::{ContentType, Protocol, Record, UnknownContentType};
pub use row_bytes::RowLocation;
pub use summary::{CommandAt, Deviation, Hello, Notice, SCHEMA, StageSummary, Summary, what};
