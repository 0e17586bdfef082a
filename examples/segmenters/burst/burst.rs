//! Groups records into commands by the silence between them.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use sizeleak_frame::{Command, ContentType, Direction, Frame, Record};
use sizeleak_platform::runtime::{Emit, Stage, StageError};

pub(crate) const NAME: &str = "burst-segmenter";

/// A longer burst is more than one command: a command without end would hold back all later ones.
pub(crate) const LONGEST: Duration = Duration::from_secs(10);

/// Replies come within this time after a command.
const REPLIES: Duration = Duration::from_secs(3);

/// Records of one flow may be this much later than those of others, for example where the capture misses bytes.
const LATE: Duration = Duration::from_secs(3);

/// Commands that wait at once; above that, the first is emitted before all replies are counted.
const MOST: usize = 10_000;

/// When a command started, and a number that orders those of the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct BurstStart {
    time_ns: i64,
    serial: u64,
}

/// Finds commands among records.
pub(crate) struct BurstSegmenter {
    silence: i64,
    shortest: u32,
    /// Commands that may still get replies, in order of start.
    waiting: BTreeMap<BurstStart, Command>,
    /// The last of them on each flow. Only looked up, so the order of the table never shows.
    last: HashMap<u64, BurstStart>,
    serial: u64,
    emitted_early: u64,
}

impl BurstSegmenter {
    pub(crate) fn new(silence: Duration, shortest: u32) -> Self {
        let silence = nanoseconds(silence);
        Self { silence, shortest, waiting: BTreeMap::new(), last: HashMap::new(), serial: 0, emitted_early: 0 }
    }

    /// Adds a record to the last command of its flow, or starts the next one.
    fn add(&mut self, record: &Record) {
        let last = self.last.get(&record.flow).and_then(|start| self.waiting.get_mut(start));
        match last.filter(|last| continues(last, record, self.silence)) {
            Some(command) => {
                command.end_ns = record.time_ns;
                command.size = command.size.saturating_add(record.length.into());
                command.plaintext = command.plaintext.zip(record.plaintext).map(|(all, more)| sums(all, more));
                command.records = command.records.saturating_add(1);
            }
            None => self.start(record),
        }
    }

    fn start(&mut self, record: &Record) {
        self.serial += 1;
        let start = BurstStart { time_ns: record.start_ns, serial: self.serial };
        let command = Command {
            time_ns: record.start_ns,
            end_ns: record.time_ns,
            flow: record.flow,
            size: record.length.into(),
            plaintext: record.plaintext,
            records: 1,
            ..Command::default()
        };
        self.waiting.insert(start, command);
        self.last.insert(record.flow, start);
    }

    /// Counts a record as a reply to the last command of its flow.
    fn count_reply(&mut self, record: &Record) {
        let last = self.last.get(&record.flow).and_then(|start| self.waiting.get_mut(start));
        let is_reply = |last: &&mut Command| record.start_ns.saturating_sub(last.end_ns) <= nanoseconds(REPLIES);
        if let Some(command) = last.filter(is_reply) {
            command.replies = command.replies.saturating_add(1);
            command.reply_bytes = command.reply_bytes.saturating_add(record.length.into());
        }
    }

    /// Emits the commands that ended before a time, in order of start.
    fn emit_before(&mut self, time_ns: i64, out: &mut dyn Emit) -> Result<(), StageError> {
        loop {
            let is_full = self.waiting.len() > MOST;
            let first = self.waiting.first_entry().filter(|first| is_full || first.get().end_ns < time_ns);
            let Some(first) = first else { return Ok(()) };
            let (start, command) = first.remove_entry();
            self.emitted_early += u64::from(command.end_ns >= time_ns);
            if self.last.get(&command.flow) == Some(&start) {
                self.last.remove(&command.flow);
            }
            out.emit(command.into())?;
        }
    }
}

impl Stage for BurstSegmenter {
    const NAME: &'static str = NAME;
    type Input = Record;

    fn process(&mut self, record: Record, out: &mut dyn Emit) -> Result<(), StageError> {
        let is_data = record.content_type == ContentType::ApplicationData && !record.handshake;
        if !is_data || record.length < self.shortest {
            return Ok(());
        }
        match record.direction {
            Direction::ToGateway => self.add(&record),
            Direction::FromGateway => self.count_reply(&record),
        }
        self.emit_before(record.time_ns.saturating_sub(nanoseconds(REPLIES + LATE)), out)
    }

    fn finish(&mut self, out: &mut dyn Emit) -> Result<(), StageError> {
        for command in std::mem::take(&mut self.waiting).into_values() {
            out.emit(Frame::from(command))?;
        }
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("told_early", self.emitted_early)]
    }
}

/// Whether a record continues a command.
fn continues(command: &Command, record: &Record, silence: i64) -> bool {
    let pause = record.start_ns.saturating_sub(command.end_ns);
    pause <= silence && record.time_ns.saturating_sub(command.time_ns) <= nanoseconds(LONGEST)
}

fn sums(all: [u64; 2], more: [u64; 2]) -> [u64; 2] {
    let ([least, most], [more_least, more_most]) = (all, more);
    [least.saturating_add(more_least), most.saturating_add(more_most)]
}

fn nanoseconds(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}
