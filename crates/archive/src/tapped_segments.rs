//! The segments that several taps of a point captured, merged into one stream: what the stages behind `flow-filter` read.
//!
//! The captures of each tap are read twice: first to compare the taps, one after another; then all at once, each on
//! threads of its own, through pipes into the merging.

use std::io::{self, PipeReader, PipeWriter};
use std::path::PathBuf;
use std::thread::{self, ScopedJoinHandle};

use sizeleak_frame::{Frame, FrameSink, FrameWriter};
use sizeleak_pipeline::{ConfigError, Pipeline, PreparedRun, RunEnding, SavedStream};
use sizeleak_platform::runtime::Interrupt;
use sizeleak_platform::telemetry::Progress;

use crate::description::{DescribedFile, TapDescription, TapFiles};
use crate::error::io_error;
use crate::read_share::ReadShare;
use crate::tap_streams::{MergedStream, MergedTaps, TapClock, TapCounts, TapPlan, TapProfile};

/// The stage that makes segments, and its option that a capture without a packet of the gateway is no error.
const FLOW_FILTER: &str = "flow-filter";
const ALLOW_ABSENT: &str = "allow-absent";

/// Why there is no result of a run that the user ended.
const STOPPED: &str = "the run was stopped";

/// The captures of one tap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TapCaptures {
    /// Its name.
    pub(crate) name: String,
    /// Its captures; empty if none of its files has a packet.
    pub(crate) captures: Vec<PathBuf>,
}

impl TapCaptures {
    /// Those of these captures that are of a tap.
    pub(crate) fn of(tap: &TapFiles, captures: &[DescribedFile]) -> Self {
        let captures = tap.captures(captures).map(|capture| PathBuf::from(&capture.file.path));
        Self { name: tap.name.clone(), captures: captures.collect() }
    }
}

/// Lets `read` read the merged segments of taps, as this pipeline makes them. Returns what it returns, and what was found
/// out about each tap.
///
/// # Errors
/// One sentence.
pub(crate) fn read_merged<T>(
    pipeline: &Pipeline,
    all: &[TapCaptures],
    progress: &Progress,
    interrupt: &Interrupt,
    read: impl FnOnce(SavedStream) -> Result<T, String>,
) -> Result<(T, Vec<TapDescription>), String> {
    // Without a packet there is nothing to merge.
    let taps: Vec<&TapCaptures> = all.iter().filter(|tap| !tap.captures.is_empty()).collect();
    let runs = TapRuns::new(pipeline, &taps, interrupt)?;
    let plan = TapPlan::of(runs.profiles()?);
    let clocks: Vec<TapClock> = plan.clocks().cloned().collect();
    let prepared = taps.iter().map(|tap| runs.prepare(tap)).collect::<Result<Vec<_>, _>>()?;
    thread::scope(|scope| {
        let (mut streams, mut running) = (Vec::new(), Vec::new());
        for (tap, prepared) in taps.iter().zip(prepared) {
            let (reader, writer) = io::pipe().map_err(|error| format!("no pipe can be made: {error}"))?;
            streams.push(reader);
            running.push(scope.spawn(move || write_segments(prepared, tap, writer, progress, interrupt)));
        }
        // Whatever fails, all pipes end before the threads are waited for.
        let outcome = merge(plan, streams, read);
        let endings: Vec<_> = running.into_iter().map(end).collect();
        let (read, counts) = first_cause(endings, outcome)?;
        let mut found = clocks.into_iter().zip(counts);
        let described = all.iter().map(|tap| {
            let found = if tap.captures.is_empty() { None } else { found.next() };
            let (clock, counts) = found.unwrap_or_default();
            TapDescription { name: tap.name.clone(), captures: tap.captures.len() as u64, clock, counts }
        });
        Ok((read, described.collect()))
    })
}

/// The first two stages over the captures of each tap.
struct TapRuns<'a> {
    taps: &'a [&'a TapCaptures],
    stages: Pipeline,
    /// Whether a tap may see nothing of the gateway, and all of them, too.
    may_all_be_absent: bool,
    interrupt: &'a Interrupt,
}

impl<'a> TapRuns<'a> {
    fn new(pipeline: &Pipeline, taps: &'a [&'a TapCaptures], interrupt: &'a Interrupt) -> Result<Self, String> {
        let absent = pipeline.option(FLOW_FILTER, ALLOW_ABSENT);
        let may_all_be_absent = absent.is_some_and(|option| option.as_bool() == Some(true));
        let stages = pipeline.until(FLOW_FILTER).and_then(|mut stages| {
            stages.set(FLOW_FILTER, ALLOW_ABSENT, true)?;
            Ok(stages)
        });
        Ok(Self { taps, stages: stages.map_err(|error| error.to_string())?, may_all_be_absent, interrupt })
    }

    fn prepare(&self, tap: &TapCaptures) -> Result<PreparedRun, String> {
        let mut stages = self.stages.clone();
        let prepared = stages.read_captures(&tap.captures).and_then(|()| stages.prepare());
        let mut prepared = prepared.map_err(|error: ConfigError| error.to_string())?;
        // What is missing is in the manifest.
        prepared.accept_damage();
        Ok(prepared)
    }

    /// What each tap saw.
    fn profiles(&self) -> Result<Vec<TapProfile>, String> {
        let mut profiles = Vec::new();
        for tap in self.taps {
            let mut profile = TapProfile::new(tap.name.clone());
            let mut sink = |frame: Frame| {
                profile.add(&frame);
                Ok(())
            };
            if run(self.prepare(tap)?, tap, self.interrupt, &mut sink)? != RunEnding::Done {
                return Err(STOPPED.to_owned());
            }
            profiles.push(profile);
        }
        if !self.may_all_be_absent && profiles.iter().all(|profile| profile.segments() == 0) {
            return Err(
                "no packet of any tap is from or to the gateway; `sizeleak survey CAPTURE` says which addresses \
                        look like gateways"
                    .to_owned(),
            );
        }
        Ok(profiles)
    }
}

/// Merges the streams in pipes.
fn merge<T>(
    plan: TapPlan,
    streams: Vec<PipeReader>,
    read: impl FnOnce(SavedStream) -> Result<T, String>,
) -> Result<(T, Vec<TapCounts>), String> {
    let (stream, counts) = MergedStream::new(MergedTaps::new(plan, streams));
    let saved = SavedStream::of_reader("the merged taps".to_owned(), Box::new(stream));
    let read = read(saved.map_err(|error| error.to_string())?)?;
    Ok((read, counts.try_recv().map_err(|_| "the merged taps were not read to their end".to_owned())?))
}

/// What the merging came to, or why a tap failed, which may have ended it.
fn first_cause<T>(endings: Vec<Result<RunEnding, String>>, outcome: Result<T, String>) -> Result<T, String> {
    let endings = endings.into_iter().collect::<Result<Vec<_>, _>>()?;
    outcome.and_then(|merged| {
        let is_whole = endings.iter().all(|ending| *ending == RunEnding::Done);
        if is_whole { Ok(merged) } else { Err(STOPPED.to_owned()) }
    })
}

/// Waits for the thread of a tap.
fn end(running: ScopedJoinHandle<'_, Result<RunEnding, String>>) -> Result<RunEnding, String> {
    running.join().unwrap_or_else(|_| Err("the thread of a tap panicked: this is a bug of sizeleak".to_owned()))
}

/// Runs the stages over the captures of a tap, and writes their output into a pipe.
fn write_segments(
    mut prepared: PreparedRun,
    tap: &TapCaptures,
    pipe: PipeWriter,
    progress: &Progress,
    interrupt: &Interrupt,
) -> Result<RunEnding, String> {
    let read = ReadShare::of(&mut prepared, progress);
    let mut sink = SegmentSink { writer: FrameWriter::new(pipe), read };
    let ending = run(prepared, tap, interrupt, &mut sink)?;
    match sink.finish() {
        // Whoever does not read to the end says why.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.to_string()),
        _ => Ok(ending),
    }
}

/// Runs the stages over the captures of a tap.
fn run(
    prepared: PreparedRun,
    tap: &TapCaptures,
    interrupt: &Interrupt,
    sink: &mut dyn FrameSink,
) -> Result<RunEnding, String> {
    let report = prepared.run(interrupt, sink).map_err(|error| format!("tap `{}`: {error}", tap.name))?;
    Ok(report.ending)
}

/// Writes segments into a pipe, and counts what was read of the captures for them.
struct SegmentSink {
    writer: FrameWriter<PipeWriter>,
    read: ReadShare,
}

impl FrameSink for SegmentSink {
    fn take(&mut self, frames: &mut Vec<Frame>) -> io::Result<()> {
        self.read.add();
        for frame in frames.drain(..) {
            self.writer.write(&frame).map_err(io_error)?;
        }
        Ok(())
    }
}

impl SegmentSink {
    /// Ends the stream.
    fn finish(mut self) -> io::Result<()> {
        self.read.add();
        self.writer.flush().map_err(io_error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_cause_is_that_of_a_tap_and_what_was_stopped_is_no_result() {
        let err = |why: &str| why.to_owned();
        let done = || Ok(RunEnding::Done);
        assert_eq!(first_cause(vec![done(), done()], Ok(7)), Ok(7));
        assert_eq!(first_cause::<u8>(vec![done(), Err(err("tap `lan`"))], Err(err("cut"))), Err(err("tap `lan`")));
        let stopped = || vec![Ok(RunEnding::Closed), Ok(RunEnding::Interrupted)];
        assert_eq!(first_cause::<u8>(stopped(), Err(err("no space left"))), Err(err("no space left")));
        assert_eq!(first_cause(stopped(), Ok(7)), Err(err(STOPPED)));
    }
}
