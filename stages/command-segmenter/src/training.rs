//! Learns from captures with labelled commands what the other records are: the model's `[noise]`.
//!
//! Where the labels are complete, a message outside of every labelled command is noise between the first label and the
//! last. A command without a label counts as noise too; how many there seem to be is learned as well, and `likelihood`
//! subtracts it. Where they are not, an unsolicited message of a size that actions make up, and that comes on no timer,
//! is undecided: it counts as neither, and what the gateway sends after it is taken for neither replies nor telemetry.
//! Nothing is learned about commands from messages before the first label, after the last, or in a command whose label
//! is doubtful.

use std::collections::{BTreeMap, BTreeSet};

use sizeleak_frame::{Command, ContentType, Direction, Flow, PerDirection, Record};
use sizeleak_model::{MIN_OCCURRENCES, Model, NoiseStatistics, RecordLayout};
use sizeleak_platform::runtime::ConfigureError;

use crate::flow_history::{EndpointPair, FlowEndpoints, FlowHistory, SizeClass, SizedRecord};
use crate::noise_model::{command_range, size_in_basis};
use crate::options::{CommandDirection, Options, TimeLimits};
use crate::traffic_profile::TrafficProfile;
use crate::training_counts::{CommandLabels, MessageLabel, TrainingCounts, label_messages};

/// Records with labelled commands among them.
#[derive(Debug, Clone, Copy)]
pub struct LabelledTraffic<'a> {
    pub records: &'a [Record],
    pub flows: &'a [Flow],
    pub commands: &'a [Command],
    /// What may be commands: nothing is learned from them.
    pub doubtful: &'a [Command],
    /// The times of the first label and the last, in nanoseconds.
    pub span: [i64; 2],
    /// Whether every command between the first label and the last has a label, so that what has none is none.
    pub labels_are_complete: bool,
    /// Whether the sizes of the commands explain their labels. Where they do not, what follows a command may belong to it.
    pub labels_fit: bool,
}

impl LabelledTraffic<'_> {
    /// Learns what records that are not commands look like, in sizes of the basis of a `model` that was learned from the
    /// commands.
    pub fn learn(&self, model: &Model, options: &Options) -> Result<NoiseStatistics, ConfigureError> {
        let basis = &model.learned.basis;
        let limits = options.time_limits(model.reply_windows)?;
        let reversed: Vec<Record>;
        let records = if options.direction == Some(CommandDirection::From) {
            reversed = self.records.iter().map(crate::adaptive::reversed).collect();
            &reversed
        } else {
            self.records
        };
        let is_data = |record: &&Record| !record.handshake && record.content_type == ContentType::ApplicationData;
        let sized = |record: &Record| {
            let size_class = SizeClass::of(record, options.min_size());
            (Record { length: size_in_basis(basis, record), ..record.clone() }, size_class)
        };
        let records: Vec<(Record, SizeClass)> = records.iter().filter(is_data).map(sized).collect();
        let mut endpoints = FlowEndpoints::default();
        self.flows.iter().for_each(|flow| endpoints.add(flow));
        let [full_to_gateway, full_from_gateway] =
            Direction::BOTH.map(|direction| self.full_size(&records, direction, &limits));
        let full_size = PerDirection { to_gateway: full_to_gateway, from_gateway: full_from_gateway };
        let answer_within_ns = answer_within_ns(&records, &mut endpoints, &limits);
        let labels = CommandLabels::new(self.commands, self.doubtful, self.span);
        let messages = label_messages(&records, labels, &mut endpoints, full_size, &limits);

        let limits = TimeLimits { answer_within_ns: answer_within_ns.unwrap_or(limits.answer_within_ns), ..limits };
        let count = |label| messages.iter().filter(|message| message.label == label).count() as u64;
        let (commands, parts) = (count(MessageLabel::StartsCommand), count(MessageLabel::ContinuesCommand));
        let is_in_parts = parts >= MIN_OCCURRENCES && parts.saturating_mul(4) >= commands;
        let undecided = if self.labels_are_complete {
            BTreeSet::new()
        } else {
            let range = if is_in_parts { [i64::MIN, i64::MAX] } else { command_range(model) };
            let as_noise = TrainingCounts::new(&messages, &TrainingCounts::default(), &BTreeSet::new(), &limits);
            as_noise.sizes_on_no_timer(range)
        };
        let mut first_pass = TrainingCounts::new(&messages, &TrainingCounts::default(), &undecided, &limits);
        if !self.labels_fit {
            first_pass.take_what_follows();
        }
        let counts = TrainingCounts::new(&messages, &first_pass, &undecided, &limits);
        Ok(NoiseStatistics {
            commands,
            replied: counts.replied,
            missing_labels: counts.missing_labels(),
            answer_within_ms: answer_within_ns.map(|ns| ns.unsigned_abs().div_ceil(1_000_000)),
            written: if is_in_parts { RecordLayout::Parts } else { RecordLayout::Whole },
            continued: counts.continued(),
            full_to_gateway,
            full_from_gateway,
            to_gateway: counts.service_records(),
            from_gateway: counts.gateway_records(),
        })
    }

    /// The size of records that the next one continues: the greatest size on the flows of commands, if nearly all
    /// records that are followed at once have it.
    fn full_size(&self, records: &[(Record, SizeClass)], direction: Direction, limits: &TimeLimits) -> Option<u32> {
        let flows: BTreeSet<u64> = self.commands.iter().map(|command| command.flow).collect();
        let mut last: BTreeMap<u64, &Record> = BTreeMap::new();
        let (mut greatest, mut followed) = (None, BTreeMap::<u32, u64>::new());
        for (record, _) in records.iter().filter(|(record, _)| flows.contains(&record.flow)) {
            let before = last.insert(record.flow, record).filter(|before| before.direction == direction);
            if record.direction != direction {
                continue;
            }
            greatest = greatest.max(Some(record.length));
            let is_at_once =
                |before: &&Record| record.start_ns.saturating_sub(before.time_ns) <= limits.same_write_ns();
            if let Some(before) = before.filter(is_at_once) {
                *followed.entry(before.length).or_default() += 1;
            }
        }
        let all: u64 = followed.values().sum();
        let of_greatest = greatest.and_then(|greatest| followed.get(&greatest)).copied().unwrap_or_default();
        let is_enough = of_greatest >= MIN_OCCURRENCES || (of_greatest >= 2 && of_greatest == all);
        greatest.filter(|_| is_enough && of_greatest.saturating_mul(5) >= all.saturating_mul(4))
    }
}

/// Within what time the service answers, if that is longer than the option: learned as by the algorithm `adaptive`.
fn answer_within_ns(
    records: &[(Record, SizeClass)],
    endpoints: &mut FlowEndpoints,
    limits: &TimeLimits,
) -> Option<i64> {
    let mut histories: BTreeMap<u64, FlowHistory> = BTreeMap::new();
    let mut profiles: BTreeMap<EndpointPair, TrafficProfile> = BTreeMap::new();
    for (record, size_class) in records {
        let profile = profiles.entry(endpoints.of(record.flow)).or_default();
        let history = histories.entry(record.flow).or_default();
        profile.learn(SizedRecord::new(record, *size_class), history, limits);
    }
    let longest_ns = profiles.values().map(|profile| profile.answer_within_ns(limits)).max()?;
    (longest_ns > limits.answer_within_ns).then_some(longest_ns)
}
