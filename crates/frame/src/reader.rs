//! Reads frames from a stream of bytes and checks that the stream follows the contract. Batches share parts of the buffer
//! that is read into, instead of copying them.

use std::io::{self, ErrorKind, Read};
use std::mem;
use std::ops::Range;
use std::sync::Arc;

use sizeleak_text::{may_be_stand_in, stand_in};
use thiserror::Error;

use crate::extent::Extent;
use crate::{Frame, Hello, SCHEMA, codec, fast};

const READ_BYTES: usize = 256 << 10;

/// Reads frames. It buffers one value and what was read with it, and never allocates by a claimed length.
#[derive(Debug)]
pub struct FrameReader<R> {
    input: R,
    /// The bytes not yet decoded.
    buffer: ReadBuffer,
    offset: u64,
    extent: Extent,
    /// The length of the last value while its bytes are still in the buffer.
    last: usize,
    values: u64,
    state: State,
    writer: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    BeforeHello,
    Open,
    AfterSummary,
    /// An error was returned; no frame follows.
    Broken,
}

/// Why a stream cannot be read any further. All frames before are complete.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The stream ended without its `summary`: its writer, or a stage before it, died.
    #[error("{}", cut(stage.as_deref(), *offset, *inside))]
    Cut {
        /// The stage that wrote the stream, if its hello arrived.
        stage: Option<String>,
        /// The number of bytes of whole frames.
        offset: u64,
        /// The number of bytes of an incomplete frame after them.
        inside: u64,
    },
    #[error("value {number} of the frame stream{}, at byte {offset}: {fault}", of(stage.as_deref()))]
    Malformed { stage: Option<String>, number: u64, offset: u64, fault: String },
    #[error(
        "`{stage}` {version} writes schema {schema} of the frame contract, this program knows {SCHEMA}: use \
         programs of one release"
    )]
    NewerSchema { stage: String, version: String, schema: u32 },
    #[error("the frame stream{} cannot be read at byte {offset}: {source}", of(stage.as_deref()))]
    Io {
        stage: Option<String>,
        /// The number of bytes of whole frames.
        offset: u64,
        source: io::Error,
    },
}

impl ReadError {
    /// Whether the stream was cut, rather than invalid. For compressed streams that is an error of the input.
    pub fn is_cut(&self) -> bool {
        match self {
            Self::Cut { .. } => true,
            Self::Io { source, .. } => source.kind() == io::ErrorKind::UnexpectedEof,
            _ => false,
        }
    }
}

impl<R: Read> FrameReader<R> {
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

    /// The next frame; waits for it. `None` at the end of a whole stream.
    ///
    /// # Errors
    /// [`ReadError`], once; afterwards the stream has ended.
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

    /// The next frame if it is buffered; never waits.
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

    fn decode_unread(&mut self) -> Result<Option<(Frame, usize)>, String> {
        let (unread, buffer) = (self.buffer.unread(), self.buffer.shared());
        // Nearly all frames are whole at the first attempt: then there is no need to find their end.
        if self.extent.is_new()
            && let Some(decoded) = fast::decode(unread, buffer)
        {
            return Ok(Some(decoded));
        }
        let length = self.extent.advance(unread).map_err(|error| error.to_string())?;
        let Some(value) = length.and_then(|length| unread.get(..length)) else { return Ok(None) };
        Ok(Some((codec::decode(value, buffer)?, value.len())))
    }

    /// Waits for more bytes; false at the end of a whole stream.
    pub fn fill(&mut self) -> Result<bool, ReadError> {
        if self.state == State::Broken {
            return Ok(false);
        }
        let unread = self.buffer.unread().len();
        self.last = 0;
        match self.buffer.fill(&mut self.input, READ_BYTES) {
            Ok(0) if self.state == State::AfterSummary && unread == 0 => Ok(false),
            Ok(0) if self.state == State::BeforeHello && !may_be_hello(self.buffer.unread()) => {
                Err(self.malformed("a stream must begin with `hello`".into()))
            }
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

    /// The bytes of the last frame as its writer wrote them, unknown fields included. Empty after
    /// [`FrameReader::fill`].
    pub fn last_value(&self) -> &[u8] {
        self.buffer.consumed(self.last).unwrap_or_default()
    }

    pub fn into_rest(self) -> (Vec<u8>, R) {
        (self.buffer.unread().to_vec(), self.input)
    }

    pub fn input(&self) -> &R {
        &self.input
    }

    fn check(&mut self, frame: Frame) -> Result<Frame, ReadError> {
        match (&frame, self.state) {
            (Frame::Hello(hello), State::BeforeHello) => self.check_hello(hello)?,
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

    fn check_hello(&mut self, hello: &Hello) -> Result<(), ReadError> {
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

    /// What the file is if it stands in the place of a stream.
    fn stand_in(&mut self) -> Option<&'static str> {
        if self.offset > 0 {
            return None;
        }
        // A pipe may bring a few bytes at once.
        while may_be_stand_in(self.buffer.unread())
            && self.buffer.fill(&mut self.input, READ_BYTES).is_ok_and(|read| read > 0)
        {}
        stand_in(self.buffer.unread())
    }

    fn malformed(&mut self, fault: String) -> ReadError {
        let fault = match self.stand_in() {
            Some(what) => format!("this is {what}"),
            None if self.state == State::BeforeHello => {
                format!("{fault}; this is no stream of a sizeleak stage (captures go through `capture` first)")
            }
            None => fault,
        };
        self.state = State::Broken;
        ReadError::Malformed { stage: self.writer.clone(), number: self.values + 1, offset: self.offset, fault }
    }
}

/// Whether a stream that was cut may have begun so: its first frame is a map of one entry, in one of MessagePack's forms.
fn may_be_hello(beginning: &[u8]) -> bool {
    matches!(beginning.first(), None | Some(0x81 | 0xde | 0xdf))
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

const GROWTH_STEP_BYTES: usize = 64 << 10;

const MAX_SPARE: usize = 6;

/// Buffers to reuse once they are no longer shared.
#[derive(Debug, Default)]
pub struct SpareBuffers(Vec<Arc<Vec<u8>>>);

impl SpareBuffers {
    pub fn take(&mut self) -> Arc<Vec<u8>> {
        let free = self.0.iter_mut().position(|buffer| Arc::get_mut(buffer).is_some());
        free.map_or_else(Arc::default, |free| self.0.swap_remove(free))
    }

    pub fn keep(&mut self, buffer: Arc<Vec<u8>>) {
        if self.0.len() < MAX_SPARE {
            self.0.push(buffer);
        }
    }
}

/// Bytes that were read and not consumed yet. A buffer that batches share is never written: reading continues in
/// another one, and the old one is reused once it is no longer shared.
#[derive(Debug, Default)]
pub struct ReadBuffer {
    current: Arc<Vec<u8>>,
    spare: SpareBuffers,
    start: usize,
    end: usize,
}

impl ReadBuffer {
    #[inline]
    pub fn unread(&self) -> &[u8] {
        self.current.get(self.start..self.end).unwrap_or_default()
    }

    #[inline]
    pub fn shared(&self) -> &Arc<Vec<u8>> {
        &self.current
    }

    #[inline]
    pub fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
    }

    pub fn consumed(&self, count: usize) -> Option<&[u8]> {
        self.current.get(self.start.checked_sub(count)?..self.start)
    }

    /// Reads at most about `room` more bytes; returns their number, 0 at the end.
    pub fn fill(&mut self, input: &mut impl Read, room: usize) -> io::Result<usize> {
        let unread = self.end - self.start;
        let free = self.make_room(unread, room);
        loop {
            match input.read(free) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(count) => {
                    self.end += count;
                    return Ok(count);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Continues in another buffer, whose bytes in `range` follow the unread ones; those are copied in front of it.
    /// Returns false and changes nothing if there is no room for them or the buffer is shared.
    pub fn go_on_in(&mut self, other: &mut Arc<Vec<u8>>, range: Range<usize>) -> bool {
        let Some(start) = range.start.checked_sub(self.end - self.start) else { return false };
        let Some(bytes) = Arc::get_mut(other).filter(|bytes| range.end <= bytes.len()) else { return false };
        let (Some(to), Some(from)) = (bytes.get_mut(start..range.start), self.current.get(self.start..self.end)) else {
            return false;
        };
        to.copy_from_slice(from);
        self.spare.keep(mem::replace(&mut self.current, Arc::clone(other)));
        (self.start, self.end) = (start, range.end);
        true
    }

    /// Moves the unread bytes to another buffer and releases the current one.
    pub fn move_out(&mut self) {
        let mut next = self.spare.take();
        if let Some(bytes) = Arc::get_mut(&mut next) {
            bytes.clear();
            bytes.extend_from_slice(self.unread());
            (self.start, self.end) = (0, bytes.len());
            self.current = next;
        }
    }

    /// Moves the unread bytes to the front of an unshared buffer; returns the free space after them.
    fn make_room(&mut self, unread: usize, room: usize) -> &mut [u8] {
        if Arc::get_mut(&mut self.current).is_none() {
            let mut next = self.spare.take();
            if let Some(next) = Arc::get_mut(&mut next) {
                let least = unread.next_multiple_of(GROWTH_STEP_BYTES);
                if next.len() < least {
                    next.resize(least, 0);
                }
                if let (Some(to), Some(from)) = (next.get_mut(..unread), self.current.get(self.start..self.end)) {
                    to.copy_from_slice(from);
                }
            }
            self.spare.keep(mem::replace(&mut self.current, next));
            (self.start, self.end) = (0, unread);
        }
        let Some(buffer) = Arc::get_mut(&mut self.current) else { return &mut [] };
        if buffer.len() - self.end < room {
            buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, unread);
            // By what was read, never by a claimed length.
            let least = (unread + room).next_multiple_of(GROWTH_STEP_BYTES);
            if buffer.len() < least {
                buffer.resize(least, 0);
            }
        }
        buffer.get_mut(self.end..).unwrap_or_default()
    }
}
