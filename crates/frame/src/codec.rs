//! Frames as `MessagePack` values: batches by hand, and all other kinds by serde.

use std::sync::Arc;

use rmp_serde::{decode, encode};
use serde::Serialize;
use serde::de::{DeserializeOwned, Error as _};
use thiserror::Error;

use crate::fast::Input;
use crate::{Frame, MAX_DEPTH, Protocol, Unknown, fast};

// Inlined, serde's part would be compiled with the callers, which are small and not fast.
#[inline(never)]
pub(crate) fn encode(frame: &Frame, buffer: &mut Vec<u8>) -> Result<(), encode::Error> {
    match frame {
        Frame::Record(body) if body.protocol == Protocol::Tls => Ok(fast::encode_record(body, buffer)?),
        Frame::Packets(body) => Ok(fast::encode_packets(body, buffer)?),
        Frame::Segments(body) => Ok(fast::encode_segments(body, buffer)?),
        Frame::Hello(body) => encode_body(frame, body, buffer),
        Frame::Flow(body) => encode_body(frame, body, buffer),
        Frame::Session(body) => encode_body(frame, body, buffer),
        Frame::Record(body) => encode_body(frame, body, buffer),
        Frame::Command(body) => encode_body(frame, body, buffer),
        Frame::Correction(body) => encode_body(frame, body, buffer),
        Frame::Identification(body) => encode_body(frame, body, buffer),
        Frame::Deviation(body) => encode_body(frame, body, buffer),
        Frame::Notice(body) => encode_body(frame, body, buffer),
        Frame::Summary(body) => encode_body(frame, body, buffer),
        Frame::Unknown(unknown) => {
            buffer.extend_from_slice(&unknown.value);
            Ok(())
        }
    }
}

pub(crate) fn encode_body<T: Serialize>(frame: &Frame, body: &T, buffer: &mut Vec<u8>) -> Result<(), encode::Error> {
    rmp::encode::write_map_len(buffer, 1)?;
    rmp::encode::write_str(buffer, frame.kind())?;
    body.serialize(&mut rmp_serde::Serializer::new(buffer).with_struct_map())
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct NotFrame(String);

impl Frame {
    /// The frame of one whole `MessagePack` value, `{kind: body}`, which is part of no stream.
    pub fn decode(value: &[u8]) -> Result<Self, NotFrame> {
        let buffer = Arc::new(value.to_vec());
        decode(&buffer, &buffer).map_err(NotFrame)
    }
}

/// Decodes one whole value, `{kind: body}`, which is part of `buffer`. The error says what is wrong with it.
pub(crate) fn decode(value: &[u8], buffer: &Arc<Vec<u8>>) -> Result<Frame, String> {
    let mut rest = value;
    let entries = rmp::decode::read_map_len(&mut rest).map_err(|_| "a frame must be a map".to_owned())?;
    if entries != 1 {
        return Err(format!("a frame must be a map of one entry, this one has {entries}"));
    }
    let (kind, body) = rmp::decode::read_str_from_slice(rest).map_err(|_| "a frame's kind must be text".to_owned())?;
    let frame = match kind {
        "hello" => decode_body(body).map(Frame::Hello),
        "packets" => Input(body).packets(buffer).map(Frame::from).ok_or_else(|| no_batch(PACKET_ROW)),
        "flow" => decode_body(body).map(Frame::Flow),
        "segments" => Input(body).segments(buffer).map(Frame::from).ok_or_else(|| no_batch(SEGMENT_ROW)),
        "session" => decode_body(body).map(Frame::Session),
        "record" => decode_body(body).map(Frame::Record),
        "command" => decode_body(body).map(Frame::Command),
        "correction" => decode_body(body).map(Frame::Correction),
        "identification" => decode_body(body).map(Frame::Identification),
        "deviation" => decode_body(body).map(Frame::Deviation),
        "notice" => decode_body(body).map(Frame::Notice),
        "summary" => decode_body(body).map(Frame::Summary),
        _ => Ok(Frame::Unknown(Unknown { kind: kind.to_owned(), value: value.to_vec() })),
    };
    frame.map_err(|error| format!("a `{kind}` that cannot be read: {error}"))
}

const PACKET_ROW: &str = "time_ns, link_type, original_length, data, capture, number";
const SEGMENT_ROW: &str = "time_ns, flow, direction (0 or 1), sequence, flags, length, payload, acknowledgement";

fn no_batch(entries: &str) -> decode::Error {
    decode::Error::custom(format_args!("wanted is a list of rows, each a list of {entries}"))
}

fn decode_body<T: DeserializeOwned>(body: &[u8]) -> Result<T, decode::Error> {
    let mut deserializer = rmp_serde::Deserializer::from_read_ref(body);
    deserializer.set_max_depth(MAX_DEPTH);
    T::deserialize(&mut deserializer)
}
