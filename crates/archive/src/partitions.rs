//! Answers by gateway and day, as partitions that Hive, DuckDB, Polars and Spark read. While a point runs, the frames of
//! each partition are collected in a file of their own; one after the other becomes a part. So memory does not grow with
//! the number of gateways and days, and each partition has one file of a point.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, File};
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use sizeleak_frame::{Flow, Frame, FrameReader, FrameWriter, Hello, Identification, SCHEMA, Session, Summary};
use sizeleak_output::{KindSelection, OutputWriter, TextStyle};
use sizeleak_text::utc;

use crate::error::io_error;
use crate::part_format::{ANSWER, PartFormat};

/// At most this many bytes of frames wait in memory.
const MOST_WAITING: usize = 2 << 20;

/// At most this many flows are remembered; beyond that the one with the lowest number is forgotten.
const MOST_FLOWS: usize = 100_000;

/// How Hive names a partition of rows without a value.
const NO_VALUE: &str = "__HIVE_DEFAULT_PARTITION__";

/// The answers of one gateway on one day.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct PartitionKey {
    gateway: Option<IpAddr>,
    /// The day in UTC, as in `2026-01-06`.
    day: String,
}

impl PartitionKey {
    /// The folder below `identifications`.
    fn folder(&self) -> PathBuf {
        let gateway = self.gateway.map_or_else(|| NO_VALUE.to_owned(), |it| it.to_string().replace(':', "%3A"));
        Path::new(&format!("gateway={gateway}")).join(format!("day={}", self.day))
    }
}

/// What is known of a flow.
#[derive(Debug, Default)]
struct KnownFlow {
    flow: Option<Box<Flow>>,
    session: Option<Box<Session>>,
}

/// The frames of a partition that are not in its file yet.
#[derive(Debug)]
struct Waiting {
    /// The name of the file.
    number: usize,
    frames: Vec<u8>,
    /// The flow of the last answer, which has been described.
    described: Option<u64>,
}

/// The beginning of the frames of a partition.
fn hello() -> Frame {
    let (stage, version) = ("archive".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    Frame::Hello(Box::new(Hello { schema: SCHEMA, stage, version, upstream: Vec::new() }))
}

/// Collects answers by partition.
pub(crate) struct Partitions {
    /// Where the frames are collected.
    folder: PathBuf,
    flows: BTreeMap<u64, KnownFlow>,
    by_key: BTreeMap<PartitionKey, Waiting>,
    waiting_bytes: usize,
}

impl Partitions {
    /// Collects in this folder, which exists.
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, flows: BTreeMap::new(), by_key: BTreeMap::new(), waiting_bytes: 0 }
    }

    /// Remembers what a frame says of its flow.
    pub(crate) fn describe_flow(&mut self, flow: Box<Flow>) {
        let number = flow.flow;
        self.known(number).flow = Some(flow);
    }

    /// Remembers the session of a flow.
    pub(crate) fn describe_session(&mut self, session: Box<Session>) {
        let number = session.flow;
        self.known(number).session = Some(session);
    }

    fn known(&mut self, flow: u64) -> &mut KnownFlow {
        if self.flows.len() >= MOST_FLOWS && !self.flows.contains_key(&flow) {
            self.flows.pop_first();
        }
        self.flows.entry(flow).or_default()
    }

    /// Adds an answer to its partition.
    pub(crate) fn add(&mut self, answer: Box<Identification>) -> io::Result<()> {
        let flow = answer.command.flow;
        let known = self.flows.get(&flow);
        let gateway = known.and_then(|known| known.flow.as_ref()).map(|flow| flow.gateway);
        let day = utc(answer.command.time_ns).get(..10).unwrap_or(NO_VALUE).to_owned();
        let number = self.by_key.len();
        let entry = self.by_key.entry(PartitionKey { gateway, day });
        let is_new = matches!(entry, Entry::Vacant(_));
        let partition = entry.or_insert_with(|| Waiting { number, frames: Vec::new(), described: None });
        let before = partition.frames.len();
        let mut writer = FrameWriter::new(&mut partition.frames);
        if is_new {
            writer.write(&hello()).map_err(io_error)?;
        }
        if let Some(known) = known.filter(|_| partition.described.replace(flow) != Some(flow)) {
            if let Some(flow) = &known.flow {
                writer.write(&Frame::Flow(flow.clone())).map_err(io_error)?;
            }
            if let Some(session) = &known.session {
                writer.write(&Frame::Session(session.clone())).map_err(io_error)?;
            }
        }
        writer.write(&Frame::Identification(answer)).map_err(io_error)?;
        writer.flush().map_err(io_error)?;
        self.waiting_bytes += partition.frames.len().saturating_sub(before);
        if self.waiting_bytes > MOST_WAITING { self.spill() } else { Ok(()) }
    }

    /// Writes what waits to the files of the partitions.
    fn spill(&mut self) -> io::Result<()> {
        for waiting in self.by_key.values_mut().filter(|waiting| !waiting.frames.is_empty()) {
            let path = self.folder.join(format!("{}.frames", waiting.number));
            File::options().create(true).append(true).open(path)?.write_all(&waiting.frames)?;
            // Also gives the memory back.
            waiting.frames = Vec::new();
        }
        self.waiting_bytes = 0;
        Ok(())
    }

    /// Makes a part of each partition, called `name`. Returns the places of the parts below `identifications` with
    /// where they are now.
    pub(crate) fn finish(mut self, name: &str, format: PartFormat) -> io::Result<Vec<(PathBuf, PathBuf)>> {
        for waiting in self.by_key.values_mut() {
            let mut writer = FrameWriter::new(&mut waiting.frames);
            writer.write(&Frame::Summary(Summary::default())).map_err(io_error)?;
            writer.flush().map_err(io_error)?;
        }
        self.spill()?;
        let mut parts = Vec::new();
        for (key, Waiting { number, .. }) in &self.by_key {
            let collected = self.folder.join(format!("{number}.frames"));
            let part = self.folder.join(format!("{number}.{}", format.extension()));
            write_part(&collected, &part, format)?;
            fs::remove_file(&collected)?;
            parts.push((key.folder().join(name), part));
        }
        Ok(parts)
    }
}

/// Makes a part of the frames that were collected.
fn write_part(collected: &Path, part: &Path, format: PartFormat) -> io::Result<()> {
    let mut reader = FrameReader::new(File::open(collected)?);
    let file = File::create_new(part)?;
    let selection = KindSelection::Kinds(vec![ANSWER.to_owned()]);
    let mut writer = OutputWriter::new(format.output(), selection, TextStyle::default(), file.try_clone()?)?;
    while let Some(frame) = reader.next_frame().map_err(io::Error::other)? {
        writer.write(&frame)?;
    }
    writer.finish()?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::{Command, Transport};

    use super::*;

    fn flow(flow: u64, gateway: &str) -> Flow {
        let (gateway, service) = (gateway.parse().unwrap(), "10.0.0.1:443".parse().unwrap());
        Flow { flow, gateway, service, transport: Transport::Tcp, encapsulation: None, among_several: false }
    }

    fn answer(flow: u64, time_ns: i64) -> Identification {
        Identification::unanswered(Command { time_ns, end_ns: time_ns, flow, ..Command::default() })
    }

    #[test]
    fn answers_are_parted_by_gateway_and_day() {
        let folder = tempfile::tempdir().unwrap();
        let mut partitions = Partitions::new(folder.path().to_owned());
        partitions.describe_flow(flow(1, "192.168.1.20").into());
        partitions.describe_flow(flow(2, "fe80::1").into());
        let day = 86_400_000_000_000;
        for (flow, time_ns) in [(1, 0), (2, day - 1), (1, day), (3, 5), (1, 1)] {
            partitions.add(answer(flow, time_ns).into()).unwrap();
            partitions.spill().unwrap();
        }
        let parts = partitions.finish("part-x.ndjson", PartFormat::Ndjson).unwrap();
        let lines = |path: &Path| fs::read_to_string(path).unwrap().lines().count();
        let shown: Vec<_> = parts.iter().map(|(place, now)| (place.to_str().unwrap(), lines(now))).collect();
        let expected = [
            ("gateway=__HIVE_DEFAULT_PARTITION__/day=1970-01-01/part-x.ndjson", 1),
            ("gateway=192.168.1.20/day=1970-01-01/part-x.ndjson", 2),
            ("gateway=192.168.1.20/day=1970-01-02/part-x.ndjson", 1),
            ("gateway=fe80%3A%3A1/day=1970-01-01/part-x.ndjson", 1),
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn waiting_frames_are_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let mut partitions = Partitions::new(folder.path().to_owned());
        for flow in 0..200_000 {
            partitions.add(answer(flow, flow.cast_signed() * 1_000_000_000_000).into()).unwrap();
            assert!(partitions.waiting_bytes <= MOST_WAITING);
            if fs::read_dir(folder.path()).unwrap().next().is_some() {
                return;
            }
        }
        panic!("nothing was written");
    }
}
