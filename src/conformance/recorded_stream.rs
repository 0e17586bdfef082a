//! The kinds of frame that a stage may consume, and the stream that it is fed: recorded by the user, or made from a
//! simulated home.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use clap::ValueEnum;
use sizeleak_frame::{
    Actions, Candidate, Command, Correction, Frame, FrameReader, FrameWriter, Hello, Identification, ReadError,
    StageSummary, Summary, WeightedEpsilon,
};
use sizeleak_pipeline::recording::decompressed;
use sizeleak_pipeline::registry::STAGES;
use sizeleak_pipeline::{ConfigError, InputError, Pipeline};
use sizeleak_platform::runtime::Interrupt;
use sizeleak_simulator::{Scenario, simulate};

/// The kind of frame that a stage consumes, which is its place in a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ConsumedKind {
    /// The first stage, which reads no frames
    Nothing,
    /// Like flow-filter
    Packets,
    /// Like record-sizer
    Segments,
    /// Like command-segmenter
    Record,
    /// Like epsilon-corrector
    Command,
    /// Like decomposer
    Correction,
    /// Like pruner
    Identification,
}

impl ConsumedKind {
    /// The name of the kind in frames; `nothing` for none.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Packets => "packets",
            Self::Segments => "segments",
            Self::Record => "record",
            Self::Command => "command",
            Self::Correction => "correction",
            Self::Identification => "identification",
        }
    }
}

/// A whole stream: `hello` first, `summary` last.
#[derive(Debug, Clone)]
pub struct RecordedStream {
    pub(crate) frames: Vec<Frame>,
    pub(crate) hello: Hello,
    pub(crate) summary: Summary,
}

impl RecordedStream {
    /// Reads a stream that the user recorded, compressed or not.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let fault = |fault: String| ConfigError::input(format!("{}: {fault}", path.display()));
        let input = File::open(path).and_then(decompressed).map_err(|error| fault(error.to_string()))?;
        let mut reader = FrameReader::new(input);
        let mut frames = Vec::new();
        while let Some(frame) = reader.next_frame().map_err(|error| fault(error.to_string()))? {
            frames.push(frame);
        }
        Self::new(frames)
            .ok_or_else(|| fault("a recorded stream starts with a hello and ends with a summary".to_owned()))
    }

    /// Makes the input of a stage that consumes `kind` from a small simulated home.
    pub fn simulated(kind: ConsumedKind) -> Result<Self, InputError> {
        if kind == ConsumedKind::Nothing {
            let hello = Hello { schema: 1, stage: String::new(), version: String::new(), upstream: Vec::new() };
            return Ok(Self { frames: Vec::new(), hello, summary: Summary::default() });
        }
        let frames = match kind {
            ConsumedKind::Correction => {
                append_stage("epsilon-corrector", simulated_frames("command")?, |command| corrected(command).into())
            }
            ConsumedKind::Identification => {
                let corrections = append_stage("epsilon-corrector", simulated_frames("command")?, Frame::from);
                append_stage("decomposer", corrections, |command| identified(command).into())
            }
            _ => simulated_frames(kind.name())?,
        };
        let incomplete = || ConfigError::input("the stages before the one under test did not end".to_owned());
        Ok(Self::new(frames).ok_or_else(incomplete)?)
    }

    /// `None` if the frames do not start with a hello and end with a summary.
    fn new(frames: Vec<Frame>) -> Option<Self> {
        match (frames.first().cloned(), frames.last().cloned()) {
            (Some(Frame::Hello(hello)), Some(Frame::Summary(summary))) => Some(Self { frames, hello: *hello, summary }),
            _ => None,
        }
    }

    /// How many frames a stage that consumes `kind` takes from it, counting the rows of batches, and the bytes of
    /// traffic in them.
    pub fn consumed(&self, kind: ConsumedKind) -> (u64, u64) {
        let consumed = self.frames.iter().filter(|frame| frame.kind() == kind.name());
        consumed.fold((0, 0), |(rows, bytes), frame| (rows + frame.rows(), bytes + frame.traffic_bytes()))
    }
}

pub(crate) fn encode(frames: &[Frame]) -> Vec<u8> {
    let mut writer = FrameWriter::new(Vec::new());
    // Frames that were read can be written, and a vector does not fail.
    let written = frames.iter().try_for_each(|frame| writer.write(frame)).and_then(|()| writer.flush());
    debug_assert!(written.is_ok(), "{written:?}");
    writer.output().clone()
}

pub(crate) fn decode(bytes: &[u8]) -> (Vec<Frame>, Option<ReadError>) {
    let (mut reader, mut frames) = (FrameReader::new(bytes), Vec::new());
    loop {
        match reader.next_frame() {
            Ok(Some(frame)) => frames.push(frame),
            Ok(None) => return (frames, None),
            Err(fault) => return (frames, Some(fault)),
        }
    }
}

/// The bytes of a record: longer messages are split, as services do, and both kinds of length occur.
const CHUNK: usize = 180;

fn simulated_frames(kind: &str) -> Result<Vec<Frame>, InputError> {
    let mut scenario = Scenario::default();
    scenario.learn.repeats = 1;
    scenario.learn.random = 0;
    scenario.test.commands = 12;
    scenario.tls.chunk = CHUNK;
    let traffic = simulate(&scenario, 1).map_err(|error| ConfigError::input(error.to_string()))?.test.bytes;
    let of_file = |error: io::Error| ConfigError::input(format!("a temporary file cannot be written: {error}"));
    let folder = tempfile::tempdir().map_err(of_file)?;
    let capture = folder.path().join("home.pcap");
    fs::write(&capture, traffic).map_err(of_file)?;
    let last = STAGES.iter().find(|entry| entry.makes == kind).map_or(kind, |entry| entry.name);
    let mut pipeline = Pipeline::standard().until(last)?;
    pipeline.read_captures(&[capture])?;
    if pipeline.has("flow-filter") {
        pipeline.set("flow-filter", "gateway", vec![scenario.network.gateway.to_string()])?;
    }
    let mut frames = Vec::new();
    let mut keep = |frame: Frame| {
        frames.push(frame);
        Ok(())
    };
    pipeline.prepare()?.run(&Interrupt::new(), &mut keep)?;
    Ok(frames)
}

fn append_stage(stage: &str, frames: Vec<Frame>, make: impl Fn(Command) -> Frame) -> Vec<Frame> {
    let appended = |frame| match frame {
        Frame::Hello(mut hello) => {
            hello.upstream.push(hello.stage);
            Hello { stage: stage.to_owned(), ..*hello }.into()
        }
        Frame::Summary(mut summary) => {
            summary.stages.push(StageSummary { stage: stage.to_owned(), ..StageSummary::default() });
            summary.into()
        }
        Frame::Command(command) => make(*command),
        other => other,
    };
    frames.into_iter().map(appended).collect()
}

fn corrected(command: Command) -> Correction {
    let epsilons = [(0, 0.75), (-1, 0.25)];
    Correction::unshifted(command, epsilons.map(|(epsilon, weight)| WeightedEpsilon { epsilon, weight }).into())
}

fn identified(command: Command) -> Identification {
    let candidate = |action: &str, epsilon, probability| Candidate {
        actions: Actions::from(vec![(action.into(), 1)]),
        epsilon,
        probability,
        likelihood: None,
    };
    let candidates = [candidate("on", 0, 0.75), candidate("off", -1, 0.25)].into();
    Identification { candidates, candidate_count: 2, listed: 2, ..Identification::unanswered(command) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulated_stream_holds_the_kind_that_a_stage_consumes() {
        for kind in ConsumedKind::value_variants().iter().copied() {
            let recorded = RecordedStream::simulated(kind).unwrap();
            let (rows, bytes) = recorded.consumed(kind);
            let is_head = kind == ConsumedKind::Nothing;
            assert!(is_head == (rows == 0) && is_head == (bytes == 0), "{kind:?}: {rows} {bytes}");
            assert_eq!(recorded.hello.upstream.len() + usize::from(!is_head), recorded.summary.stages.len());
            let (read, _) = decode(&encode(&recorded.frames));
            assert_eq!(read, recorded.frames, "{kind:?}");
        }
    }

    #[test]
    fn some_commands_have_several_records() {
        let recorded = RecordedStream::simulated(ConsumedKind::Record).unwrap();
        let split = recorded.frames.windows(2).filter(|pair| match pair {
            [Frame::Record(one), Frame::Record(other)] => {
                one.time_ns == other.time_ns && one.direction == other.direction
            }
            _ => false,
        });
        assert!(split.count() >= 3);
    }
}
