//! The units of a point, one after another: each continues the flows of the one before it. Of each the output of the first
//! three stages over its captures is kept, as a compressed frame stream, and the state in which that leaves the flows. A
//! unit that is there already is not read again.

use std::fs::{self, File};
use std::io::{self, Write};
use std::mem;

use blake3::Hash;
use sizeleak_frame::{Frame, FrameSink, FrameWriter, Summary};
use sizeleak_pipeline::recording::Recording;
use sizeleak_pipeline::{Checkpoint, Pipeline, PreparedRun, RunEnding, SavedStream};
use sizeleak_platform::runtime::Interrupt;
use sizeleak_platform::storage::make_private;
use sizeleak_platform::telemetry::{Progress, Telemetry};

use crate::archive::description::DescribedFile;
use crate::archive::found_file::check_unchanged;
use crate::archive::unit_store::{StoredState, UnitDescription, UnitStore, end_key, reading, records_key, unit_name};

const CAPTURE: &str = "capture";

/// Captures were written while they were read.
const OTHER_PACKETS: &str = "its captures have other packets than a moment ago";

pub(crate) struct RecordMaker<'a> {
    pub(crate) store: &'a UnitStore<'a>,
    pub(crate) stages: &'a Pipeline,
    pub(crate) progress: &'a Progress,
    pub(crate) interrupt: &'a Interrupt,
}

impl RecordMaker<'_> {
    /// Reads the captures of a unit, whose flows go on from the state `before`, and keeps its records and the state behind
    /// it. Nothing is kept after an error, which is one sentence.
    pub(crate) fn make(
        &self,
        key: &Hash,
        captures: &[DescribedFile],
        before: Option<&Checkpoint>,
    ) -> Result<(UnitDescription, Option<Checkpoint>), String> {
        let stages = reading(&self.for_silent_captures()?, captures)?;
        let mut prepared = stages.prepare().map_err(|error| error.to_string())?;
        continue_from(&mut prepared, &stages, before)?;
        let pending = prepared.leave_state(&stages).map_err(|error| error.to_string())?;
        let failure = prepared.accept_damage();
        let name = unit_name(captures.first().and_then(|first| first.head_ns), key);
        let (mut unit, summary) = self.write(name, key, prepared, || captures.iter().try_for_each(check_unchanged))?;
        if !has_all_packets(&summary, captures) {
            return Err(failure.take().unwrap_or_else(|| OTHER_PACKETS.to_owned()));
        }
        let state = pending.taken().ok_or("its state was not saved")?;
        let stored = self.write_state(&unit.name, &state)?;
        (unit.state, unit.captures) = (Some(stored), captures.to_vec());
        self.describe(&unit)?;
        Ok((unit, Some(state)))
    }

    /// The stages, for which a point without a packet of a gateway is nothing wrong: another point may have them.
    fn for_silent_captures(&self) -> Result<Pipeline, String> {
        let mut stages = self.stages.clone();
        stages.set("flow-filter", "allow-absent", true).map_err(|error| error.to_string())?;
        Ok(stages)
    }

    pub(crate) fn end(&self, key: &Hash, last: &Checkpoint) -> Result<UnitDescription, String> {
        let nothing = SavedStream::empty(CAPTURE).map_err(|error| error.to_string())?;
        let stages = self.for_silent_captures()?;
        let mut prepared = stages.prepare_from(Some((0, nothing))).map_err(|error| error.to_string())?;
        continue_from(&mut prepared, &stages, Some(last))?;
        let (unit, _) = self.write(unit_name(None, key), key, prepared, || Ok(()))?;
        self.describe(&unit)?;
        Ok(unit)
    }

    pub(crate) fn describe(&self, unit: &UnitDescription) -> Result<(), String> {
        self.store.describe(unit).map_err(self.of_target(&unit.name))
    }

    /// Runs the stages and writes their records, which are kept if `check` finds nothing. Returns a unit without captures
    /// and state.
    fn write(
        &self,
        name: String,
        key: &Hash,
        mut prepared: PreparedRun,
        check: impl FnOnce() -> Result<(), String>,
    ) -> Result<(UnitDescription, Summary), String> {
        let target = self.store.records(&name);
        let of_target = self.of_target(&name);
        fs::create_dir_all(&self.store.folder).map_err(&of_target)?;
        let staged = self.store.layout.staged(&target);
        let writer = Recording::of_frames(&staged).map_err(&of_target)?;
        let read = ReadShare::of(&mut prepared, self.progress);
        let mut sink = RecordSink { writer, records: 0, read };
        let report = prepared.run(&self.interrupt.of_part(), &mut sink).map_err(|error| error.to_string())?;
        let summary = report.summary.filter(|_| report.ending == RunEnding::Done).ok_or("the run was stopped")?;
        let records = sink.records;
        sink.finish().map_err(&of_target)?;
        let records_bytes = staged.metadata().map_err(&of_target)?.len();
        check()?;
        fs::rename(staged, target).map_err(&of_target)?;
        let (key, captures) = (key.to_string(), Vec::new());
        Ok((UnitDescription { name, key, captures, records, records_bytes, state: None }, summary))
    }

    fn write_state(&self, name: &str, state: &Checkpoint) -> Result<StoredState, String> {
        let content = state.to_bytes().map_err(|error| error.to_string())?;
        let digest = state.digest().map_err(|error| error.to_string())?;
        let target = self.store.state_file(name);
        let staged = self.store.layout.staged(&target);
        let written = File::create(&staged).and_then(|mut file| {
            make_private(&file)?;
            file.write_all(&content)?;
            fs::rename(staged, target)
        });
        written.map_err(self.of_target(name))?;
        Ok(StoredState { digest, bytes: content.len() as u64 })
    }

    fn of_target(&self, name: &str) -> impl Fn(io::Error) -> String + use<> {
        let target = self.store.records(name);
        move |error| format!("{} cannot be written: {error}", target.display())
    }
}

fn has_all_packets(summary: &Summary, captures: &[DescribedFile]) -> bool {
    let packets: u64 = captures.iter().map(|capture| capture.file.packets).sum();
    let read = summary.stages.iter().find(|stage| stage.stage == CAPTURE).map(|stage| stage.frames_in);
    read == Some(packets)
}

fn continue_from(prepared: &mut PreparedRun, stages: &Pipeline, before: Option<&Checkpoint>) -> Result<(), String> {
    before.map_or(Ok(()), |before| prepared.continue_from(stages, before)).map_err(|error| error.to_string())
}

/// Writes records, without what differs between two runs.
struct RecordSink {
    writer: FrameWriter<Recording>,
    records: u64,
    read: ReadShare,
}

impl FrameSink for RecordSink {
    fn take(&mut self, frames: &mut Vec<Frame>) -> io::Result<()> {
        self.read.add();
        for mut frame in frames.drain(..) {
            if let Frame::Summary(summary) = &mut frame {
                // Latencies are the one difference between two runs.
                for stage in &mut summary.stages {
                    stage.latency.clear();
                    stage.queue.clear();
                }
            }
            self.records += u64::from(matches!(frame, Frame::Record(_)));
            self.writer.write(&frame)?;
        }
        Ok(())
    }
}

impl RecordSink {
    fn finish(mut self) -> io::Result<()> {
        self.read.add();
        Recording::end(self.writer)
    }
}

pub(crate) struct ReadShare {
    read: Progress,
    added: u64,
    all: Progress,
}

impl ReadShare {
    pub(crate) fn of(run: &mut PreparedRun, all: &Progress) -> Self {
        let telemetry = Telemetry::new();
        run.report_to(&telemetry);
        Self { read: telemetry.progress().clone(), added: 0, all: all.clone() }
    }

    pub(crate) fn add(&mut self) {
        let read = self.read.read();
        self.all.add(read.saturating_sub(self.added));
        self.added = read;
    }
}

/// Where units end: before a capture that begins later than everything before it. Where captures are not read by the
/// times of their packets, all are one unit.
#[derive(Debug)]
pub(crate) struct UnitBounds {
    is_by_time: bool,
    latest_ns: Option<i64>,
}

impl UnitBounds {
    pub(crate) fn new(is_by_time: bool) -> Self {
        Self { is_by_time, latest_ns: None }
    }

    /// Whether a capture that begins at this time, and all later ones, do not overlap with those so far.
    pub(crate) fn is_before(&self, head_ns: Option<i64>) -> bool {
        self.is_by_time && head_ns.is_some_and(|head| self.latest_ns.is_some_and(|latest| head > latest))
    }

    pub(crate) fn add(&mut self, capture: &DescribedFile) {
        self.latest_ns = self.latest_ns.max(capture.file.last_ns);
    }
}

pub(crate) struct Chain<'a> {
    maker: RecordMaker<'a>,
    pub(crate) bounds: UnitBounds,
    next: Vec<DescribedFile>,
    units: Vec<UnitDescription>,
    /// The state behind the last unit, if that was processed now.
    state: Option<Checkpoint>,
}

impl<'a> Chain<'a> {
    pub(crate) fn new(maker: RecordMaker<'a>, bounds: UnitBounds) -> Self {
        Self { maker, bounds, next: Vec::new(), units: Vec::new(), state: None }
    }

    pub(crate) fn add(&mut self, capture: DescribedFile) {
        self.bounds.add(&capture);
        self.next.push(capture);
    }

    pub(crate) fn end(mut self) -> Result<Vec<UnitDescription>, String> {
        self.end_unit()?;
        let Some(state) = self.units.last().and_then(|last| last.state.clone()) else { return Ok(self.units) };
        let key = end_key(&state.digest);
        let end = if let Some(end) = self.maker.store.find(None, &key) {
            end
        } else {
            let last = self.last_state()?.ok_or("the flows have no state")?;
            self.maker.end(&key, &last)?
        };
        self.units.push(end);
        Ok(self.units)
    }

    /// Processes the captures of the present unit, unless their records are there.
    pub(crate) fn end_unit(&mut self) -> Result<(), String> {
        let captures = mem::take(&mut self.next);
        let Some(head_ns) = captures.first().map(|first| first.head_ns) else { return Ok(()) };
        let before = self.units.last().and_then(|unit| unit.state.as_ref()).map(|state| state.digest.as_str());
        let key = records_key(self.maker.stages, &captures, before)?;
        let unit = if let Some(known) = self.maker.store.find(head_ns, &key) {
            self.maker.progress.add(captures.iter().filter_map(|capture| capture.file.bytes).sum());
            self.state = None;
            self.renamed(known, captures)?
        } else {
            let before = self.last_state()?;
            let (unit, state) = self.maker.make(&key, &captures, before.as_ref())?;
            self.state = state;
            unit
        };
        self.units.push(unit);
        Ok(())
    }

    /// A unit whose captures may have other names now, which its records do not have.
    fn renamed(&self, known: UnitDescription, captures: Vec<DescribedFile>) -> Result<UnitDescription, String> {
        if known.captures == captures {
            return Ok(known);
        }
        let unit = UnitDescription { captures, ..known };
        self.maker.describe(&unit)?;
        Ok(unit)
    }

    /// The state behind the last unit; `None` if there is no unit. One that is damaged is made again.
    fn last_state(&mut self) -> Result<Option<Checkpoint>, String> {
        if let Some(state) = self.state.take() {
            return Ok(Some(state));
        }
        let mut damaged = self.units.len();
        let mut state = None;
        while let Some(unit) = damaged.checked_sub(1).and_then(|last| self.units.get(last)) {
            state = self.maker.store.state(unit);
            if state.is_some() {
                break;
            }
            damaged -= 1;
        }
        for unit in self.units.iter().skip(damaged) {
            let key = blake3::Hash::from_hex(&unit.key).map_err(|error| error.to_string())?;
            let (made, after) = self.maker.make(&key, &unit.captures, state.as_ref())?;
            if made.state != unit.state {
                return Err(format!("{} was made from the same captures with another result: remove it", unit.name));
            }
            state = after;
        }
        Ok(state)
    }
}
