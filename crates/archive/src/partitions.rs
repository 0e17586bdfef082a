//! Answers by gateway and day, as partitions that Hive, DuckDB, Polars and Spark read. Each partition has one file of a
//! point. The first ones are written while the point runs, and closed two days later. Answers of more partitions than that
//! are collected as frames in a file for each; one after the other becomes a part. So memory does not grow with the number
//! of gateways and days.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::mem;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use sizeleak_frame::{Flow, Frame, FrameReader, FrameWriter, Hello, Identification, SCHEMA, Session, Summary};
use sizeleak_output::{KindSelection, OutputWriter, TextStyle};
use sizeleak_text::utc;

use crate::description::{ANSWER, PartFormat};
use crate::error::io_error;

/// At most this many bytes of frames wait in memory.
const MAX_WAITING: usize = 2 << 20;

/// At most this many parts are written while a point runs: each one needs memory for its rows. Today and yesterday of two
/// gateways.
const MAX_OPEN: usize = 4;

/// At most this many flows are remembered; beyond that the one with the lowest number is forgotten.
const MAX_FLOWS: usize = 100_000;

const DAY_NS: i64 = 86_400_000_000_000;

/// How Hive names a partition of rows without a value.
const NO_VALUE: &str = "__HIVE_DEFAULT_PARTITION__";

/// The answers of one gateway on one day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PartitionKey {
    gateway: Option<IpAddr>,
    /// Days since 1970 in UTC.
    day: i64,
}

impl PartitionKey {
    /// The folder below `identifications`.
    fn folder(&self) -> PathBuf {
        let gateway = self.gateway.map_or_else(|| NO_VALUE.to_owned(), |it| it.to_string().replace(':', "%3A"));
        let day = utc(self.day.saturating_mul(DAY_NS));
        Path::new(&format!("gateway={gateway}")).join(format!("day={}", day.get(..10).unwrap_or(NO_VALUE)))
    }
}

/// What is known of a flow.
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

/// Answers that become one part.
struct Partition {
    /// The name of its file.
    number: usize,
    /// The flow of the last answer, which has been described.
    described: Option<u64>,
    rows: Rows,
}

enum Rows {
    /// They are written into the part as they come.
    Written(OutputWriter<File>),
    /// The part is whole.
    Closed,
    /// The part is made at the end, of a file of frames; these are not in it yet.
    Collected(Vec<u8>),
}

/// When parts are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writing {
    /// As far as possible while answers come, which have to be in order of time.
    AtOnce,
    /// When all answers are there.
    AtTheEnd,
}

/// Collects answers by partition.
pub(crate) struct Partitions {
    /// Where the parts are made.
    folder: PathBuf,
    format: PartFormat,
    writing: Writing,
    flows: BTreeMap<u64, KnownFlow>,
    by_key: BTreeMap<PartitionKey, Partition>,
    waiting_bytes: usize,
    /// Whether an answer came to a partition that was closed.
    is_late: bool,
}

impl Partitions {
    /// Collects in this folder, which exists.
    pub(crate) fn new(folder: PathBuf, format: PartFormat, writing: Writing) -> Self {
        let (flows, by_key) = (BTreeMap::new(), BTreeMap::new());
        Self { folder, format, writing, flows, by_key, waiting_bytes: 0, is_late: false }
    }

    /// Whether an answer was refused because it is days behind others: only [`Writing::AtTheEnd`] takes it.
    pub(crate) fn is_late(&self) -> bool {
        self.is_late
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
        if self.flows.len() >= MAX_FLOWS && !self.flows.contains_key(&flow) {
            self.flows.pop_first();
        }
        self.flows.entry(flow).or_default()
    }

    /// Adds an answer to its partition.
    pub(crate) fn add(&mut self, answer: Box<Identification>) -> io::Result<()> {
        let flow = answer.command.flow;
        let gateway = self.flows.get(&flow).and_then(|known| known.flow.as_ref()).map(|flow| flow.gateway);
        let key = PartitionKey { gateway, day: answer.command.time_ns.div_euclid(DAY_NS) };
        if !self.by_key.contains_key(&key) {
            self.begin(key)?;
        }
        let Some(partition) = self.by_key.get_mut(&key) else { return Ok(()) };
        let is_new = partition.described.replace(flow) != Some(flow);
        let known = self.flows.get(&flow).filter(|_| is_new);
        let mut frames = known.into_iter().flat_map(KnownFlow::frames).chain([Frame::Identification(answer)]);
        match &mut partition.rows {
            Rows::Written(part) => frames.try_for_each(|frame| part.write(&frame)),
            Rows::Closed => {
                self.is_late = true;
                Err(io::Error::other("an answer is days behind others"))
            }
            Rows::Collected(waiting) => {
                self.waiting_bytes += append(waiting, frames)?;
                if self.waiting_bytes > MAX_WAITING { self.spill() } else { Ok(()) }
            }
        }
    }

    /// Begins a partition, and closes those of two days before and earlier.
    fn begin(&mut self, key: PartitionKey) -> io::Result<()> {
        let mut open = 0;
        for (other, partition) in &mut self.by_key {
            if let Rows::Written(part) = &mut partition.rows {
                if other.day < key.day - 1 {
                    part.finish()?;
                    partition.rows = Rows::Closed;
                } else {
                    open += 1;
                }
            }
        }
        let number = self.by_key.len();
        let rows = if self.writing == Writing::AtOnce && open < MAX_OPEN {
            Rows::Written(self.part(number)?)
        } else {
            let mut waiting = Vec::new();
            self.waiting_bytes += append(&mut waiting, [hello()])?;
            Rows::Collected(waiting)
        };
        self.by_key.insert(key, Partition { number, described: None, rows });
        Ok(())
    }

    /// The file of a part, until it is moved to its place.
    fn part_path(&self, number: usize) -> PathBuf {
        self.folder.join(format!("{number}.{}", self.format.extension()))
    }

    fn part(&self, number: usize) -> io::Result<OutputWriter<File>> {
        let selection = KindSelection::Kinds(vec![ANSWER.to_owned()]);
        let file = File::create_new(self.part_path(number))?;
        OutputWriter::new(self.format.output(), selection, TextStyle::default(), file)
    }

    /// Writes what waits to the files of the partitions.
    fn spill(&mut self) -> io::Result<()> {
        for Partition { number, rows, .. } in self.by_key.values_mut() {
            if let Rows::Collected(waiting) = rows
                && !waiting.is_empty()
            {
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
            match &mut partition.rows {
                Rows::Written(part) => part.finish()?,
                Rows::Closed => {}
                Rows::Collected(waiting) => drop(append(waiting, [Frame::Summary(Summary::default())])?),
            }
        }
        self.spill()?;
        let mut parts = Vec::new();
        for (key, Partition { number, rows, .. }) in &self.by_key {
            if matches!(rows, Rows::Collected(_)) {
                let mut part = self.part(*number)?;
                let collected = frames_path(&self.folder, *number);
                let mut reader = FrameReader::new(File::open(&collected)?);
                while let Some(frame) = reader.next_frame().map_err(io::Error::other)? {
                    part.write(&frame)?;
                }
                part.finish()?;
                fs::remove_file(&collected)?;
            }
            let part = self.part_path(*number);
            File::open(&part)?.sync_all()?;
            parts.push((key.folder().join(name), part));
        }
        Ok(parts)
    }
}

/// The beginning of the frames of a partition.
fn hello() -> Frame {
    let (stage, version) = ("archive".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    Frame::Hello(Box::new(Hello { schema: SCHEMA, stage, version, upstream: Vec::new() }))
}

/// The file of a partition's frames.
fn frames_path(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("{number}.frames"))
}

/// Appends frames. Returns how many bytes they have.
fn append(waiting: &mut Vec<u8>, frames: impl IntoIterator<Item = Frame>) -> io::Result<usize> {
    let before = waiting.len();
    let mut writer = FrameWriter::new(&mut *waiting);
    frames.into_iter().try_for_each(|frame| writer.write(&frame)).and_then(|()| writer.flush()).map_err(io_error)?;
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

    fn partitions(folder: &Path, writing: Writing) -> Partitions {
        let mut partitions = Partitions::new(folder.to_owned(), PartFormat::Ndjson, writing);
        partitions.describe_flow(flow(1, "192.168.1.20").into());
        partitions.describe_flow(flow(2, "fe80::1").into());
        partitions
    }

    #[test]
    fn answers_are_parted_by_gateway_and_day_whenever_they_are_written() {
        let [at_once, at_the_end] = [Writing::AtOnce, Writing::AtTheEnd].map(|writing| {
            let folder = tempfile::tempdir().unwrap();
            let mut partitions = partitions(folder.path(), writing);
            for (flow, time_ns) in [(1, 0), (2, DAY_NS - 1), (1, DAY_NS), (3, 5), (1, 1), (2, DAY_NS), (3, 3 * DAY_NS)]
            {
                partitions.add(answer(flow, time_ns).into()).unwrap();
                partitions.spill().unwrap();
            }
            let parts = partitions.finish("part-x.ndjson").unwrap();
            let text = |(place, now): (PathBuf, PathBuf)| (place, fs::read_to_string(now).unwrap());
            parts.into_iter().map(text).collect::<Vec<_>>()
        });
        let shown: Vec<_> =
            at_once.iter().map(|(place, text)| (place.to_str().unwrap(), text.lines().count())).collect();
        let expected = [
            ("gateway=__HIVE_DEFAULT_PARTITION__/day=1970-01-01/part-x.ndjson", 1),
            ("gateway=__HIVE_DEFAULT_PARTITION__/day=1970-01-04/part-x.ndjson", 1),
            ("gateway=192.168.1.20/day=1970-01-01/part-x.ndjson", 2),
            ("gateway=192.168.1.20/day=1970-01-02/part-x.ndjson", 1),
            ("gateway=fe80%3A%3A1/day=1970-01-01/part-x.ndjson", 1),
            ("gateway=fe80%3A%3A1/day=1970-01-02/part-x.ndjson", 1),
        ];
        assert_eq!(shown, expected);
        assert_eq!(at_once, at_the_end);
    }

    #[test]
    fn answers_that_are_days_late_are_refused_where_parts_are_written_at_once() {
        for (writing, is_late) in [(Writing::AtOnce, true), (Writing::AtTheEnd, false)] {
            let folder = tempfile::tempdir().unwrap();
            let mut partitions = partitions(folder.path(), writing);
            let added =
                [0, DAY_NS, DAY_NS - 1, 2 * DAY_NS, 0].map(|time| partitions.add(answer(1, time).into()).is_ok());
            assert_eq!((added, partitions.is_late()), ([true, true, true, true, !is_late], is_late));
        }
    }

    #[test]
    fn what_waits_and_what_is_open_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let mut partitions = Partitions::new(folder.path().to_owned(), PartFormat::Parquet, Writing::AtOnce);
        for number in 0..200_000_u64 {
            let gateway = std::net::Ipv4Addr::from_bits(number as u32).to_string();
            partitions.describe_flow(flow(number, &gateway).into());
            partitions.add(answer(number, 0).into()).unwrap();
            assert!(partitions.waiting_bytes <= MAX_WAITING);
            let open = partitions.by_key.values().filter(|partition| matches!(partition.rows, Rows::Written(_)));
            assert!(number % 1000 > 0 || open.count() <= MAX_OPEN);
            if folder.path().join(format!("{MAX_OPEN}.frames")).exists() {
                return;
            }
        }
        panic!("nothing was written");
    }
}
