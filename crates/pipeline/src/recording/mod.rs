//! Frame streams in files: compressed by the file's name when written, recognised by content when read.

mod compression;
mod reading;
mod writing;

pub use compression::Compression;
pub use reading::{decompressed, open, stdin};
pub use writing::{FinishedRecording, Recording};
