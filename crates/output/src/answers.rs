//! Reads answers again, that is identifications, what deviates among them and what is known of their flows: from a frame
//! stream, from its JSON lines, or from Parquet.

use std::io::{self, BufRead, BufReader, Read};

use serde::Deserialize;
use serde::de::Error as _;
use serde_json::Value;
use sizeleak_frame::{Deviation, Flow, FlowId, Frame, FrameReader, Identification, ReadError, Session};
use thiserror::Error;

/// The longest line, like the largest frame: 16 MiB.
const MAX_BYTES: usize = 16 << 20;

/// Why the input cannot be read any further. Everything before it has been read.
#[derive(Debug, Error)]
pub enum AnswersError {
    #[error(transparent)]
    Frames(#[from] ReadError),
    #[error("line {0}: {1}")]
    Malformed(u64, serde_json::Error),
    #[error("line {0} ends within its JSON")]
    Cut(u64),
    #[error("line {0} is longer than 16 MiB")]
    TooLong(u64),
    #[error("the input cannot be read: {0}")]
    Io(#[from] io::Error),
}

impl AnswersError {
    /// Whether the input ended too early and is otherwise valid.
    pub fn is_cut(&self) -> bool {
        match self {
            Self::Cut(_) => true,
            Self::Frames(error) => error.is_cut(),
            Self::Io(error) => error.kind() == io::ErrorKind::UnexpectedEof,
            _ => false,
        }
    }
}

pub trait AnswerSink {
    /// Takes a frame of a stream; of JSON lines and Parquet, flows, sessions, identifications and deviations alone.
    fn add(&mut self, frame: Frame);

    /// What a line or row says of the ends of its flow, before its identification.
    fn learn(&mut self, _flow: u64, _gateway: Option<&str>, _service: Option<&str>) {}
}

impl<F: FnMut(Frame)> AnswerSink for F {
    fn add(&mut self, frame: Frame) {
        self(frame);
    }
}

/// Reads frames, or their JSON lines. No frame starts with the first byte of a JSON object.
pub fn read_answers(input: impl Read, sink: &mut dyn AnswerSink) -> Result<(), AnswersError> {
    let mut input = BufReader::new(input);
    if input.fill_buf()?.first() == Some(&b'{') { read_lines(input, sink) } else { read_frames(input, sink) }
}

fn read_frames(input: impl Read, sink: &mut dyn AnswerSink) -> Result<(), AnswersError> {
    let mut reader = FrameReader::new(input);
    while let Some(frame) = reader.next_frame()? {
        sink.add(frame);
    }
    Ok(())
}

#[derive(Deserialize)]
struct JsonLine {
    flow: Option<Flow>,
    session: Option<Session>,
    identification: Option<NamedIdentification>,
    deviation: Option<Deviation>,
}

/// An identification with the ends of its flow, as far as its stream said them.
#[derive(Deserialize)]
struct NamedIdentification {
    #[serde(flatten)]
    identification: Identification,
    gateway: Option<String>,
    service: Option<String>,
}

fn parse(line: &[u8]) -> Result<JsonLine, serde_json::Error> {
    let mut line: Value = serde_json::from_slice(line)?;
    for body in line.as_object_mut().into_iter().flat_map(|line| line.values_mut()) {
        number_flow(body)?;
        body.get_mut("commands").and_then(Value::as_array_mut).into_iter().flatten().try_for_each(number_flow)?;
    }
    serde_json::from_value(line)
}

/// A flow is text in JSON; older streams have its number.
fn number_flow(body: &mut Value) -> Result<(), serde_json::Error> {
    if let Some(flow @ Value::String(_)) = body.get_mut("flow") {
        let id: FlowId = flow.as_str().unwrap_or_default().parse().map_err(serde_json::Error::custom)?;
        *flow = id.0.into();
    }
    Ok(())
}

fn read_lines(mut input: impl BufRead, sink: &mut dyn AnswerSink) -> Result<(), AnswersError> {
    let mut bytes = Vec::new();
    for line in 1.. {
        bytes.clear();
        if input.by_ref().take(MAX_BYTES as u64 + 1).read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        if bytes.len() > MAX_BYTES {
            return Err(AnswersError::TooLong(line));
        }
        let parsed = parse(&bytes).map_err(|error| {
            let is_last = bytes.last() != Some(&b'\n');
            if is_last && error.is_eof() { AnswersError::Cut(line) } else { AnswersError::Malformed(line, error) }
        })?;
        let frames = [parsed.flow.map(Frame::from), parsed.session.map(Frame::from), parsed.deviation.map(Frame::from)];
        frames.into_iter().flatten().for_each(|frame| sink.add(frame));
        if let Some(NamedIdentification { identification, gateway, service }) = parsed.identification {
            sink.learn(identification.command.flow, gateway.as_deref(), service.as_deref());
            sink.add(identification.into());
        }
    }
    Ok(())
}
