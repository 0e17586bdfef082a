//! Packets out of capture files: pcap and pcapng, also compressed, recognised by content and never by name; several
//! files merged by time. With the feature `live`, also from an interface, through libpcap: its headers are needed to build
//! that (Debian and Ubuntu: `apt-get install libpcap-dev`; Fedora: `dnf install libpcap-devel`; macOS has them).
#![warn(clippy::indexing_slicing)]

mod ahead;
mod alternating_readers;
mod capture;
mod capture_driver;
mod error;
#[cfg(feature = "live")]
mod live;
mod lz4;
mod merge;
mod open;
mod options;
mod packet_batcher;
mod pcap;
mod pcapng;
mod plain;
mod prefetched_capture;
mod reader;
mod skim;
mod window;

pub use capture::{Capture, files_below};
pub use error::{CaptureError, Damage};
#[cfg(feature = "live")]
pub use live::{LiveCapture, LiveError};
pub use options::Options;
pub use reader::{CaptureReader, CapturedPacket};
