//! The stream that a stage under check is fed: recorded by the user, or made here from a simulated home.

use std::fs::{self, File};
use std::path::Path;

use anyhow::{Context, anyhow};
use clap::ValueEnum;
use sizeleak_frame::{
    Actions, Candidate, Command, Correction, Frame, FrameReader, FrameWriter, Hello, Identification, StageSummary,
    Summary, WeightedEpsilon,
};
use sizeleak_runtime::Interrupt;
use sizeleak_simulator::{Scenario, simulate};

use super::super::Failure;
use sizeleak_pipeline::Pipeline;
use sizeleak_pipeline::recording::decompressed;
use sizeleak_pipeline::registry::STAGES;

/// What a stage works on, which is its place in a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Kind {
    /// It stands first and reads no frames
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

impl Kind {
    /// Its name in frames.
    pub(super) fn name(self) -> &'static str {
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
pub(super) struct Recorded {
    pub(super) frames: Vec<Frame>,
    pub(super) hello: Hello,
    pub(super) summary: Summary,
}

impl Recorded {
    /// A stream that the user recorded.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let name = path.display();
        let mut reader = FrameReader::new(File::open(path).and_then(decompressed).with_context(|| name.to_string())?);
        let mut frames = Vec::new();
        while let Some(frame) = reader.next_frame().with_context(|| name.to_string())? {
            frames.push(frame);
        }
        Self::of(frames)
    }

    /// What the stages before one that works on `kind` make of a small simulated home.
    pub(super) fn made(kind: Kind) -> Result<Self, Failure> {
        if kind == Kind::Nothing {
            let hello = Hello { schema: 1, stage: String::new(), version: String::new(), upstream: Vec::new() };
            return Ok(Self { frames: Vec::new(), hello, summary: Summary::default() });
        }
        let frames = match kind {
            Kind::Correction => then("epsilon-corrector", home("command")?, |command| corrected(command).into()),
            Kind::Identification => {
                let corrections = then("epsilon-corrector", home("command")?, Frame::from);
                then("decomposer", corrections, |command| identified(command).into())
            }
            _ => home(kind.name())?,
        };
        Self::of(frames)
    }

    fn of(frames: Vec<Frame>) -> Result<Self, Failure> {
        match (frames.first().cloned(), frames.last().cloned()) {
            (Some(Frame::Hello(hello)), Some(Frame::Summary(summary))) => Ok(Self { frames, hello: *hello, summary }),
            _ => Err(anyhow!("a recorded stream has a hello and a summary").into()),
        }
    }

    /// How many frames a stage that works on `kind` consumes of it, rows of batches counted, and for how much traffic
    /// they stand.
    pub(super) fn consumed_by(&self, kind: Kind) -> (u64, u64) {
        let consumed = self.frames.iter().filter(|frame| frame.kind() == kind.name());
        consumed.fold((0, 0), |(rows, bytes), frame| (rows + frame.rows(), bytes + frame.traffic_bytes()))
    }
}

/// Frames as the bytes of a stream.
pub(super) fn encode(frames: &[Frame]) -> Vec<u8> {
    let mut writer = FrameWriter::new(Vec::new());
    // Frames that were read, or built of such, can be written; a vector takes everything.
    let written = frames.iter().try_for_each(|frame| writer.write(frame)).and_then(|()| writer.flush());
    debug_assert!(written.is_ok(), "{written:?}");
    writer.output().clone()
}

/// What the stages up to the one that makes `kind` make of a small simulated home.
fn home(kind: &str) -> Result<Vec<Frame>, Failure> {
    let mut scenario = Scenario::default();
    scenario.learn.repeats = 1;
    scenario.learn.random = 0;
    scenario.test.commands = 12;
    let folder = tempfile::tempdir()?;
    let capture = folder.path().join("home.pcap");
    fs::write(&capture, simulate(&scenario, 1)?.test.pcap)?;
    let last = STAGES.iter().find(|entry| entry.makes == kind);
    let last = last.ok_or_else(|| anyhow!("no stage makes `{kind}`"))?;
    let mut pipeline = Pipeline::standard().until(last.name)?;
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

/// The stream behind a further stage, which makes something of every command there is.
fn then(stage: &str, frames: Vec<Frame>, make: impl Fn(Command) -> Frame) -> Vec<Frame> {
    let of = |frame| match frame {
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
    frames.into_iter().map(of).collect()
}

fn corrected(command: Command) -> Correction {
    let epsilons = [(0, 0.75), (-1, 0.25)];
    Correction { command, epsilons: epsilons.map(|(epsilon, weight)| WeightedEpsilon { epsilon, weight }).into() }
}

fn identified(command: Command) -> Identification {
    let candidate = |action: &str, epsilon, probability| Candidate {
        actions: Actions::from(vec![(action.into(), 1)]),
        epsilon,
        probability,
    };
    let candidates = [candidate("on", 0, 0.75), candidate("off", -1, 0.25)].into();
    Identification { command, candidates, candidate_count: 2, listed: 2, min_actions: None, max_actions: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_stream_for_every_place() {
        for kind in Kind::value_variants() {
            let recorded = Recorded::made(*kind).unwrap();
            let (rows, bytes) = recorded.consumed_by(*kind);
            let is_head = *kind == Kind::Nothing;
            assert!(is_head == (rows == 0) && is_head == (bytes == 0), "{kind:?}: {rows} {bytes}");
            assert_eq!(recorded.hello.upstream.len() + usize::from(!is_head), recorded.summary.stages.len());
            let bytes = encode(&recorded.frames);
            let mut reader = FrameReader::new(&*bytes);
            let read: Vec<Frame> = std::iter::from_fn(|| reader.next_frame().unwrap_or_default()).collect();
            assert_eq!(read, recorded.frames, "{kind:?}");
        }
    }
}
