//! The stage: records in, commands out.

use std::collections::BTreeMap;

use sizeleak_frame::{ContentType, Notice, Record, what};
use sizeleak_stage::{ConfigureError, Emit, Stage, StageError};

use crate::conversation::{Conversation, Turn};
use crate::open::OpenCommands;
use crate::options::{Algorithm, Options, Times};

/// Conversations of more flows than this are not kept; those silent for longest are forgotten.
const MOST_FLOWS: usize = 100_000;

/// What TLS adds to a record whose cipher suite was not seen, in bytes: TLS 1.2 with AES-GCM, the most common case.
const USUAL_OVERHEAD: u64 = 24;

/// Tells commands from other records and counts the replies to them.
#[derive(Debug)]
pub struct CommandSegmenter {
    algorithm: Algorithm,
    min_size: u64,
    times: Times,
    conversations: BTreeMap<u64, Conversation>,
    open: OpenCommands,
    now_ns: i64,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    commands: u64,
    replies: u64,
    answers: u64,
    tiny: u64,
    handshake: u64,
    unprompted: u64,
    evicted_flows: u64,
}

impl CommandSegmenter {
    /// A segmenter with these options.
    ///
    /// # Errors
    /// [`ConfigureError::Usage`] where a time is negative or longer than a day.
    pub fn new(options: &Options) -> Result<Self, ConfigureError> {
        Ok(Self {
            algorithm: options.algorithm,
            min_size: options.min_size,
            times: options.times()?,
            conversations: BTreeMap::new(),
            open: OpenCommands::default(),
            now_ns: i64::MIN,
            counts: Counts::default(),
        })
    }

    fn take(&mut self, record: &Record) {
        let turn = self.conversations.entry(record.flow).or_default().turn(record, self.times.answer_within);
        match turn {
            Turn::Gateway if self.open.reply(record) => self.counts.replies += 1,
            Turn::Gateway => self.counts.unprompted += 1,
            Turn::Answer => self.counts.answers += 1,
            Turn::Service { since_ns } if self.continues(since_ns, record) && self.open.extend(record) => {}
            Turn::Service { .. } => {
                self.counts.commands += 1;
                self.open.begin(record);
            }
        }
    }

    fn continues(&self, since_ns: Option<i64>, record: &Record) -> bool {
        match self.algorithm {
            Algorithm::Gap => since_ns.is_some_and(|ns| record.start_ns.saturating_sub(ns) <= self.times.gap),
            Algorithm::Record => false,
        }
    }

    /// Whether a record is too small to be anything but a keep-alive or an acknowledgement.
    fn is_tiny(&self, record: &Record) -> bool {
        let most = record.plaintext.map_or(u64::from(record.length).saturating_sub(USUAL_OVERHEAD), |[_, most]| most);
        most < self.min_size
    }

    fn emit_complete(&mut self, out: &mut dyn Emit) -> Result<(), StageError> {
        while let Some(command) = self.open.complete(self.now_ns, &self.times) {
            out.emit(command.into())?;
        }
        Ok(())
    }

    /// Forgets the half of all conversations that has been silent for longest: half, so that a flood of flows costs
    /// each of them a constant time.
    fn forget_silent(&mut self, out: &mut dyn Emit) -> Result<(), StageError> {
        let mut times: Vec<i64> = self.conversations.values().map(|conversation| conversation.last_ns).collect();
        let (_, &mut median, _) = times.select_nth_unstable(MOST_FLOWS / 2);
        let before = self.conversations.len();
        let mut spare = MOST_FLOWS / 2 + 1;
        self.conversations.retain(|_, conversation| {
            let keep = conversation.last_ns >= median && spare > 0;
            spare -= usize::from(keep);
            keep
        });
        let forgotten = (before - self.conversations.len()) as u64;
        self.counts.evicted_flows += forgotten;
        let detail = format!("more than {MOST_FLOWS} flows at once: the {forgotten} silent for longest are forgotten");
        let notice = Notice {
            time_ns: Some(self.now_ns),
            stage: Self::NAME.into(),
            flow: None,
            what: what::EVICTED.into(),
            bytes: None,
            detail: Some(detail),
        };
        Ok(out.emit(notice.into())?)
    }
}

impl Stage for CommandSegmenter {
    const NAME: &'static str = "command-segmenter";
    type Input = Record;

    fn process(&mut self, record: Record, out: &mut dyn Emit) -> Result<(), StageError> {
        self.now_ns = self.now_ns.max(record.time_ns);
        self.open.advance(record.flow, record.time_ns, &self.times);
        self.emit_complete(out)?;
        if record.handshake || record.content_type != ContentType::ApplicationData {
            self.counts.handshake += 1;
        } else if self.is_tiny(&record) {
            self.counts.tiny += 1;
            if let Some(conversation) = self.conversations.get_mut(&record.flow) {
                conversation.tiny(&record, self.times.answer_within);
            }
        } else {
            self.take(&record);
            if self.conversations.len() > MOST_FLOWS {
                self.forget_silent(out)?;
            }
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut dyn Emit) -> Result<(), StageError> {
        for command in self.open.drain() {
            out.emit(command.into())?;
        }
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("commands", self.counts.commands),
            ("replies", self.counts.replies),
            ("answers", self.counts.answers),
            ("tiny", self.counts.tiny),
            ("handshake", self.counts.handshake),
            ("unprompted", self.counts.unprompted),
            ("evicted_flows", self.counts.evicted_flows),
        ]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sizeleak_frame::{Command, Direction, Frame};

    use super::*;

    const MS: i64 = 1_000_000;

    fn record(at_ms: i64, direction: Direction, plaintext: u64) -> Record {
        Record {
            time_ns: at_ms * MS,
            start_ns: at_ms * MS,
            flow: 1,
            direction,
            content_type: ContentType::ApplicationData,
            length: plaintext as u32 + 24,
            plaintext: Some([plaintext; 2]),
            handshake: false,
        }
    }

    fn to(at_ms: i64, plaintext: u64) -> Record {
        record(at_ms, Direction::ToGateway, plaintext)
    }

    fn from(at_ms: i64, plaintext: u64) -> Record {
        record(at_ms, Direction::FromGateway, plaintext)
    }

    fn segment(options: &Options, records: &[Record]) -> Vec<Command> {
        let mut segmenter = CommandSegmenter::new(options).unwrap();
        let mut out: Vec<Frame> = Vec::new();
        for record in records {
            segmenter.process(record.clone(), &mut out).unwrap();
        }
        segmenter.finish(&mut out).unwrap();
        out.into_iter().map(|frame| Command::try_from(frame).unwrap()).collect()
    }

    fn sizes(records: &[Record]) -> Vec<u64> {
        segment(&Options::default(), records).iter().map(|command| command.plaintext.unwrap()[0]).collect()
    }

    #[test]
    fn replies_are_counted_until_the_gateway_is_silent() {
        let commands = segment(
            &Options::default(),
            &[to(0, 300), from(50, 60), from(300, 70), from(1000, 50), from(1900, 80), to(9000, 200)],
        );
        let first = &commands[0];
        assert_eq!((first.replies, first.reply_bytes, first.end_ns), (3, 60 + 70 + 50 + 3 * 24, 0));
        assert_eq!((commands[1].replies, commands[1].time_ns), (0, 9000 * MS));
    }

    #[test]
    fn the_next_command_ends_the_replies_to_the_last() {
        let commands = segment(&Options::default(), &[to(0, 300), from(50, 60), to(400, 310), from(450, 60)]);
        assert_eq!(commands.iter().map(|command| command.replies).collect::<Vec<_>>(), [1, 1]);
    }

    #[test]
    fn keep_alives_and_acknowledgements_are_no_commands() {
        assert_eq!(sizes(&[to(0, 4), from(10, 4), to(5000, 2), from(9000, 90), to(9030, 40)]), [0u64; 0]);
        let mut ticket = to(0, 200);
        ticket.handshake = true;
        let mut alert = to(10, 200);
        alert.content_type = ContentType::Alert;
        assert_eq!(sizes(&[ticket, alert]), [0u64; 0]);
    }

    #[test]
    fn one_message_of_the_gateway_has_one_answer() {
        assert_eq!(sizes(&[from(0, 90), to(30, 40), to(60, 300)]), [300]);
        assert_eq!(sizes(&[from(0, 90), from(10, 90), to(30, 40), to(60, 300)]), [0u64; 0]);
        assert_eq!(sizes(&[from(0, 90), to(30_000, 300)]), [300], "a poll that a command ends, half a minute later");
    }

    #[test]
    fn a_tiny_acknowledgement_is_the_answer_and_the_next_record_a_command() {
        assert_eq!(sizes(&[from(0, 90), to(30, 4), to(60, 300)]), [300], "MQTT's PUBACK, then a command");
        assert_eq!(sizes(&[from(0, 90), from(10, 2), to(30, 2), to(60, 300)]), [0u64; 0], "the pong to a ping");
        assert_eq!(sizes(&[from(0, 90), from(5, 90), to(30, 4), to(60, 300)]), [0u64; 0], "one of two is unanswered");
        assert_eq!(sizes(&[from(0, 90), from(10, 2), to(30, 2), to(40, 4), to(60, 300)]), [300]);
    }

    #[test]
    fn a_command_in_pieces_is_one_with_gap_and_several_with_record() {
        let pieces = [to(0, 100), to(3, 100), to(6, 50), from(60, 70)];
        let commands = segment(&Options::default(), &pieces);
        let whole = &commands[0];
        assert_eq!((whole.records, whole.size, whole.plaintext), (3, 250 + 72, Some([250, 250])));
        assert_eq!((commands.len(), whole.end_ns, whole.replies), (1, 6 * MS, 1));
        let options = Options { algorithm: Algorithm::Record, ..Options::default() };
        assert_eq!(segment(&options, &pieces).len(), 3);
    }

    #[test]
    fn without_a_cipher_sizes_are_those_on_the_wire() {
        let mut tiny = to(0, 6);
        tiny.plaintext = None;
        let mut unknown = to(1000, 200);
        unknown.plaintext = None;
        let commands = segment(&Options::default(), &[tiny, unknown, to(1001, 10)]);
        assert_eq!(commands.iter().map(|command| (command.size, command.plaintext)).collect::<Vec<_>>(), [(224, None)]);
    }

    #[test]
    fn flows_do_not_disturb_each_other_and_order_is_that_of_beginning() {
        let on = |flow, mut record: Record| {
            record.flow = flow;
            record
        };
        let commands = segment(
            &Options::default(),
            &[on(1, to(0, 300)), on(2, to(10, 400)), on(2, from(20, 50)), on(2, to(700, 410)), on(1, from(750, 50))],
        );
        assert_eq!(commands.iter().map(|command| command.time_ns / MS).collect::<Vec<_>>(), [0, 10, 700]);
        assert_eq!(commands.iter().map(|command| command.replies).collect::<Vec<_>>(), [1, 1, 0]);
    }

    /// A segment of flow 1 is missing from the capture: what follows it comes 3 s late, with its true times.
    #[test]
    fn a_command_behind_a_hole_keeps_its_replies_and_its_place() {
        let on = |flow, record: Record| Record { flow, ..record };
        let records =
            [on(2, to(500, 400)), on(2, from(2950, 2)), to(0, 300), from(60, 50), from(700, 50), on(2, to(9000, 410))];
        let commands = segment(&Options::default(), &records);
        let shown: Vec<_> = commands.iter().map(|command| (command.time_ns / MS, command.replies)).collect();
        assert_eq!(shown, [(0, 2), (500, 0), (9000, 0)]);
        let late = segment(&Options::default(), &[to(0, 300), from(60, 50), from(900, 50), from(1000, 50)]);
        assert_eq!(late[0].replies, 1, "the flow's own time ends the replies");
    }

    #[test]
    fn a_flow_that_falls_silent_is_ended_by_the_time_of_others() {
        let mut segmenter = CommandSegmenter::new(&Options::default()).unwrap();
        let mut out: Vec<Frame> = Vec::new();
        for (flow, record) in [(1, to(0, 300)), (2, from(3700, 90)), (2, from(3900, 90))] {
            assert!(out.is_empty());
            segmenter.process(Record { flow, ..record }, &mut out).unwrap();
        }
        assert_eq!(out.len(), 1);
    }

    #[test]
    fn time_that_stands_still_fills_no_memory() {
        let mut segmenter = CommandSegmenter::new(&Options::default()).unwrap();
        let mut out: Vec<Frame> = Vec::new();
        for flow in 0..10_000 {
            segmenter.process(Record { flow, ..to(0, 300) }, &mut out).unwrap();
        }
        assert!(out.len() > 5_000);
        segmenter.finish(&mut out).unwrap();
        assert_eq!(out.len(), 10_000);
    }

    #[test]
    fn a_flood_of_flows_is_bounded_and_told() {
        let mut segmenter = CommandSegmenter::new(&Options::default()).unwrap();
        let mut out: Vec<Frame> = Vec::new();
        for flow in 0..=MOST_FLOWS as u32 {
            segmenter.process(Record { flow: flow.into(), ..from(flow.into(), 90) }, &mut out).unwrap();
        }
        assert_eq!(segmenter.conversations.len(), MOST_FLOWS / 2 + 1);
        assert!(segmenter.conversations.contains_key(&(MOST_FLOWS as u64)));
        assert_eq!(out.len(), 1);
    }

    #[test]
    fn times_are_checked() {
        let options = Options { gap: jiff::SignedDuration::from_secs(-1), ..Options::default() };
        assert!(CommandSegmenter::new(&options).is_err());
    }

    proptest! {
        /// Whatever comes, each record from the service is in one command at most, and commands leave in order.
        #[test]
        fn nothing_is_counted_twice(
            records in prop::collection::vec((any::<bool>(), -100i64..5000, 0u64..400, 1u64..3), 0..80),
        ) {
            let records: Vec<Record> = records.into_iter().map(|(toward, at, size, flow)| {
                Record { flow, ..if toward { to(at, size) } else { from(at, size) } }
            }).collect();
            for algorithm in [Algorithm::Gap, Algorithm::Record] {
                let commands = segment(&Options { algorithm, ..Options::default() }, &records);
                let pieces: u32 = commands.iter().map(|command| command.records).sum();
                let replies: u32 = commands.iter().map(|command| command.replies).sum();
                let big = |direction| records.iter()
                    .filter(|record| record.direction == direction && record.plaintext.unwrap()[0] >= 16)
                    .count();
                prop_assert!(pieces as usize <= big(Direction::ToGateway));
                prop_assert!(replies as usize <= big(Direction::FromGateway));
            }
        }
    }
}
