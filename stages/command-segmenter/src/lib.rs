//! Finds commands to a gateway among TLS records, and counts the replies to them.
//!
//! Not every record from the service is a command: keep-alives are tiny or periodic, answers follow requests of the
//! gateway, handshakes and tickets belong to TLS. One of several algorithms distinguishes them ([`Algorithm`]). What
//! the gateway sends after a command are the replies to it.
//!
//! A command of two records and one reply:
//!
//! ```
//! use sizeleak_command_segmenter::{CommandSegmenter, Options, SegmenterInput};
//! use sizeleak_frame::{ContentType, Direction, Frame, Protocol, Record};
//! use sizeleak_platform::runtime::Stage;
//!
//! let record = |time_ms: i64, direction, length| Record {
//!     time_ns: time_ms * 1_000_000,
//!     start_ns: time_ms * 1_000_000,
//!     flow: 1,
//!     direction,
//!     content_type: ContentType::ApplicationData,
//!     length,
//!     plaintext: None,
//!     handshake: false,
//!     protocol: Protocol::Tls,
//! };
//! let mut segmenter = CommandSegmenter::new(&Options::default())?;
//! let mut frames: Vec<Frame> = Vec::new();
//! for record in [
//!     record(0, Direction::ToGateway, 324),
//!     record(5, Direction::ToGateway, 90),
//!     record(60, Direction::FromGateway, 80),
//! ] {
//!     segmenter.process(SegmenterInput::Frame(record), &mut frames)?;
//! }
//! segmenter.finish(&mut frames)?;
//! let [Frame::Command(command)] = &frames[..] else { panic!("one command") };
//! assert_eq!((command.size, command.records, command.replies), (324 + 90, 2, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod adaptive;
mod flow_history;
mod learned;
mod message;
mod noise_model;
mod open_commands;
mod options;
mod periodic;
mod record_class;
mod segmenter;
#[cfg(test)]
mod testing;
mod traffic_profile;
mod training;
mod training_counts;

pub use options::{Algorithm, CommandDirection, Options};
pub use record_class::{ClassifiedRecord, RecordRole};
pub use segmenter::{CommandSegmenter, SegmenterInput};
pub use training::{LabelledTraffic, learn_reply_windows};
