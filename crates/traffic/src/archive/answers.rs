//! The answers of a point: the stages behind the records, and the partitions they fill, by gateway and day, as Hive,
//! DuckDB, Polars and Spark read them. Each partition has one file of a point. Answers are collected as frames in a file
//! for each; one after the other becomes a part. So memory does not grow with the number of gateways and days.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::mem;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use sizeleak_frame::{Flow, Frame, FrameReader, FrameSink, FrameWriter, Hello, Identification, Session, Summary};
use sizeleak_output::{KindSelection, OutputWriter, TextStyle};
use sizeleak_pipeline::{Pipeline, RunEnding, SavedStream};
use sizeleak_platform::runtime::Interrupt;
use sizeleak_platform::telemetry::{Tally, log};
use sizeleak_text::utc;

use crate::archive::description::{ANSWER, AnswersDescription, PartFormat};
use crate::archive::layout::{Layout, has_length, remove_file};

const COMMAND_STAGE: &str = "command-segmenter";

/// Answers whose parts are written, but not where they belong.
pub(crate) struct StagedAnswers {
    /// What they are, without `parts`.
    description: AnswersDescription,
    /// The places of the parts below `identifications`, and where they are now.
    parts: Vec<(PathBuf, PathBuf)>,
}

/// The most parcels of frames that wait between two stages: answers with all their candidates are large.
const MAX_WAITING: usize = 1;

const RECORD_STAGE: &str = "record-sizer";

/// Runs the stages behind the one that makes records over those of a point, which are in the files `records`, one after
/// another. `key` is what the answers depend on.
pub(crate) fn make(
    layout: &Layout,
    pipeline: &Pipeline,
    point: &str,
    records: &[PathBuf],
    key: Option<String>,
    format: PartFormat,
    interrupt: &Interrupt,
) -> Result<StagedAnswers, String> {
    let mut pipeline = pipeline.clone();
    pipeline.settings.queue_depth = pipeline.settings.queue_depth.min(MAX_WAITING);
    let folder = layout.staging().join(point);
    let of_folder = |error: io::Error| format!("{}: {error}", folder.display());
    let stages = pipeline.resolved_stages();
    let record_stage = stages.iter().position(|stage| stage.entry.name == RECORD_STAGE).unwrap_or_default();
    let stream = SavedStream::joined(records, interrupt).map_err(|error| error.to_string())?;
    let run = pipeline.prepare_from(Some((record_stage, stream))).map_err(|error| error.to_string())?;
    fs::create_dir(&folder).map_err(of_folder)?;
    let partitions = Partitions::new(folder.clone(), format);
    let mut sink = AnswerSink { partitions, identifications: 0, notices: Tally::default() };
    let report = run.run(&interrupt.of_part(), &mut sink).map_err(|error| error.to_string())?;
    if report.ending != RunEnding::Done {
        return Err("the run was stopped".to_owned());
    }
    let stages = report.summary.map(|summary| summary.stages).unwrap_or_default();
    let segmenter = stages.iter().find(|stage| stage.stage == COMMAND_STAGE);
    let commands = segmenter.and_then(|stage| stage.counters.get("commands").copied());
    let AnswerSink { partitions, identifications, notices } = sink;
    let parts = partitions.finish(&part_name(point, format)).map_err(of_folder)?;
    let notices = notices.iter().map(|(what, times)| (what.to_owned(), times)).collect();
    let description = AnswersDescription { key, format, commands, identifications, notices, parts: BTreeMap::new() };
    Ok(StagedAnswers { description, parts })
}

fn part_name(point: &str, format: PartFormat) -> String {
    format!("part-{point}.{}", format.extension())
}

impl StagedAnswers {
    /// Moves the parts to their places, and removes those of the point that are left of earlier answers.
    pub(crate) fn publish(mut self, layout: &Layout, point: &str) -> io::Result<AnswersDescription> {
        let root = layout.identifications();
        let mut places = BTreeSet::new();
        for (part, now) in self.parts {
            let place = root.join(&part);
            self.description.parts.insert(part.to_string_lossy().into_owned(), now.metadata()?.len());
            Layout::publish(&now, &place)?;
            places.insert(place);
        }
        remove_parts(layout, point, &places)?;
        fs::remove_dir(layout.staging().join(point))?;
        Ok(self.description)
    }
}

pub(crate) fn are_there(layout: &Layout, answers: &AnswersDescription) -> bool {
    let mut parts = answers.parts.iter();
    parts.all(|(place, bytes)| has_length(&layout.identifications().join(place), *bytes))
}

pub(crate) fn remove_parts(layout: &Layout, point: &str, kept: &BTreeSet<PathBuf>) -> io::Result<()> {
    for gateway in folders_in(&layout.identifications())? {
        for day in folders_in(&gateway)? {
            let names = PartFormat::ALL.iter().map(|format| day.join(part_name(point, *format)));
            for part in names.filter(|part| !kept.contains(part)) {
                remove_file(&part)?;
            }
            // One that holds something stays.
            _ = fs::remove_dir(&day);
        }
        _ = fs::remove_dir(&gateway);
    }
    Ok(())
}

fn folders_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        // Another point has removed it because it was empty.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let paths: io::Result<Vec<PathBuf>> = entries.map(|entry| Ok(entry?.path())).collect();
    Ok(paths?.into_iter().filter(|path| path.is_dir()).collect())
}

struct AnswerSink {
    partitions: Partitions,
    identifications: u64,
    notices: Tally,
}

impl FrameSink for AnswerSink {
    fn take(&mut self, frames: &mut Vec<Frame>) -> io::Result<()> {
        for frame in frames.drain(..) {
            match frame {
                Frame::Flow(flow) => self.partitions.describe_flow(flow),
                Frame::Session(session) => self.partitions.describe_session(session),
                Frame::Notice(notice) => {
                    self.notices.add(&notice.what, 1);
                    log::notice(&notice);
                }
                Frame::Identification(answer) => {
                    self.identifications += 1;
                    self.partitions.add(answer)?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

const MAX_WAITING_BYTES: usize = 2 << 20;

/// At most this many flows are remembered; beyond that the one with the lowest number is forgotten.
const MAX_FLOWS: usize = 100_000;

const DAY_NS: i64 = 86_400_000_000_000;

/// How Hive names a partition of rows without a value.
const NO_VALUE: &str = "__HIVE_DEFAULT_PARTITION__";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PartitionKey {
    gateway: Option<IpAddr>,
    /// Days since 1970 in UTC.
    day: i64,
}

impl PartitionKey {
    fn folder(&self) -> PathBuf {
        let gateway = self.gateway.map_or_else(|| NO_VALUE.to_owned(), |it| it.to_string().replace(':', "%3A"));
        let day = utc(self.day.saturating_mul(DAY_NS));
        Path::new(&format!("gateway={gateway}")).join(format!("day={}", day.get(..10).unwrap_or(NO_VALUE)))
    }
}

#[derive(Debug, Default)]
struct KnownFlow {
    flow: Option<Box<Flow>>,
    session: Option<Box<Session>>,
}

impl KnownFlow {
    fn frames(&self) -> impl Iterator<Item = Frame> {
        let flow = self.flow.clone().map(Frame::Flow);
        flow.into_iter().chain(self.session.clone().map(Frame::Session))
    }
}

struct Partition {
    number: usize,
    /// The flow of the last answer, which has been described.
    described: Option<u64>,
    waiting: Vec<u8>,
}

pub(crate) struct Partitions {
    folder: PathBuf,
    format: PartFormat,
    flows: BTreeMap<u64, KnownFlow>,
    by_key: BTreeMap<PartitionKey, Partition>,
    waiting_bytes: usize,
}

impl Partitions {
    pub(crate) fn new(folder: PathBuf, format: PartFormat) -> Self {
        Self { folder, format, flows: BTreeMap::new(), by_key: BTreeMap::new(), waiting_bytes: 0 }
    }

    pub(crate) fn describe_flow(&mut self, flow: Box<Flow>) {
        let number = flow.flow;
        self.known(number).flow = Some(flow);
    }

    pub(crate) fn describe_session(&mut self, session: Box<Session>) {
        let number = session.flow;
        self.known(number).session = Some(session);
    }

    fn known(&mut self, flow: u64) -> &mut KnownFlow {
        if self.flows.len() >= MAX_FLOWS && !self.flows.contains_key(&flow) {
            self.flows.pop_first();
        }
        self.flows.entry(flow).or_default()
    }

    pub(crate) fn add(&mut self, answer: Box<Identification>) -> io::Result<()> {
        let flow = answer.command.flow;
        let gateway = self.flows.get(&flow).and_then(|known| known.flow.as_ref()).map(|flow| flow.gateway);
        let key = PartitionKey { gateway, day: answer.command.time_ns.div_euclid(DAY_NS) };
        let number = self.by_key.len();
        let partition = match self.by_key.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let mut waiting = Vec::new();
                self.waiting_bytes += append(&mut waiting, [Hello::of("archive").into()])?;
                new.insert(Partition { number, described: None, waiting })
            }
        };
        let is_new = partition.described.replace(flow) != Some(flow);
        let known = self.flows.get(&flow).filter(|_| is_new);
        let frames = known.into_iter().flat_map(KnownFlow::frames).chain([Frame::Identification(answer)]);
        self.waiting_bytes += append(&mut partition.waiting, frames)?;
        if self.waiting_bytes > MAX_WAITING_BYTES { self.spill() } else { Ok(()) }
    }

    fn spill(&mut self) -> io::Result<()> {
        for Partition { number, waiting, .. } in self.by_key.values_mut() {
            if !waiting.is_empty() {
                let path = frames_path(&self.folder, *number);
                // Taking it also gives the memory back.
                File::options().create(true).append(true).open(path)?.write_all(&mem::take(waiting))?;
            }
        }
        self.waiting_bytes = 0;
        Ok(())
    }

    /// Ends the part of each partition, called `name`. Returns the places of the parts below `identifications` with
    /// where they are now.
    pub(crate) fn finish(mut self, name: &str) -> io::Result<Vec<(PathBuf, PathBuf)>> {
        for partition in self.by_key.values_mut() {
            append(&mut partition.waiting, [Frame::Summary(Summary::default())])?;
        }
        self.spill()?;
        let mut parts = Vec::new();
        for (key, Partition { number, .. }) in &self.by_key {
            let path = self.folder.join(format!("{number}.{}", self.format.extension()));
            let selection = KindSelection::Kinds(vec![ANSWER.to_owned()]);
            let file = File::create_new(&path)?;
            let mut part = OutputWriter::new(self.format.output(), selection, TextStyle::default(), file.try_clone()?)?;
            let collected = frames_path(&self.folder, *number);
            let mut reader = FrameReader::new(File::open(&collected)?);
            while let Some(frame) = reader.next_frame().map_err(io::Error::other)? {
                part.write(&frame)?;
            }
            part.finish()?;
            file.sync_all()?;
            fs::remove_file(&collected)?;
            parts.push((key.folder().join(name), path));
        }
        Ok(parts)
    }
}

fn frames_path(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("{number}.frames"))
}

fn append(waiting: &mut Vec<u8>, frames: impl IntoIterator<Item = Frame>) -> io::Result<usize> {
    let before = waiting.len();
    let mut writer = FrameWriter::new(&mut *waiting);
    frames.into_iter().try_for_each(|frame| writer.write(&frame)).and_then(|()| writer.flush())?;
    drop(writer);
    Ok(waiting.len() - before)
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::{Command, Transport};

    use super::*;

    fn flow(flow: u64, gateway: &str) -> Flow {
        let (gateway, service) = (gateway.parse().unwrap(), "10.0.0.1:443".parse().unwrap());
        Flow::new(flow, gateway, service, Transport::Tcp)
    }

    fn answer(flow: u64, time_ns: i64) -> Identification {
        Identification::unanswered(Command { time_ns, end_ns: time_ns, flow, ..Command::default() })
    }

    #[test]
    fn answers_are_parted_by_gateway_and_day_in_any_order() {
        let folder = tempfile::tempdir().unwrap();
        let mut partitions = Partitions::new(folder.path().to_owned(), PartFormat::Ndjson);
        partitions.describe_flow(flow(1, "192.168.1.20").into());
        partitions.describe_flow(flow(2, "fe80::1").into());
        for (flow, time_ns) in [(1, 0), (2, DAY_NS - 1), (1, DAY_NS), (3, 5), (1, 1), (2, DAY_NS), (3, 3 * DAY_NS)] {
            partitions.add(answer(flow, time_ns).into()).unwrap();
            partitions.spill().unwrap();
        }
        let parts = partitions.finish("part-x.ndjson").unwrap();
        let lines = |now: &Path| fs::read_to_string(now).unwrap().lines().count();
        let shown: Vec<_> = parts.iter().map(|(place, now)| (place.to_str().unwrap(), lines(now))).collect();
        let expected = [
            ("gateway=__HIVE_DEFAULT_PARTITION__/day=1970-01-01/part-x.ndjson", 1),
            ("gateway=__HIVE_DEFAULT_PARTITION__/day=1970-01-04/part-x.ndjson", 1),
            ("gateway=192.168.1.20/day=1970-01-01/part-x.ndjson", 2),
            ("gateway=192.168.1.20/day=1970-01-02/part-x.ndjson", 1),
            ("gateway=fe80%3A%3A1/day=1970-01-01/part-x.ndjson", 1),
            ("gateway=fe80%3A%3A1/day=1970-01-02/part-x.ndjson", 1),
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn frames_that_wait_are_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let mut partitions = Partitions::new(folder.path().to_owned(), PartFormat::Parquet);
        for number in 0..200_000_u64 {
            let gateway = std::net::Ipv4Addr::from_bits(number as u32).to_string();
            partitions.describe_flow(flow(number, &gateway).into());
            partitions.add(answer(number, 0).into()).unwrap();
            assert!(partitions.waiting_bytes <= MAX_WAITING_BYTES);
            if folder.path().join("0.frames").exists() {
                return;
            }
        }
        panic!("nothing was written");
    }
}
