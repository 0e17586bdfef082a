//! Learns from captures whose commands are labelled what the other records are: the model's `[noise]`.
//!
//! What lies in no labelled command is noise as long as there are labels: before the first one and after the last, and
//! where it is doubtful whether a label is right, nothing is learned of what is a command. A command whose label is
//! missing counts as noise too; how many such there seem to be is learned with it, and taken off (`weigh`).

use std::collections::{BTreeMap, BTreeSet};

use sizeleak_frame::{Command, ContentType, Direction, Flow, Record};
use sizeleak_model::{Basis, MIN_OCCURRENCES, NoiseStatistics, RecordLayout};
use sizeleak_runtime::ConfigureError;

use crate::Options;
use crate::beat::Occurrence;
use crate::count::Counts;
use crate::exchange::{Exchange, Heard, Weight};
use crate::habit::Habits;
use crate::knowledge::size;
use crate::message::{Message, Piece, Unfinished};
use crate::options::Times;
use crate::pair::{Pair, Pairs};
use crate::study;

/// Records around labelled commands.
#[derive(Debug, Clone, Copy)]
pub struct LabelledTraffic<'a> {
    /// All records, in the order of the stream.
    pub records: &'a [Record],
    /// The flows they are of.
    pub flows: &'a [Flow],
    /// The commands that labels are of.
    pub commands: &'a [Command],
    /// What may be commands or not: nothing is learned of them.
    pub doubtful: &'a [Command],
    /// From the first label to the last, in nanoseconds.
    pub span: [i64; 2],
}

/// Something that was said, by one side and at once.
#[derive(Debug)]
pub(crate) struct Said {
    /// As one record: its size is the message's.
    pub(crate) record: Record,
    pub(crate) weight: Weight,
    pub(crate) begun: Occurrence,
    pub(crate) pair: Pair,
    pub(crate) part: Part,
}

/// What labels say of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// It begins a command.
    Begins,
    /// It goes on with one.
    Continues,
    /// It is none.
    None,
    /// That it may be one or not.
    Doubtful,
    /// Nothing: it comes before the first label, or after the last.
    Untold,
}

impl LabelledTraffic<'_> {
    /// Learns what is no command. `basis` is what the model's sizes are, `options` how commands are told from other
    /// records.
    ///
    /// # Errors
    /// [`ConfigureError::Usage`] where an option is wrong.
    pub fn learn(&self, basis: &Basis, options: &Options) -> Result<NoiseStatistics, ConfigureError> {
        let times = options.times()?;
        let records: Vec<(Record, Weight)> = self
            .records
            .iter()
            .filter(|record| !record.handshake && record.content_type == ContentType::ApplicationData)
            .map(|record| {
                (Record { length: size(basis, record), ..record.clone() }, Weight::of(record, options.min_size))
            })
            .collect();
        let mut pairs = Pairs::default();
        self.flows.iter().for_each(|flow| pairs.learn(flow));
        let [full_to_gateway, full_from_gateway] =
            [Direction::ToGateway, Direction::FromGateway].map(|direction| self.full(&records, direction, &times));
        let answer_within = answer_within(&records, &mut pairs, &times);
        let full = |direction| if direction == Direction::ToGateway { full_to_gateway } else { full_from_gateway };
        let said = self.said(&records, &mut pairs, full, &times);

        let patient = Times { answer_within: answer_within.unwrap_or(times.answer_within), ..times };
        let rough = Counts::of(&said, &Counts::default(), &patient);
        let counts = Counts::of(&said, &rough, &patient);
        let commands = said.iter().filter(|said| said.part == Part::Begins).count() as u64;
        let continued = said.iter().filter(|said| said.part == Part::Continues).count() as u64;
        let is_in_parts = continued >= MIN_OCCURRENCES && continued.saturating_mul(4) >= commands;
        Ok(NoiseStatistics {
            commands,
            replied: counts.replied,
            missing_labels: counts.missing_labels(),
            answer_within_ms: answer_within.map(|ns| ns.unsigned_abs().div_ceil(1_000_000)),
            written: if is_in_parts { RecordLayout::Parts } else { RecordLayout::Whole },
            full_to_gateway,
            full_from_gateway,
            to_gateway: counts.service_records(),
            from_gateway: counts.gateway_records(),
        })
    }

    /// The size of records that the next one continues: the greatest there are on the connections of commands, if nearly
    /// all that is followed at once is of that size.
    fn full(&self, records: &[(Record, Weight)], direction: Direction, times: &Times) -> Option<u32> {
        let flows: BTreeSet<u64> = self.commands.iter().map(|command| command.flow).collect();
        let mut last: BTreeMap<u64, &Record> = BTreeMap::new();
        let (mut greatest, mut followed) = (None, BTreeMap::<u32, u64>::new());
        for (record, _) in records.iter().filter(|(record, _)| flows.contains(&record.flow)) {
            let before = last.insert(record.flow, record).filter(|before| before.direction == direction);
            if record.direction != direction {
                continue;
            }
            greatest = greatest.max(Some(record.length));
            let is_next = |before: &&Record| record.start_ns.saturating_sub(before.time_ns) <= times.at_once();
            if let Some(before) = before.filter(is_next) {
                *followed.entry(before.length).or_default() += 1;
            }
        }
        let all: u64 = followed.values().sum();
        let of_greatest = greatest.and_then(|greatest| followed.get(&greatest)).copied().unwrap_or_default();
        let is_enough = of_greatest >= MIN_OCCURRENCES || (of_greatest >= 2 && of_greatest == all);
        greatest.filter(|_| is_enough && of_greatest.saturating_mul(5) >= all.saturating_mul(4))
    }

    /// Puts the pieces of messages together, and says of each what the labels do.
    fn said(
        &self,
        records: &[(Record, Weight)],
        pairs: &mut Pairs,
        full: impl Fn(Direction) -> Option<u32>,
        times: &Times,
    ) -> Vec<Said> {
        let mut labels = Labelled::new(self);
        let mut talks: BTreeMap<u64, Talk<'_>> = BTreeMap::new();
        let mut all = Vec::new();
        let mut add = |record: &Record, message: Message, weight: Weight| {
            let record = Record { length: message.size, start_ns: message.start_ns, ..record.clone() };
            let part = labels.part(&record);
            all.push(Said { weight, begun: message.begun, pair: *pairs.of(record.flow), part, record });
        };
        for (record, weight) in records {
            let talk = talks.entry(record.flow).or_default();
            let heard = Heard::new(record, *weight);
            let taken = talk.unfinished.take(heard, &talk.exchange, full(record.direction), times.gap);
            talk.exchange.remember(heard);
            let last = talk.last.replace(record);
            if let (Some(ended), Some(last)) = (taken.ended, last) {
                add(last, ended, Weight::Full);
            }
            match taken.piece {
                Piece::Whole => add(record, taken.message, *weight),
                // What has a full piece is not tiny.
                Piece::Last => add(record, taken.message, Weight::Full),
                Piece::First | Piece::Middle => {}
            }
        }
        all
    }
}

/// A flow whose messages are put together.
#[derive(Debug, Default)]
struct Talk<'a> {
    exchange: Exchange,
    unfinished: Unfinished,
    last: Option<&'a Record>,
}

/// Labelled commands by flow and time.
struct Labelled {
    /// Flow and beginning; end, and whether a label is of it that is believed.
    commands: BTreeMap<(u64, i64), (i64, Part)>,
    span: [i64; 2],
}

impl Labelled {
    fn new(traffic: &LabelledTraffic<'_>) -> Self {
        let entry = |part: Part| move |command: &Command| ((command.flow, command.time_ns), (command.end_ns, part));
        let doubtful = traffic.doubtful.iter().map(entry(Part::Doubtful));
        let commands = doubtful.chain(traffic.commands.iter().map(entry(Part::Begins))).collect();
        Self { commands, span: traffic.span }
    }

    /// What is said of a message.
    fn part(&mut self, record: &Record) -> Part {
        if record.direction == Direction::FromGateway {
            return Part::Untold;
        }
        let before = self.commands.range_mut((record.flow, i64::MIN)..=(record.flow, record.start_ns)).next_back();
        if let Some((_, (_, part))) = before.filter(|(_, (end_ns, _))| record.start_ns <= *end_ns) {
            let told = *part;
            if told == Part::Begins {
                *part = Part::Continues;
            }
            return told;
        }
        let [first, last] = self.span;
        if (first..=last).contains(&record.start_ns) { Part::None } else { Part::Untold }
    }
}

/// Within what time the service answers, where that is longer than usual: as the algorithm `adaptive` learns it.
fn answer_within(records: &[(Record, Weight)], pairs: &mut Pairs, times: &Times) -> Option<i64> {
    let mut exchanges: BTreeMap<u64, Exchange> = BTreeMap::new();
    let mut habits: BTreeMap<Pair, Habits> = BTreeMap::new();
    for (record, weight) in records {
        let heard = Heard::new(record, *weight);
        let habits = habits.entry(*pairs.of(record.flow)).or_default();
        study::learn(heard, exchanges.entry(record.flow).or_default(), habits, times);
    }
    let longest = habits.values().map(|habits| habits.answer_within(times)).max()?;
    (longest > times.answer_within).then_some(longest)
}
