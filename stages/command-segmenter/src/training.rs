//! Learns from captures with labelled commands what the other records are, the model's `[noise]`; and how long the
//! gateway's replies take: until what the gateway sends after commands is no more than what it sends at other times.
//!
//! Where the labels are complete, a message outside of every labelled command is noise between the first label and the
//! last. A command without a label counts as noise too; how many there seem to be is learned as well, and `likelihood`
//! subtracts it. Where they are not, an unsolicited message of a size that actions make up, and that comes on no timer,
//! is undecided: it counts as neither, and what the gateway sends after it is taken for neither replies nor telemetry.
//! Nothing is learned about commands from messages before the first label, after the last, or in a command whose label
//! is doubtful.

use std::collections::{BTreeMap, BTreeSet};

use sizeleak_frame::{Command, ContentType, Direction, Flow, PerDirection, Record};
use sizeleak_model::{MAX_REPLY_WITHIN_MS, MIN_OCCURRENCES, Model, NoiseStatistics, RecordLayout, ReplyWindows};
use sizeleak_platform::runtime::ConfigureError;

use crate::flow_history::{EndpointPair, FlowEndpoints, FlowHistory, SizeClass, SizedRecord};
use crate::noise_model::{command_range, size_in_basis};
use crate::options::{CommandDirection, Options, TimeLimits, USUAL_REPLY_WINDOWS};
use crate::traffic_profile::TrafficProfile;
use crate::training_counts::{CommandLabels, MessageLabel, TrainingCounts, label_messages};

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

const MS: i64 = 1_000_000;

/// How long after a command replies are looked for.
const HORIZON_NS: i64 = MAX_REPLY_WITHIN_MS.cast_signed() * MS;

/// Times after commands are counted in bins as long as this.
const BIN_NS: i64 = 500 * MS;

const BINS: usize = (HORIZON_NS / BIN_NS) as usize;

const MIN_COMMANDS: usize = 8;

const MIN_REPLIES: f64 = 8.0;

/// Replies that may be later than the window, in percent.
const LATE_PERCENT: f64 = 2.0;

const MOST: f64 = 0.9;

/// The time of most replies is looked for in steps of this.
const STEP_NS: i64 = 50 * MS;

/// The last reply seen may come a little later another time: by a quarter.
fn with_margin(time_ns: i64, step_ms: u64) -> u64 {
    let ms = (time_ns.max(0).unsigned_abs() / MS.unsigned_abs()).saturating_mul(5).div_ceil(4);
    ms.div_ceil(step_ms).max(1) * step_ms
}

/// When what the gateway sends after these commands ends; `None` if the usual windows are long enough, or if too few
/// commands or replies show it. `commands` are the labelled ones among `records`, which are in the order of the stream;
/// records of less plaintext than `min_size` are no replies.
pub fn learn_reply_windows(records: &[Record], commands: &[Command], min_size: u64) -> Option<ReplyWindows> {
    if commands.len() < MIN_COMMANDS {
        return None;
    }
    let flows = FlowTimes::of(records, commands, min_size);
    let delays: Vec<CommandDelays> = flows.values().flat_map(FlowTimes::delays).collect();
    let background = flows.values().map(FlowTimes::background);
    let (records, observed_ns) = background.fold((0, 0_i64), |(records, observed_ns), (more, longer_ns)| {
        (records + more, observed_ns.saturating_add(longer_ns))
    });
    let rate = if observed_ns > 0 { records as f64 / observed_ns as f64 } else { 0.0 };
    let within_ns = end_of_excess(&delays, rate)?;
    let gap_ns = usual_gap(&delays, within_ns)?;
    let longest_ms = with_margin(within_ns, 1_000).clamp(USUAL_REPLY_WINDOWS.within_ms, MAX_REPLY_WITHIN_MS);
    let silence_ms = with_margin(gap_ns, 100).clamp(USUAL_REPLY_WINDOWS.gap_ms, longest_ms);
    if (longest_ms, silence_ms) == (USUAL_REPLY_WINDOWS.within_ms, USUAL_REPLY_WINDOWS.gap_ms) {
        return None;
    }
    let mostly_ms = 2 * (time_of_most(&delays, within_ns, rate).max(0).unsigned_abs() / MS.unsigned_abs());
    let mostly_ms = mostly_ms.clamp(USUAL_REPLY_WINDOWS.mostly_ms, longest_ms);
    Some(ReplyWindows { within_ms: longest_ms, gap_ms: silence_ms, mostly_ms })
}

#[derive(Debug, Default)]
struct FlowTimes {
    /// The first and the last record.
    span: Option<[i64; 2]>,
    sender: Direction,
    /// When commands began and ended.
    commands: Vec<[i64; 2]>,
    /// When the other side sent what is large enough for a reply, by length.
    by_length: BTreeMap<u32, Vec<i64>>,
    /// The same without the lengths that come at any time.
    sent: Vec<i64>,
}

#[derive(Debug)]
struct CommandDelays {
    /// How long after the end of the command, in order.
    delays: Vec<i64>,
    observed_ns: i64,
}

impl FlowTimes {
    fn of(records: &[Record], commands: &[Command], min_size: u64) -> BTreeMap<u64, Self> {
        let mut flows: BTreeMap<u64, Self> = BTreeMap::new();
        for command in commands {
            let flow = flows.entry(command.flow).or_default();
            flow.commands.push([command.time_ns, command.end_ns]);
            flow.sender = command.direction;
        }
        for record in records {
            let Some(flow) = flows.get_mut(&record.flow) else { continue };
            let [first, last] = flow.span.unwrap_or([record.time_ns; 2]);
            flow.span = Some([first.min(record.time_ns), last.max(record.time_ns)]);
            let is_data = !record.handshake && record.content_type == ContentType::ApplicationData;
            let is_full = SizeClass::of(record, min_size) == SizeClass::Full;
            if is_data && is_full && record.direction != flow.sender {
                flow.by_length.entry(record.length).or_default().push(record.time_ns);
            }
        }
        for flow in flows.values_mut() {
            flow.commands.sort_unstable();
            flow.find_sent();
        }
        flows
    }

    /// Leaves out the lengths that come after commands about as often as at other times.
    fn find_sent(&mut self) {
        let observed: i64 = self.windows().map(|[from, to]| to.saturating_sub(from)).sum();
        let span = self.span.map_or(1, |[first, last]| last.saturating_sub(first)).max(1);
        let share = (observed as f64 / span as f64).min(1.0);
        let is_after_command = |time_ns: i64| {
            let next = self.commands.partition_point(|[_, end_ns]| *end_ns < time_ns);
            let before = next.checked_sub(1).and_then(|at| self.commands.get(at));
            before.is_some_and(|[_, end_ns]| time_ns.saturating_sub(*end_ns) <= HORIZON_NS)
        };
        let is_reply = |times: &&Vec<i64>| {
            let after = times.iter().filter(|time_ns| is_after_command(**time_ns)).count() as f64;
            let expected = share * times.len() as f64;
            // Where commands fill all the time, nothing can be told apart.
            times.len() < 8 || share > 0.9 || after > expected + 3.0 * (expected * (1.0 - share)).sqrt()
        };
        let mut sent: Vec<i64> = self.by_length.values().filter(is_reply).flatten().copied().collect();
        sent.sort_unstable();
        self.sent = sent;
    }

    /// From the end of each command until the next begins, or until replies are looked for no more.
    fn windows(&self) -> impl Iterator<Item = [i64; 2]> {
        let last_ns = self.span.map_or(i64::MIN, |[_, last]| last);
        let next = self.commands.iter().skip(1).map(|[start_ns, _]| *start_ns).chain([last_ns]);
        self.commands
            .iter()
            .zip(next)
            .map(|([_, end_ns], next_ns)| [*end_ns, end_ns.saturating_add(HORIZON_NS).min(next_ns).max(*end_ns)])
    }

    fn delays(&self) -> impl Iterator<Item = CommandDelays> {
        self.windows().map(|[from, to]| {
            let first = self.sent.partition_point(|time_ns| *time_ns <= from);
            let until = self.sent.partition_point(|time_ns| *time_ns < to);
            let sent = self.sent.get(first..until).unwrap_or_default();
            CommandDelays {
                delays: sent.iter().map(|time_ns| time_ns.saturating_sub(from)).collect(),
                observed_ns: to.saturating_sub(from),
            }
        })
    }

    /// How many records the gateway sends long after commands, and in how many nanoseconds.
    fn background(&self) -> (usize, i64) {
        let observed: i64 = self.windows().map(|[from, to]| to.saturating_sub(from)).sum();
        let span = self.span.map_or(0, |[first, last]| last.saturating_sub(first));
        let inside: usize = self.delays().map(|command| command.delays.len()).sum();
        (self.sent.len().saturating_sub(inside), span.saturating_sub(observed).max(0))
    }
}

fn time_of_most(commands: &[CommandDelays], within_ns: i64, rate: f64) -> i64 {
    let replies_until = |time_ns: i64| -> f64 {
        let excess = |command: &CommandDelays| {
            let seen = command.delays.partition_point(|delay_ns| *delay_ns <= time_ns);
            seen as f64 - rate * command.observed_ns.min(time_ns) as f64
        };
        commands.iter().map(excess).sum()
    };
    let most = MOST * replies_until(within_ns);
    let mut times = (1..).map(|steps: i64| steps * STEP_NS).take_while(|time_ns| *time_ns < within_ns);
    times.find(|time_ns| replies_until(*time_ns) >= most).unwrap_or(within_ns)
}

/// How long after commands the gateway sends more than at other times, which is `rate` records a nanosecond.
fn end_of_excess(commands: &[CommandDelays], rate: f64) -> Option<i64> {
    let mut seen = vec![0.0_f64; BINS];
    let mut expected = vec![0.0_f64; BINS];
    for command in commands {
        for delay_ns in &command.delays {
            if let Some(bin) = seen.get_mut(usize::try_from(delay_ns / BIN_NS).unwrap_or(BINS)) {
                *bin += 1.0;
            }
        }
        for (bin, start_ns) in expected.iter_mut().zip((0..).map(|bin: i64| bin * BIN_NS)) {
            *bin += rate * command.observed_ns.saturating_sub(start_ns).clamp(0, BIN_NS) as f64;
        }
    }
    // From the back: what still comes from a bin on, beyond chance.
    let excess = |from: usize| -> (f64, f64) {
        let later = seen.iter().zip(&expected).skip(from);
        later.fold((0.0, 0.0), |(seen, expected), (one, other)| (seen + one, expected + other))
    };
    let (all, by_chance) = excess(0);
    let replies = all - by_chance;
    if replies < MIN_REPLIES {
        return None;
    }
    let is_end = |from: &usize| {
        (*from..BINS).all(|bin| {
            let (later, by_chance) = excess(*from);
            let (behind, behind_by_chance) = excess(bin + 1);
            let (between, chance) = (later - behind, by_chance - behind_by_chance);
            between - chance <= (replies * LATE_PERCENT / 100.0).max(3.0 * (chance + 1.0).sqrt().min(chance + 1.0))
        })
    };
    let bins = (1..=BINS).find(is_end)?;
    i64::try_from(bins).ok().map(|bins| bins * BIN_NS)
}

/// How long the gateway is silent at most before nearly every reply.
fn usual_gap(commands: &[CommandDelays], within_ns: i64) -> Option<i64> {
    let mut gaps: Vec<i64> = Vec::new();
    for command in commands {
        let mut before_ns = 0;
        for delay_ns in command.delays.iter().filter(|delay_ns| **delay_ns <= within_ns) {
            gaps.push(delay_ns.saturating_sub(before_ns));
            before_ns = *delay_ns;
        }
    }
    gaps.sort_unstable();
    let at = (gaps.len() as f64 * (1.0 - LATE_PERCENT / 100.0)) as usize;
    gaps.get(at.min(gaps.len().checked_sub(1)?)).copied()
}

#[cfg(test)]
mod tests;
