//! The frame: one of the kinds of the contract, or one this version does not know.

use std::mem;

use crate::{
    Command, Correction, Deviation, Flow, Hello, Identification, Notice, Packets, Record, Segments, Session, Summary,
};

/// One value of a stream. Rare and large kinds are boxed, so that records, the most frequent, move cheaply.
#[derive(Debug, Clone, PartialEq)]
pub enum Frame {
    /// Who writes the stream; always first.
    Hello(Box<Hello>),
    Packets(Box<Packets>),
    /// A gateway's connection, before its first use.
    Flow(Box<Flow>),
    Segments(Box<Segments>),
    /// What a TLS handshake showed.
    Session(Box<Session>),
    Record(Record),
    Command(Box<Command>),
    /// A command with the values of ε.
    Correction(Box<Correction>),
    /// A command with its candidates.
    Identification(Box<Identification>),
    /// Something that a home does not usually do.
    Deviation(Box<Deviation>),
    /// Something skipped, lost or assumed.
    Notice(Box<Notice>),
    /// What each stage did; always last.
    Summary(Summary),
    /// A kind this version does not know, passed on as it came.
    Unknown(Unknown),
}

impl Frame {
    #[inline]
    pub fn is_same_kind(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Unknown(one), Self::Unknown(other)) => one.kind == other.kind,
            _ => mem::discriminant(self) == mem::discriminant(other),
        }
    }

    #[inline]
    pub fn is_batch(&self) -> bool {
        matches!(self, Self::Packets(_) | Self::Segments(_))
    }

    /// How many frames it counts as in a summary: the rows of a batch, skipped packets included; one for other kinds.
    #[inline]
    pub fn rows(&self) -> u64 {
        match self {
            Self::Packets(batch) => batch.len() as u64 + batch.skipped_packets().packets,
            Self::Segments(batch) => batch.len() as u64,
            _ => 1,
        }
    }

    /// When a record, a command, or what is said of one was, in nanoseconds since the epoch; `None` of other kinds.
    pub fn time_ns(&self) -> Option<i64> {
        match self {
            Self::Record(record) => Some(record.time_ns),
            Self::Command(command) => Some(command.time_ns),
            Self::Correction(correction) => Some(correction.command.time_ns),
            Self::Identification(identification) => Some(identification.command.time_ns),
            Self::Deviation(deviation) => Some(deviation.time_ns),
            _ => None,
        }
    }

    /// Bytes of traffic in it, as a summary counts them.
    pub fn traffic_bytes(&self) -> u64 {
        match self {
            Self::Packets(batch) => batch.data_bytes() as u64 + batch.skipped_packets().bytes,
            Self::Segments(batch) => batch.data_bytes() as u64,
            Self::Record(record) => record.length.into(),
            Self::Command(command) => command.size,
            Self::Correction(correction) => correction.command.size,
            Self::Identification(identification) => identification.command.size,
            _ => 0,
        }
    }
}

/// The kinds of the contract, in the order a pipeline makes them: names on the wire and types, with a star if boxed.
macro_rules! kinds {
    ($($name:literal: $kind:ident $([$deref:tt])?),* $(,)?) => {
        /// The names of all kinds of the contract, in the order a pipeline makes them.
        pub const KINDS: [&str; 12] = [$($name),*];

        impl Frame {
            pub fn kind(&self) -> &str {
                match self {
                    $(Self::$kind(_) => $name,)*
                    Self::Unknown(unknown) => &unknown.kind,
                }
            }
        }

        $(impl From<$kind> for Frame {
            fn from(body: $kind) -> Self {
                Self::$kind(body.into())
            }
        }

        impl TryFrom<Frame> for $kind {
            type Error = Frame;

            fn try_from(frame: Frame) -> Result<Self, Frame> {
                match frame {
                    Frame::$kind(body) => Ok($($deref)? body),
                    other => Err(other),
                }
            }
        })*
    };
}

kinds!(
    "hello": Hello[*],
    "packets": Packets[*],
    "flow": Flow[*],
    "segments": Segments[*],
    "session": Session[*],
    "record": Record,
    "command": Command[*],
    "correction": Correction[*],
    "identification": Identification[*],
    "deviation": Deviation[*],
    "notice": Notice[*],
    "summary": Summary,
);

impl From<Unknown> for Frame {
    fn from(unknown: Unknown) -> Self {
        Self::Unknown(unknown)
    }
}

impl TryFrom<Frame> for Box<Identification> {
    type Error = Frame;

    fn try_from(frame: Frame) -> Result<Self, Frame> {
        match frame {
            Frame::Identification(body) => Ok(body),
            other => Err(other),
        }
    }
}

/// A frame of an unknown kind. It is passed on byte for byte, so that newer stages work with this version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    pub kind: String,
    /// The whole `MessagePack` value, the kind's name included.
    pub value: Vec<u8>,
}
