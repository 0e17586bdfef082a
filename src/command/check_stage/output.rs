//! What a stage wrote, taken apart: frames it passed on, and frames it made.

use rmpv::Value;
use sizeleak_frame::{Frame, FrameReader, Hello, ReadError, Summary};

use super::program::{End, Ended};
use super::recorded::{Kind, Recorded};

/// A run of a stage, with its output read.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) ended: Ended,
    pub(super) frames: Vec<Frame>,
    /// Why the output is no whole stream.
    pub(super) fault: Option<ReadError>,
}

impl Output {
    pub(super) fn of(ended: Ended) -> Self {
        let (frames, fault) = read(&ended.stdout);
        Self { ended, frames, fault }
    }

    pub(super) fn hello(&self) -> Option<&Hello> {
        self.frames.iter().find_map(|frame| if let Frame::Hello(hello) = frame { Some(&**hello) } else { None })
    }

    pub(super) fn summary(&self) -> Option<&Summary> {
        self.frames.iter().find_map(|frame| if let Frame::Summary(summary) = frame { Some(summary) } else { None })
    }

    /// Checks that it ended with this exit code.
    pub(super) fn ended_with(&self, code: i32) -> Result<(), String> {
        if self.ended.end == End::Code(code) {
            return Ok(());
        }
        let said = self.last_word().map_or_else(|| "without a word".to_owned(), |line| format!("saying: {line}"));
        Err(format!("{}, {said}", self.ended.end))
    }

    /// Checks that it wrote a whole stream.
    pub(super) fn is_whole(&self) -> Result<(), String> {
        self.fault.as_ref().map_or(Ok(()), |fault| Err(format!("what it wrote cannot be read: {fault}")))
    }

    /// Checks that it wrote a stream that is whole but for its end: that only the summary is missing.
    pub(super) fn is_without_summary(&self) -> Result<(), String> {
        match &self.fault {
            _ if self.summary().is_some() => {
                Err("it wrote a summary, so that the next stage takes the stream for whole".into())
            }
            Some(ReadError::Cut { inside: 0, .. }) | None => Ok(()),
            Some(fault) => Err(format!("what it wrote cannot be read: {fault}")),
        }
    }

    /// Checks that stderr says why it failed, to a person and not to a programmer.
    pub(super) fn said_why(&self) -> Result<(), String> {
        let is_trace = |line: &str| {
            line.starts_with("Traceback") || line.contains("panicked at") || line.starts_with("goroutine ")
        };
        match (self.ended.stderr.lines().find(|line| is_trace(line)), self.last_word()) {
            (Some(trace), _) => Err(format!("stderr has a stack trace: {trace}")),
            (None, None) => Err("stderr says nothing".into()),
            (None, Some(_)) => Ok(()),
        }
    }

    fn last_word(&self) -> Option<&str> {
        self.ended.stderr.lines().map(str::trim).rfind(|line| !line.is_empty())
    }

    /// What the stage made: what is left when the frames it had to pass on are taken out, which must be there, in order.
    pub(super) fn made(&self, input: &[Frame], kind: Kind) -> Result<Vec<Frame>, String> {
        let mut expected = passed_on(input, kind).peekable();
        let mut made = Vec::new();
        let mut seen: u64 = 0;
        for frame in self.frames.iter().filter(|frame| !is_end(frame)) {
            if expected.next_if(|expected| is_same(expected, frame)).is_some() {
                seen += 1;
            } else {
                made.push(frame.clone());
            }
        }
        match expected.next() {
            None => Ok(made),
            Some(missing) => Err(format!(
                "of the frames to pass on, the first {seen} came; number {} (`{}`) did not come, or out of its place, or \
                 changed",
                seen + 1,
                missing.kind()
            )),
        }
    }
}

/// The frames that a stage has to pass on.
pub(super) fn passed_on(input: &[Frame], kind: Kind) -> impl Iterator<Item = &Frame> {
    input.iter().filter(move |frame| !is_end(frame) && frame.kind() != kind.name())
}

fn is_end(frame: &Frame) -> bool {
    matches!(frame, Frame::Hello(_) | Frame::Summary(_))
}

/// As many frames as can be read, and why no more.
pub(super) fn read(bytes: &[u8]) -> (Vec<Frame>, Option<ReadError>) {
    let (mut reader, mut frames) = (FrameReader::new(bytes), Vec::new());
    loop {
        match reader.next_frame() {
            Ok(Some(frame)) => frames.push(frame),
            Ok(None) => return (frames, None),
            Err(fault) => return (frames, Some(fault)),
        }
    }
}

/// Whether two frames say the same, however they are encoded.
pub(super) fn is_same(one: &Frame, other: &Frame) -> bool {
    match (one, other) {
        (Frame::Unknown(one), Frame::Unknown(other)) => {
            one.kind == other.kind && plain(&one.value).is_some_and(|value| plain(&other.value) == Some(value))
        }
        _ => one == other,
    }
}

fn plain(mut value: &[u8]) -> Option<Value> {
    rmpv::decode::read_value(&mut value).ok().map(widened)
}

/// The value with every float in 64 bits: a language with one type of float may write no other.
fn widened(value: Value) -> Value {
    match value {
        Value::F32(number) => Value::F64(number.into()),
        Value::Array(values) => Value::Array(values.into_iter().map(widened).collect()),
        Value::Map(entries) => {
            Value::Map(entries.into_iter().map(|(key, value)| (widened(key), widened(value))).collect())
        }
        other => other,
    }
}

/// Checks that two runs made the same of what means the same. `input` is what the second one was fed.
pub(super) fn made_the_same(first: &[Frame], second: &Output, input: &Recorded, kind: Kind) -> Result<(), String> {
    second.ended_with(0)?;
    let made = second.made(&input.frames, kind)?;
    let mut pairs = first.iter().zip(&made).zip(1..);
    if let Some(((one, other), at)) = pairs.find(|((one, other), _)| !is_same(one, other)) {
        let (one, other) = (one.kind(), other.kind());
        return Err(format!("frame {at} that it made (`{one}`) became another (`{other}`)"));
    }
    if made.len() != first.len() {
        return Err(format!("it made {} frames, not {}", made.len(), first.len()));
    }
    Ok(())
}
