//! What frames travel through from one placement to the next: a channel between threads, bytes wherever a process or a
//! forwarder is involved.

use std::io::{self, Read};

use sizeleak_platform::runtime::{ChannelInput, Input, Interrupt, StreamInput};

use crate::SavedStream;

/// The receiving end of a link.
pub(crate) enum LinkReceiver {
    Channel(ChannelInput),
    Bytes(Box<dyn Read + Send>),
    /// A saved stream in place of stages; it ends early when the run is interrupted.
    Saved(SavedStream, Interrupt),
}

impl LinkReceiver {
    /// For a stage of this process.
    pub(crate) fn into_input(self) -> Box<dyn Input + Send> {
        match self {
            Self::Channel(input) => Box::new(input),
            Self::Bytes(bytes) => Box::new(StreamInput::new(bytes)),
            Self::Saved(stream, interrupt) => Box::new(StreamInput::new(stream.into_input()).until(interrupt)),
        }
    }

    /// As bytes, which a channel does not carry: no forwarder comes after a thread.
    pub(crate) fn into_bytes(self) -> Box<dyn Read + Send> {
        match self {
            Self::Channel(_) => Box::new(io::empty()),
            Self::Bytes(bytes) => bytes,
            Self::Saved(stream, _) => stream.into_input(),
        }
    }
}
