//! Packets out of capture files: pcap and pcapng, also compressed, recognised by content and never by name; several
//! files merged by time.
#![warn(clippy::indexing_slicing)]

mod capture;
mod error;
mod merge;
mod open;
mod options;
mod pcap;
mod pcapng;
mod reader;
mod window;

pub use capture::Capture;
pub use error::{CaptureError, Damage};
pub use options::Options;
pub use reader::CaptureReader;
