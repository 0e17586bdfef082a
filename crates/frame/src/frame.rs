//! The frame: one of the kinds of the contract, or one this version does not know.

use std::marker::PhantomData;
use std::mem;
use std::sync::Arc;

use serde::Serialize;
use serde::de::{DeserializeOwned, DeserializeSeed};

use crate::frequent;
use crate::packet::SharedPackets;
use crate::segment::SharedSegments;

use crate::{
    Command, Correction, Flow, Hello, Identification, MAX_DEPTH, Notice, Packets, Record, Segments, Session, Summary,
    Unknown,
};

/// One value of a stream. What is seldom or large lies in a box, so that a record, of which there are most, moves cheaply.
#[derive(Debug, Clone, PartialEq)]
pub enum Frame {
    /// Who writes the stream; always first.
    Hello(Box<Hello>),
    /// A batch of captured packets.
    Packets(Box<Packets>),
    /// A gateway's connection, before its first use.
    Flow(Box<Flow>),
    /// A batch of TCP segments.
    Segments(Box<Segments>),
    /// What a TLS handshake showed.
    Session(Box<Session>),
    /// A TLS record.
    Record(Record),
    /// A command.
    Command(Box<Command>),
    /// A command with the values of ε.
    Correction(Box<Correction>),
    /// A command with its candidates.
    Identification(Box<Identification>),
    /// Something skipped, lost or assumed.
    Notice(Box<Notice>),
    /// What each stage did; always last.
    Summary(Summary),
    /// A kind this version does not know, passed on as it came.
    Unknown(Unknown),
}

/// The names of all kinds of the contract, in the order a pipeline makes them.
pub const KINDS: [&str; 11] = [
    "hello",
    "packets",
    "flow",
    "segments",
    "session",
    "record",
    "command",
    "correction",
    "identification",
    "notice",
    "summary",
];

impl Frame {
    /// The kind's name, as on the wire.
    pub fn kind(&self) -> &str {
        match self {
            Self::Hello(_) => "hello",
            Self::Packets(_) => "packets",
            Self::Flow(_) => "flow",
            Self::Segments(_) => "segments",
            Self::Session(_) => "session",
            Self::Record(_) => "record",
            Self::Command(_) => "command",
            Self::Correction(_) => "correction",
            Self::Identification(_) => "identification",
            Self::Notice(_) => "notice",
            Self::Summary(_) => "summary",
            Self::Unknown(unknown) => &unknown.kind,
        }
    }

    /// Whether it is of the same kind as another one.
    #[inline]
    pub fn is_same_kind(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Unknown(one), Self::Unknown(other)) => one.kind == other.kind,
            _ => mem::discriminant(self) == mem::discriminant(other),
        }
    }

    /// Empties a list. Most frames of a long one are records, which own nothing: they are spared the question what to let go of.
    pub fn clear(frames: &mut Vec<Self>) {
        for frame in frames.drain(..) {
            match frame {
                Self::Record(_record) => {}
                other => drop(other),
            }
        }
    }

    /// Whether it holds rows, which may lie in a buffer of their reader's.
    #[inline]
    pub fn is_batch(&self) -> bool {
        matches!(self, Self::Packets(_) | Self::Segments(_))
    }

    /// How many frames it counts as in a summary: the rows of a batch, also those it only stands for; one for anything
    /// else.
    #[inline]
    pub fn rows(&self) -> u64 {
        match self {
            Self::Packets(batch) => batch.len() as u64 + batch.skipped_packets().packets,
            Self::Segments(batch) => batch.len() as u64,
            _ => 1,
        }
    }

    /// Bytes of traffic it stands for, as a summary counts them.
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

    /// Decodes the body of a frame of a known kind, which lies in `buffer`; `None` for an unknown one.
    pub(crate) fn decode(
        kind: &str,
        body: &[u8],
        buffer: &Arc<Vec<u8>>,
    ) -> Option<Result<Self, rmp_serde::decode::Error>> {
        Some(match kind {
            "hello" => decode(body).map(Self::Hello),
            "packets" => decode_by(SharedPackets(buffer), body).map(Self::from),
            "flow" => decode(body).map(Self::Flow),
            "segments" => decode_by(SharedSegments(buffer), body).map(Self::from),
            "session" => decode(body).map(Self::Session),
            "record" => decode(body).map(Self::Record),
            "command" => decode(body).map(Self::Command),
            "correction" => decode(body).map(Self::Correction),
            "identification" => decode(body).map(Self::Identification),
            "notice" => decode(body).map(Self::Notice),
            "summary" => decode(body).map(Self::Summary),
            _ => return None,
        })
    }

    /// Appends the whole value, `{kind: body}`, to a buffer.
    #[inline]
    pub(crate) fn encode(&self, buffer: &mut Vec<u8>) -> Result<(), rmp_serde::encode::Error> {
        match self {
            Self::Hello(body) => encode(self.kind(), body, buffer),
            Self::Packets(body) => Ok(frequent::encode_packets(body, buffer)?),
            Self::Flow(body) => encode(self.kind(), body, buffer),
            Self::Segments(body) => Ok(frequent::encode_segments(body, buffer)?),
            Self::Session(body) => encode(self.kind(), body, buffer),
            Self::Record(body) => Ok(frequent::encode_record(body, buffer)?),
            Self::Command(body) => encode(self.kind(), body, buffer),
            Self::Correction(body) => encode(self.kind(), body, buffer),
            Self::Identification(body) => encode(self.kind(), body, buffer),
            Self::Notice(body) => encode(self.kind(), body, buffer),
            Self::Summary(body) => encode(self.kind(), body, buffer),
            Self::Unknown(unknown) => {
                buffer.extend_from_slice(&unknown.value);
                Ok(())
            }
        }
    }
}

fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, rmp_serde::decode::Error> {
    decode_by(PhantomData, body)
}

fn decode_by<'a, T: DeserializeSeed<'a>>(seed: T, body: &'a [u8]) -> Result<T::Value, rmp_serde::decode::Error> {
    let mut deserializer = rmp_serde::Deserializer::from_read_ref(body);
    deserializer.set_max_depth(MAX_DEPTH);
    seed.deserialize(&mut deserializer)
}

fn encode<T: Serialize>(kind: &str, body: &T, buffer: &mut Vec<u8>) -> Result<(), rmp_serde::encode::Error> {
    rmp::encode::write_map_len(buffer, 1)?;
    rmp::encode::write_str(buffer, kind)?;
    body.serialize(&mut rmp_serde::Serializer::new(buffer).with_struct_map())
}

macro_rules! kinds {
    ($($kind:ident: $body:ident => $taken:expr),* $(,)?) => {$(
        impl From<$kind> for Frame {
            fn from(body: $kind) -> Self {
                Self::$kind(body.into())
            }
        }

        /// Takes a frame of this one kind; any other comes back.
        impl TryFrom<Frame> for $kind {
            type Error = Frame;

            fn try_from(frame: Frame) -> Result<Self, Frame> {
                match frame {
                    Frame::$kind($body) => Ok($taken),
                    other => Err(other),
                }
            }
        }
    )*};
}

kinds!(
    Hello: body => *body,
    Packets: body => *body,
    Flow: body => *body,
    Segments: body => *body,
    Session: body => *body,
    Record: body => body,
    Command: body => *body,
    Correction: body => *body,
    Identification: body => *body,
    Notice: body => *body,
    Summary: body => body,
    Unknown: body => body,
);

/// Takes an identification in its box; any other frame comes back.
impl TryFrom<Frame> for Box<Identification> {
    type Error = Frame;

    fn try_from(frame: Frame) -> Result<Self, Frame> {
        match frame {
            Frame::Identification(body) => Ok(body),
            other => Err(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_apart_by_their_names() {
        let unknown = |kind: &str| Frame::Unknown(Unknown { kind: kind.to_owned(), value: vec![0x80] });
        let kinds = [unknown("a"), unknown("b"), Packets::new().into(), Segments::new().into()];
        for (one, other) in kinds.iter().flat_map(|one| kinds.iter().map(move |other| (one, other))) {
            assert_eq!(one.is_same_kind(other), one.kind() == other.kind(), "{} and {}", one.kind(), other.kind());
        }
    }

    /// A frame takes no more room than a record does, and what tells the kinds apart.
    #[test]
    fn a_frame_is_a_cache_line() {
        assert!(size_of::<Frame>() <= 64, "{} bytes", size_of::<Frame>());
    }
}
