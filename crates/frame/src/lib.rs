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

mod address;
mod batch;
mod buffer;
mod codec;
mod command;
mod correction;
mod direction;
mod extent;
mod fast;
mod flow;
mod frame;
mod identification;
mod limit;
mod notice;
mod packet;
mod reader;
mod record;
mod row_bytes;
mod segment;
mod shared_list;
mod summary;
mod writer;

pub use batch::{Batch, BatchIter, Row};
pub use buffer::{ReadBuffer, SpareBuffers};
pub use codec::NotFrame;
pub use command::{Command, MAX_EARLIER_COMMANDS, MAX_SINGLE_REPLIES, SingleReply};
pub use correction::{Correction, HabitFactors, RecurringClass, Shift, WeightedEpsilon};
pub use direction::Direction;
pub use flow::{Flow, FlowId, NoFlowId, Session, Transport};
pub use frame::{Frame, KINDS, Unknown};
pub use identification::{Actions, Candidate, DeviceTypeProbability, Identification, NumberProbability};
pub use limit::{BATCH_BYTES, BATCH_ROWS, BatchLimit, MAX_DEPTH, MAX_VALUE_BYTES};
pub use notice::{CommandAt, Deviation, Notice, what};
pub use packet::{Packet, PacketRow, Packets, SkippedPackets};
pub use reader::{FrameReader, ReadError};
pub use record::{ContentType, Protocol, Record, UnknownContentType};
pub use row_bytes::RowLocation;
pub use segment::{OwnedSegment, Segment, SegmentRow, Segments};
pub use shared_list::SharedList;
pub use summary::{Hello, SCHEMA, StageSummary, Summary};
pub use writer::{FrameSink, FrameWriter, WriteError};
