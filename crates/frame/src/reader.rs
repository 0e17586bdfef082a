//! Reads frames from a stream of bytes and checks that the stream follows the contract.

use std::io::{self, Read};
use std::sync::Arc;

use thiserror::Error;

use crate::extent::Extent;
use crate::{Frame, Hello, ReadBuffer, SCHEMA, Unknown, frequent};

/// At most so many bytes are asked for at once.
const READ_BYTES: usize = 256 << 10;

/// Reads frames. It keeps no more than one value and what was read with it, and never allocates by a claimed length.
#[derive(Debug)]
pub struct FrameReader<R> {
    input: R,
    /// The bytes not yet decoded.
    buffer: ReadBuffer,
    /// Their offset in the stream.
    offset: u64,
    extent: Extent,
    /// How many bytes the last value had, as long as they are still there.
    last: usize,
    /// Values decoded so far.
    values: u64,
    state: State,
    /// The stage that said hello.
    writer: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    BeforeHello,
    Open,
    AfterSummary,
    /// An error was given; nothing more will come.
    Broken,
}

/// Why a stream could not be read on. What came before it was whole.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The stream ended without its `summary`: its writer, or one before it, did not come to its end.
    #[error("{}", cut(stage.as_deref(), *offset, *inside))]
    Cut {
        /// The stage that wrote the stream, if it said hello.
        stage: Option<String>,
        /// How many bytes of whole frames there were.
        offset: u64,
        /// How many bytes of a frame that is not whole follow them.
        inside: u64,
    },
    /// The stream does not follow the contract.
    #[error("value {number} of the frame stream{}, at byte {offset}: {fault}", of(stage.as_deref()))]
    Malformed {
        /// The stage that wrote the stream, if it said hello.
        stage: Option<String>,
        /// The value's number, counted from 1.
        number: u64,
        /// Where it begins.
        offset: u64,
        /// What is wrong with it.
        fault: String,
    },
    /// The stream speaks a newer version of the contract.
    #[error(
        "`{stage}` {version} writes schema {schema} of the frame contract, this program knows {SCHEMA}: use programs of one release"
    )]
    NewerSchema {
        /// The stage that wrote the stream.
        stage: String,
        /// Its version.
        version: String,
        /// The schema it writes.
        schema: u32,
    },
    /// The input could not be read.
    #[error("the frame stream{} cannot be read at byte {offset}: {source}", of(stage.as_deref()))]
    Io {
        /// The stage that wrote the stream, if it said hello.
        stage: Option<String>,
        /// How many bytes of whole frames there were.
        offset: u64,
        /// The error of the system.
        source: io::Error,
    },
}

impl ReadError {
    /// Whether the stream was cut, rather than being wrong in itself; a compressed one tells so by an error of its input.
    pub fn is_cut(&self) -> bool {
        match self {
            Self::Cut { .. } => true,
            Self::Io { source, .. } => source.kind() == io::ErrorKind::UnexpectedEof,
            _ => false,
        }
    }
}

impl<R: Read> FrameReader<R> {
    /// A reader of the stream that `input` brings.
    pub fn new(input: R) -> Self {
        Self {
            input,
            buffer: ReadBuffer::default(),
            extent: Extent::new(),
            last: 0,
            offset: 0,
            values: 0,
            state: State::BeforeHello,
            writer: None,
        }
    }

    /// The next frame, waiting for it if need be; `None` at the end of a stream that ended as it should.
    ///
    /// # Errors
    /// [`ReadError`], once; afterwards the reader says that the stream has ended.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, ReadError> {
        loop {
            if let Some(frame) = self.buffered_frame()? {
                return Ok(Some(frame));
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    /// The next frame if it is there already; never waits.
    ///
    /// # Errors
    /// As [`FrameReader::next_frame`].
    pub fn buffered_frame(&mut self) -> Result<Option<Frame>, ReadError> {
        if self.state == State::Broken {
            return Ok(None);
        }
        let (frame, length) = match self.decode_unread() {
            Ok(Some(decoded)) => decoded,
            Ok(None) => return Ok(None),
            Err(fault) => return Err(self.malformed(fault)),
        };
        let frame = self.check(frame)?;
        self.buffer.consume(length);
        self.last = length;
        self.offset += length as u64;
        self.values += 1;
        self.extent = Extent::new();
        Ok(Some(frame))
    }

    /// The frame the bytes not yet decoded begin with, and its length; `None` if it is not all there.
    fn decode_unread(&mut self) -> Result<Option<(Frame, usize)>, String> {
        let (unread, buffer) = (self.buffer.unread(), self.buffer.shared());
        // Nearly all are there whole when they are first looked at: then nobody has to look for their end.
        if self.extent.is_new()
            && let Some(decoded) = frequent::decode(unread, buffer)
        {
            return Ok(Some(decoded));
        }
        let length = self.extent.advance(unread).map_err(|error| error.to_string())?;
        let Some(value) = length.and_then(|length| unread.get(..length)) else { return Ok(None) };
        let frame = match frequent::decode(value, buffer) {
            Some((frame, _)) => frame,
            None => decode_value(value, buffer)?,
        };
        Ok(Some((frame, value.len())))
    }

    /// Waits for more bytes; false at the end of a stream that ended as it should.
    ///
    /// # Errors
    /// As [`FrameReader::next_frame`].
    pub fn fill(&mut self) -> Result<bool, ReadError> {
        if self.state == State::Broken {
            return Ok(false);
        }
        let unread = self.buffer.unread().len();
        self.last = 0;
        match self.buffer.fill(&mut self.input, READ_BYTES) {
            Ok(0) if self.state == State::AfterSummary && unread == 0 => Ok(false),
            Ok(0) => {
                self.state = State::Broken;
                Err(ReadError::Cut { stage: self.writer.clone(), offset: self.offset, inside: unread as u64 })
            }
            Ok(_) => Ok(true),
            Err(source) => {
                self.state = State::Broken;
                Err(ReadError::Io { stage: self.writer.clone(), offset: self.offset, source })
            }
        }
    }

    /// The bytes of the frame that came last, as its writer wrote them: with fields this version does not know. Empty once
    /// more was waited for.
    pub fn last_value(&self) -> &[u8] {
        self.buffer.consumed(self.last).unwrap_or_default()
    }

    /// The bytes that were read and not decoded, and the input behind them.
    pub fn into_rest(self) -> (Vec<u8>, R) {
        (self.buffer.unread().to_vec(), self.input)
    }

    /// The input, for asking its operating system handle.
    pub fn input(&self) -> &R {
        &self.input
    }

    fn check(&mut self, frame: Frame) -> Result<Frame, ReadError> {
        match (&frame, self.state) {
            (Frame::Hello(hello), State::BeforeHello) => self.greet(hello)?,
            (_, State::BeforeHello) => return Err(self.malformed("a stream must begin with `hello`".into())),
            (Frame::Hello(_), _) => {
                return Err(self.malformed("a second `hello`: streams cannot be joined end to end".into()));
            }
            (_, State::AfterSummary) => return Err(self.malformed("a frame after `summary`".into())),
            (Frame::Summary(_), _) => self.state = State::AfterSummary,
            _ => {}
        }
        Ok(frame)
    }

    fn greet(&mut self, hello: &Hello) -> Result<(), ReadError> {
        if hello.schema > SCHEMA {
            self.state = State::Broken;
            return Err(ReadError::NewerSchema {
                stage: hello.stage.clone(),
                version: hello.version.clone(),
                schema: hello.schema,
            });
        }
        self.writer = Some(hello.stage.clone());
        self.state = State::Open;
        Ok(())
    }

    fn malformed(&mut self, fault: String) -> ReadError {
        let hint = if self.state == State::BeforeHello {
            "; this is no stream of a sizeleak stage (captures go through `capture` first)"
        } else {
            ""
        };
        self.state = State::Broken;
        ReadError::Malformed {
            stage: self.writer.clone(),
            number: self.values + 1,
            offset: self.offset,
            fault: fault + hint,
        }
    }
}

/// Decodes one whole value, `{kind: body}`, which lies in `buffer`.
fn decode_value(value: &[u8], buffer: &Arc<Vec<u8>>) -> Result<Frame, String> {
    let mut rest = value;
    let entries = rmp::decode::read_map_len(&mut rest).map_err(|_| "a frame must be a map".to_owned())?;
    if entries != 1 {
        return Err(format!("a frame must be a map of one entry, this one has {entries}"));
    }
    let (kind, body) = rmp::decode::read_str_from_slice(rest).map_err(|_| "a frame's kind must be text".to_owned())?;
    match Frame::decode(kind, body, buffer) {
        None => Ok(Frame::Unknown(Unknown { kind: kind.to_owned(), value: value.to_vec() })),
        Some(Ok(frame)) => Ok(frame),
        Some(Err(error)) => Err(format!("a `{kind}` that cannot be read: {error}")),
    }
}

fn of(stage: Option<&str>) -> String {
    stage.map(|stage| format!(" from `{stage}`")).unwrap_or_default()
}

fn cut(stage: Option<&str>, offset: u64, inside: u64) -> String {
    match (stage, inside) {
        (None, 0) => "the frame stream is empty: the stage before wrote nothing".to_owned(),
        (_, 0) => format!("the frame stream{} ended without its summary, after {offset} bytes", of(stage)),
        _ => format!("the frame stream{} ended inside a frame, {inside} bytes after byte {offset}", of(stage)),
    }
}
