//! Merges the streams of several taps into one, in the order of their times.
//!
//! Everything waits in a window of time before it goes on. What the primary tap of a flow captured is known as soon as it
//! enters the window; what another tap captured goes on only as far as it is not known when it leaves the window.

use std::collections::{HashSet, VecDeque};
use std::io::{self, BufRead, Cursor, Read};
use std::sync::mpsc::{Receiver, Sender, channel};

use serde::{Deserialize, Serialize};
use sizeleak_frame::{
    BATCH_BYTES, BatchLimit, Frame, FrameWriter, Hello, OwnedSegment, ReadError, SCHEMA, Segment, Segments,
    StageSummary, Summary, WriteError,
};
use thiserror::Error;

use crate::tap_streams::STAGE;
use crate::tap_streams::known_traffic::{KnownTraffic, Missing, part};
use crate::tap_streams::tap_plan::TapPlan;
use crate::tap_streams::tap_reader::{TapItem, TapReader};

/// How long everything waits, in nanoseconds: more than what is left of the clocks' differences, and jitter.
const WINDOW_NS: i64 = 1_000_000_000;

/// The most bytes of memory that wait; where traffic is heavier, the window is shorter.
const WINDOW_BYTES: usize = 16 << 20;

/// So many flows are remembered as announced.
const MAX_ANNOUNCED: usize = 1 << 17;

/// Why streams cannot be merged.
#[derive(Debug, Error)]
pub enum TapError {
    /// The stream of a tap cannot be read, or was cut.
    #[error("tap `{tap}`: {source}")]
    Read {
        /// The name of the tap.
        tap: String,
        /// What is wrong with it.
        source: ReadError,
    },
}

/// The merged stream, frame by frame.
pub struct MergedTaps<R> {
    plan: TapPlan,
    taps: Vec<TapReader<R>>,
    window: VecDeque<Waiting>,
    window_bytes: usize,
    known: KnownTraffic,
    announced: HashSet<u64>,
    counts: Vec<TapCounts>,
    /// Segments of the next batch.
    batch: Segments,
    frames: VecDeque<Frame>,
    state: State,
}

/// What waits in the window.
struct Waiting {
    tap: usize,
    position_ns: i64,
    item: TapItem,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    BeforeHello,
    Reading,
    Ended,
}

impl<R: Read> MergedTaps<R> {
    /// Merges the streams of taps, in the order of the plan.
    pub fn new(plan: TapPlan, streams: impl IntoIterator<Item = R>) -> Self {
        let clocks = plan.clocks().cloned();
        let taps: Vec<_> =
            streams.into_iter().zip(clocks).map(|(stream, clock)| TapReader::new(stream, clock)).collect();
        Self {
            counts: vec![TapCounts::default(); taps.len()],
            plan,
            taps,
            window: VecDeque::new(),
            window_bytes: 0,
            known: KnownTraffic::default(),
            announced: HashSet::new(),
            batch: Segments::new(),
            frames: VecDeque::new(),
            state: State::BeforeHello,
        }
    }

    /// The next frame; `None` at the end.
    ///
    /// # Errors
    /// [`TapError`], once.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, TapError> {
        while self.frames.is_empty() && self.state != State::Ended {
            match self.next_tap()? {
                _ if self.state == State::BeforeHello => self.begin(),
                Some((position_ns, tap)) => self.read(tap, position_ns),
                None => self.end(),
            }
        }
        Ok(self.frames.pop_front())
    }

    /// What became of the segments of each tap so far.
    pub fn counts(&self) -> &[TapCounts] {
        &self.counts
    }

    /// The tap that is behind all others, and its position. Of several, the first one.
    fn next_tap(&mut self) -> Result<Option<(i64, usize)>, TapError> {
        let mut next: Option<(i64, usize)> = None;
        for (index, tap) in self.taps.iter_mut().enumerate() {
            let position = tap.position().map_err(|source| {
                self.state = State::Ended;
                TapError::Read { tap: self.plan.names.get(index).cloned().unwrap_or_default(), source }
            })?;
            let position = position.map(|position_ns| (position_ns, index));
            next = match (next, position) {
                (Some(next), Some(position)) => Some(next.min(position)),
                (next, position) => next.or(position),
            };
        }
        Ok(next)
    }

    fn begin(&mut self) {
        let first = self.taps.iter().find_map(|tap| tap.hello.as_ref());
        let upstream = first.map(|hello| [&*hello.upstream, std::slice::from_ref(&hello.stage)].concat());
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let upstream = upstream.unwrap_or_default();
        self.frames.push_back(Hello { schema: SCHEMA, stage: STAGE.to_owned(), version, upstream }.into());
        self.frames.extend(self.plan.notices().map(Frame::from));
        self.state = State::Reading;
    }

    /// Lets the next item of a tap into the window, and lets out what has waited for long enough.
    fn read(&mut self, tap: usize, position_ns: i64) {
        let Some(item) = self.taps.get_mut(tap).and_then(TapReader::next_item) else { return };
        if let TapItem::Segment(owned) = &item {
            let segment = owned.segment();
            if self.plan.primaries.of_flow(segment.flow) == tap {
                self.known.add(&segment, position_ns);
            }
        }
        self.window_bytes += memory_bytes(&item);
        self.window.push_back(Waiting { tap, position_ns, item });
        while let Some(first) = self.window.front()
            && (first.position_ns.saturating_add(WINDOW_NS) < position_ns || self.window_bytes > WINDOW_BYTES)
        {
            self.let_out();
        }
    }

    /// Lets the first item out of the window.
    fn let_out(&mut self) {
        let Some(Waiting { tap, position_ns, item }) = self.window.pop_front() else { return };
        self.window_bytes -= memory_bytes(&item);
        self.known.forget_keys_before(position_ns.saturating_sub(WINDOW_NS));
        match item {
            TapItem::Segment(owned) => self.segment(tap, position_ns, &owned),
            TapItem::Other(Frame::Flow(flow)) => {
                if self.announced.len() >= MAX_ANNOUNCED {
                    self.announced.clear();
                }
                if self.announced.insert(flow.flow) {
                    self.send(Frame::Flow(flow));
                }
            }
            TapItem::Other(frame) => self.send(frame),
        }
    }

    /// Passes on a segment of a flow's primary tap, and of another one what is missing.
    fn segment(&mut self, tap: usize, position_ns: i64, owned: &OwnedSegment) {
        let segment = owned.segment();
        let is_primary = self.plan.primaries.of_flow(segment.flow) == tap;
        let missing = if is_primary { Missing::All } else { self.known.missing(&segment) };
        let Some(counts) = self.counts.get_mut(tap) else { return };
        let bytes = u64::from(segment.length);
        let new_bytes = match &missing {
            Missing::Nothing => 0,
            Missing::All => bytes,
            Missing::Parts(parts) => parts.iter().map(|part| u64::from(part.end - part.start)).sum(),
        };
        if is_primary {
            counts.primary_segments += 1;
            counts.primary_bytes += bytes;
        } else if missing == Missing::Nothing {
            counts.duplicate_segments += 1;
        } else {
            counts.filled_segments += 1;
        }
        if !is_primary {
            counts.filled_bytes += new_bytes;
            counts.duplicate_bytes += bytes.saturating_sub(new_bytes);
            self.known.add(&segment, position_ns);
        }
        match missing {
            Missing::Nothing => {}
            Missing::All => self.push(segment),
            Missing::Parts(parts) => parts.iter().for_each(|range| self.push(part(&segment, range))),
        }
    }

    fn push(&mut self, segment: Segment<'_>) {
        self.batch.push(segment);
        if self.batch.is_full(BatchLimit::Contract) {
            self.send_batch();
        }
    }

    /// Sends a frame behind the segments before it.
    fn send(&mut self, frame: Frame) {
        self.send_batch();
        self.frames.push_back(frame);
    }

    fn send_batch(&mut self) {
        if !self.batch.is_empty() {
            self.frames.push_back(std::mem::take(&mut self.batch).into());
        }
    }

    /// Lets everything out, and ends the stream.
    fn end(&mut self) {
        while !self.window.is_empty() {
            self.let_out();
        }
        let mut summary = Summary::default();
        for other in self.taps.iter_mut().filter_map(|tap| tap.summary.take()) {
            add(&mut summary, other);
        }
        summary.stages.push(self.own_summary());
        self.send(summary.into());
        self.state = State::Ended;
    }

    fn own_summary(&self) -> StageSummary {
        let all = TapCounts::sum(&self.counts);
        StageSummary {
            stage: STAGE.to_owned(),
            frames_in: all.segments(),
            frames_out: all.segments().saturating_sub(all.duplicate_segments),
            bytes_in: all.bytes(),
            counters: all.counters().map(|(name, count)| (name.to_owned(), count)).into(),
            ..StageSummary::default()
        }
    }
}

fn memory_bytes(item: &TapItem) -> usize {
    match item {
        TapItem::Segment(segment) => size_of::<Waiting>() + segment.memory_bytes(),
        TapItem::Other(_) => size_of::<Waiting>(),
    }
}

/// Adds what the stages of another tap did. Latencies are left out.
fn add(summary: &mut Summary, other: Summary) {
    for mut stage in other.stages {
        (stage.latency, stage.queue) = (Vec::new(), Vec::new());
        match summary.stages.iter_mut().find(|known| known.stage == stage.stage) {
            Some(known) => {
                known.frames_in = known.frames_in.saturating_add(stage.frames_in);
                known.frames_out = known.frames_out.saturating_add(stage.frames_out);
                known.bytes_in = known.bytes_in.saturating_add(stage.bytes_in);
                for (name, count) in stage.counters {
                    let sum = known.counters.entry(name).or_default();
                    *sum = sum.saturating_add(count);
                }
            }
            None => summary.stages.push(stage),
        }
    }
}

/// How many segments of a tap went on, and how many were there already. Bytes are of payload on the wire.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TapCounts {
    /// Segments of flows of which it is the primary tap: all go on.
    pub primary_segments: u64,
    /// The bytes in them.
    pub primary_bytes: u64,
    /// Segments of other flows that filled a gap.
    pub filled_segments: u64,
    /// The bytes that they filled.
    pub filled_bytes: u64,
    /// Segments of other flows that were dropped, because another tap saw them, too.
    pub duplicate_segments: u64,
    /// The bytes that were dropped, those of segments that filled a gap in part included.
    pub duplicate_bytes: u64,
}

impl TapCounts {
    /// All segments.
    pub(crate) fn segments(&self) -> u64 {
        self.primary_segments + self.filled_segments + self.duplicate_segments
    }

    /// All bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.primary_bytes + self.filled_bytes + self.duplicate_bytes
    }

    /// Those of all taps together.
    pub(crate) fn sum(taps: &[Self]) -> Self {
        let sum = |of: fn(&Self) -> u64| taps.iter().map(of).sum();
        Self {
            primary_segments: sum(|tap| tap.primary_segments),
            primary_bytes: sum(|tap| tap.primary_bytes),
            filled_segments: sum(|tap| tap.filled_segments),
            filled_bytes: sum(|tap| tap.filled_bytes),
            duplicate_segments: sum(|tap| tap.duplicate_segments),
            duplicate_bytes: sum(|tap| tap.duplicate_bytes),
        }
    }

    /// The counters of the merged stream's summary.
    pub(crate) fn counters(&self) -> [(&'static str, u64); 4] {
        [
            ("duplicate_segments", self.duplicate_segments),
            ("duplicate_bytes", self.duplicate_bytes),
            ("filled_segments", self.filled_segments),
            ("filled_bytes", self.filled_bytes),
        ]
    }
}

/// The bytes of a merged stream.
pub struct MergedStream<R> {
    taps: MergedTaps<R>,
    /// Takes the counts at the end.
    counts: Sender<Vec<TapCounts>>,
    /// The next bytes.
    bytes: Cursor<Vec<u8>>,
}

impl<R: Read> MergedStream<R> {
    /// The bytes of this stream. What became of the segments of each tap is received at its end.
    pub fn new(taps: MergedTaps<R>) -> (Self, Receiver<Vec<TapCounts>>) {
        let (counts, counted) = channel();
        (Self { taps, counts, bytes: Cursor::default() }, counted)
    }

    /// The next frames as bytes; none at the end.
    fn next_bytes(&mut self) -> io::Result<Vec<u8>> {
        let mut writer = FrameWriter::new(Vec::new());
        while writer.output().len() < BATCH_BYTES {
            let Some(frame) = self.taps.next_frame().map_err(error_of_tap)? else {
                // Nobody may want to know.
                _ = self.counts.send(self.taps.counts().to_vec());
                break;
            };
            writer.write(&frame).map_err(error_of_frame)?;
        }
        writer.into_output().map_err(error_of_frame)
    }
}

impl<R: Read> Read for MergedStream<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.bytes.fill_buf()?.is_empty() {
            self.bytes = Cursor::new(self.next_bytes()?);
        }
        self.bytes.read(buffer)
    }
}

fn error_of_tap(error: TapError) -> io::Error {
    let TapError::Read { source, .. } = &error;
    let kind = if source.is_cut() { io::ErrorKind::UnexpectedEof } else { io::ErrorKind::InvalidData };
    io::Error::new(kind, error)
}

fn error_of_frame(error: WriteError) -> io::Error {
    match error {
        WriteError::Io(error) => error,
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests;
