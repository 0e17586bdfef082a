//! Frames as `MessagePack` values: batches by hand, and all other kinds by serde; and who writes them to a stream of bytes,
//! or takes them otherwise.

use std::io::{self, Write};
use std::sync::Arc;

use rmp_serde::{decode, encode};
use serde::Serialize;
use serde::de::{DeserializeOwned, Error as _};
use thiserror::Error;

use crate::extent::{BATCH_BYTES, MAX_VALUE_BYTES};
use crate::fast::{self, Input};
use crate::{Frame, MAX_DEPTH, Protocol, Unknown, codec};

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

/// Writes frames through a buffer. Call [`FrameWriter::flush`] before waiting for input.
#[derive(Debug)]
pub struct FrameWriter<W> {
    output: W,
    buffer: Vec<u8>,
}

impl<W: Write> FrameWriter<W> {
    pub fn new(output: W) -> Self {
        Self { output, buffer: Vec::with_capacity(2 * BATCH_BYTES) }
    }

    /// Adds a frame; it reaches the output when the buffer is full or at the next [`FrameWriter::flush`].
    ///
    /// # Errors
    /// I/O errors of the output, and a frame that cannot be encoded or is too large; the stream still ends after a whole
    /// frame.
    #[inline]
    pub fn write(&mut self, frame: &Frame) -> io::Result<()> {
        let start = self.buffer.len();
        let encoded = codec::encode(frame, &mut self.buffer);
        let bytes = self.buffer.len() - start;
        if encoded.is_err() || bytes > MAX_VALUE_BYTES {
            self.buffer.truncate(start);
        }
        let kind = frame.kind();
        if let Err(fault) = encoded {
            return Err(io::Error::other(format!("a frame of kind `{kind}` cannot be encoded: {fault}")));
        }
        if bytes > MAX_VALUE_BYTES {
            return Err(io::Error::other(format!(
                "a frame of kind `{kind}` would take {bytes} bytes, more than the {MAX_VALUE_BYTES} a frame may have: list \
                 fewer candidates"
            )));
        }
        if self.buffer.len() >= BATCH_BYTES {
            self.write_buffer()?;
        }
        Ok(())
    }

    pub fn write_all(&mut self, frames: &[Frame]) -> io::Result<()> {
        frames.iter().try_for_each(|frame| self.write(frame))
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.write_buffer()?;
        self.output.flush()
    }

    pub fn output(&self) -> &W {
        &self.output
    }

    pub fn into_output(mut self) -> io::Result<W> {
        self.flush()?;
        Ok(self.output)
    }

    fn write_buffer(&mut self) -> io::Result<()> {
        let written = self.output.write_all(&self.buffer);
        self.buffer.clear();
        written
    }
}

/// Takes the frames of a stream, `hello` and `summary` included.
pub trait FrameSink: Send {
    /// Takes a batch of frames and leaves the vector empty.
    ///
    /// # Errors
    /// I/O errors of the output. [`io::ErrorKind::BrokenPipe`] ends a run quietly, any other error fails it.
    fn take(&mut self, frames: &mut Vec<Frame>) -> io::Result<()>;

    /// Flushes buffered output: the input has paused.
    fn pause(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<F: FnMut(Frame) -> io::Result<()> + Send> FrameSink for F {
    fn take(&mut self, frames: &mut Vec<Frame>) -> io::Result<()> {
        frames.drain(..).try_for_each(self)
    }
}
