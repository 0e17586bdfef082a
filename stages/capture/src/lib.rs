//! Reads packets from capture files: pcap and pcapng, plain or compressed by gzip, zstd, xz or lz4. The format is
//! recognised by content, never by name. [`Capture`], the first stage of the pipeline, merges several files by time;
//! [`CaptureReader`] reads one capture without a pipeline, and [`Tcpdump`] captures an interface.
//!
//! ```
//! use sizeleak_capture::CaptureReader;
//!
//! // A little-endian pcap header (microseconds, snaplen 65535, Ethernet) and a packet of three bytes at 1.5 seconds.
//! let header = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 1].map(u32::to_le_bytes).concat();
//! let packet = [1, 500_000, 3, 60].map(u32::to_le_bytes).concat();
//! let file = [header, packet, b"abc".to_vec()].concat();
//!
//! let mut capture = CaptureReader::new(Box::new(std::io::Cursor::new(file)))?;
//! let packet = capture.next_packet()?.unwrap();
//! assert_eq!((packet.time_ns, packet.original_length, packet.data), (1_500_000_000, 60, &b"abc"[..]));
//! assert!(capture.next_packet()?.is_none());
//! # Ok::<(), sizeleak_capture::Damage>(())
//! ```
#![warn(clippy::indexing_slicing)]

mod capture;
mod capture_driver;
mod error;
mod live;
mod merge;
mod open;
mod options;
mod packet_batcher;
mod pcap;
mod pcapng;
mod prefetch;
mod reader;
mod resync;
#[cfg(test)]
mod testing;
mod window;

pub use capture::Capture;
pub use error::{CaptureError, Damage};
pub use live::Tcpdump;
pub use merge::CaptureOrder;
pub use open::{FolderContent, SpecialFile, content_below, decompressed, is_capture, is_named_capture};
pub use options::Options;
pub use reader::CaptureReader;
pub use window::CapturedPacket;
