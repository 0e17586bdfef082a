//! Messages of a labelled capture, reassembled, and what those of each size are, where labels show which of them are
//! commands.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use sizeleak_frame::{Command, Direction, PerDirection, Record};
use sizeleak_model::{GatewayRecords, MAX_NOISE_SIZES, MIN_OCCURRENCES, ServiceRecords};

use crate::flow_history::{EndpointPair, FlowEndpoints, FlowHistory, ServiceBurst, SizeClass, SizedRecord};
use crate::message::{MessageReassembler, ReassembledMessage};
use crate::options::TimeLimits;
use crate::periodic::{self, Arrival, Timer};

#[derive(Debug, Default)]
pub(crate) struct TrainingCounts {
    service: BTreeMap<u32, ServiceSize>,
    gateway: BTreeMap<u32, GatewaySize>,
    /// Labelled commands that the gateway replied to.
    pub(crate) replied: u64,
}

#[derive(Debug, Default)]
struct ServiceSize {
    records: ServiceRecords,
    /// When unsolicited ones came, and after what silences.
    times: BTreeMap<EndpointPair, Vec<i64>>,
    silences: Vec<i64>,
    /// How many of them were large enough for a command.
    full: u64,
    /// How many are parts of commands that began before, and behind how many of these or of beginnings a command goes on.
    parts: u64,
    continued: u64,
    followed: BTreeMap<u32, u64>,
}

#[derive(Debug, Default)]
struct GatewaySize {
    records: GatewayRecords,
    answers: BTreeMap<u32, u64>,
}

#[derive(Debug, Default)]
struct TrainingFlow {
    history: FlowHistory,
    /// When the gateway's last message came, if the service has been silent since, and its size.
    request: Option<(i64, u32)>,
    replies: Option<ReplyWindow>,
    /// What the gateway may reply to, and until when.
    awaiting: Option<(AwaitingReply, i64)>,
    /// The size of the last message of a command that may go on while replies to it may come.
    begun: Option<u32>,
}

#[derive(Debug, Clone, Copy)]
struct ReplyWindow {
    /// The end, which each reply extends.
    until_ns: i64,
    end_ns: i64,
    /// Whether what they reply to surely is a command.
    is_labelled: bool,
}

impl ReplyWindow {
    fn of(message: &LabelledMessage, limits: &TimeLimits) -> Self {
        let time_ns = message.record.time_ns;
        let until_ns = time_ns.saturating_add(limits.reply_gap_ns);
        let end_ns = time_ns.saturating_add(limits.reply_within_ns);
        Self { until_ns, end_ns, is_labelled: message.label == MessageLabel::StartsCommand }
    }
}

#[derive(Debug, Clone, Copy)]
enum AwaitingReply {
    Command,
    Noise(u32),
}

impl TrainingCounts {
    /// Counts messages. The counts of an earlier pass show which of the gateway's messages are answered, and which are
    /// not replies. Unsolicited messages of `undecided` sizes may be commands although they have no label.
    pub(crate) fn new(
        messages: &[LabelledMessage],
        previous: &Self,
        undecided: &BTreeSet<u32>,
        limits: &TimeLimits,
    ) -> Self {
        let mut pass = CountingPass { counts: Self::default(), previous, undecided, limits };
        let mut flows: BTreeMap<u64, TrainingFlow> = BTreeMap::new();
        for message in messages {
            let flow = flows.entry(message.record.flow).or_default();
            match message.record.direction {
                Direction::FromGateway => pass.count_gateway(message, flow),
                Direction::ToGateway => pass.count_service(message, flow),
            }
            flow.history.remember(message.sized(), limits.same_write_ns());
        }
        pass.counts
    }

    /// The sizes in a range of which most unsolicited messages are on no timer, and which are not mostly answers.
    pub(crate) fn sizes_on_no_timer(&self, [min, max]: [i64; 2]) -> BTreeSet<u32> {
        let is_on_no_timer = |counted: &ServiceSize| {
            let mut records = counted.records;
            counted.find_timer(&mut records);
            records.every_ms.or(records.after_silence_ms).is_none()
        };
        let sizes = self.service.iter().filter(|(size, counted)| {
            let ServiceRecords { commands, answers, alone, .. } = counted.records;
            let is_mostly_answer = commands == 0 && answers > alone;
            (min..=max).contains(&i64::from(**size)) && !is_mostly_answer && is_on_no_timer(counted)
        });
        sizes.map(|(size, _)| *size).collect()
    }

    /// Takes what nearly always follows a command, and has many sizes as no answer has, for a part of it.
    pub(crate) fn take_what_follows(&mut self) {
        for ServiceSize { continued, followed, .. } in self.service.values_mut() {
            let (all, most) = (followed.values().sum::<u64>(), followed.values().max().copied().unwrap_or_default());
            if most.saturating_mul(5) < all.saturating_mul(3) {
                *continued += all;
            }
        }
    }

    pub(crate) fn continued(&self) -> Vec<u32> {
        self.service.keys().copied().filter(|size| self.goes_on(*size)).take(MAX_NOISE_SIZES).collect()
    }

    fn goes_on(&self, size: u32) -> bool {
        self.service.get(&size).is_some_and(|ServiceSize { records, parts, continued, .. }| {
            *continued >= MIN_OCCURRENCES && continued.saturating_mul(4) >= (records.commands + parts).saturating_mul(3)
        })
    }

    /// How many commands seem to have no label for 100 that have one. Noise recurs; commands of many actions hardly do.
    pub(crate) fn missing_labels(&self) -> u64 {
        let rare =
            || self.service.values().filter(|size| size.records.alone < MIN_OCCURRENCES && size.records.answers == 0);
        let labelled: u64 = rare().map(|size| size.records.commands).sum();
        let unlabelled: u64 = rare().map(|size| size.full).sum();
        unlabelled.saturating_mul(100) / labelled.max(1)
    }

    pub(crate) fn service_records(&self) -> Vec<ServiceRecords> {
        let sizes = self.service.iter().map(|(size, counted)| {
            let mut records = ServiceRecords { size: *size, ..counted.records };
            counted.find_timer(&mut records);
            records
        });
        let noise = sizes.filter(|records| records.answers + records.alone > 1).collect();
        most_frequent(noise, |records| records.answers + records.alone, |records| records.size)
    }

    pub(crate) fn gateway_records(&self) -> Vec<GatewayRecords> {
        let sizes = self.gateway.iter().map(|(size, GatewaySize { records, answers })| {
            let most = answers.iter().max_by_key(|(size, times)| (**times, Reverse(**size)));
            let is_usual =
                |times: u64| times >= MIN_OCCURRENCES && times.saturating_mul(5) >= records.answered.saturating_mul(3);
            let by = most.filter(|(_, times)| is_usual(**times)).map(|(size, _)| *size);
            GatewayRecords { size: *size, by, ..*records }
        });
        most_frequent(sizes.collect(), |records| records.times, |records| records.size)
    }
}

struct CountingPass<'a> {
    counts: TrainingCounts,
    previous: &'a TrainingCounts,
    undecided: &'a BTreeSet<u32>,
    limits: &'a TimeLimits,
}

impl CountingPass<'_> {
    fn count_gateway(&mut self, message: &LabelledMessage, flow: &mut TrainingFlow) {
        let Record { start_ns, time_ns, length, .. } = message.record;
        let window = flow.replies.as_mut().filter(|window| start_ns <= window.until_ns.min(window.end_ns));
        let is_labelled = window.as_ref().map(|window| window.is_labelled);
        if let Some(window) = window {
            window.until_ns = time_ns.saturating_add(self.limits.reply_gap_ns);
        }
        if is_labelled != Some(false) {
            let records = &mut self.counts.gateway.entry(length).or_default().records;
            records.times += 1;
            records.replies += u64::from(is_labelled == Some(true));
        }
        let is_telemetry = self.previous.gateway.get(&length).is_some_and(|size| size.records.is_telemetry());
        if message.size_class == SizeClass::Full
            && !is_telemetry
            && let Some((awaiting, _)) = flow.awaiting.take().filter(|(_, until_ns)| start_ns <= *until_ns)
        {
            match awaiting {
                AwaitingReply::Command => self.counts.replied += 1,
                AwaitingReply::Noise(size) => {
                    self.counts.service.entry(size).or_default().records.replied += 1;
                }
            }
        }
        flow.request = Some((time_ns, length));
        flow.history.add_request(message.sized(), length);
    }

    fn count_service(&mut self, message: &LabelledMessage, flow: &mut TrainingFlow) {
        let Record { start_ns, length, .. } = message.record;
        let request = flow.request.take();
        let is_full = message.size_class == SizeClass::Full;
        let is_open = flow.replies.as_ref().is_some_and(|window| start_ns <= window.until_ns.min(window.end_ns));
        let begun = flow.begun.filter(|_| is_full && is_open);
        let goes_on = |size: u32| self.previous.goes_on(size);
        let label = match message.label {
            MessageLabel::NoCommand | MessageLabel::Unlabelled if begun.is_some_and(goes_on) => {
                MessageLabel::ContinuesCommand
            }
            label => label,
        };
        if is_full {
            let is_noise = matches!(label, MessageLabel::NoCommand | MessageLabel::Unlabelled);
            flow.begun = Some(length).filter(|_| !is_noise || goes_on(length));
        }
        match label {
            MessageLabel::StartsCommand => {
                self.counts.service.entry(length).or_default().records.commands += 1;
                let is_recent = |request_ns: i64| start_ns.saturating_sub(request_ns) <= self.limits.answer_within_ns;
                if let Some((_, size)) = request.filter(|(request_ns, _)| is_recent(*request_ns)) {
                    self.counts.gateway.entry(size).or_default().records.commands += 1;
                }
                let window = ReplyWindow::of(message, self.limits);
                flow.replies = Some(window);
                flow.awaiting = Some((AwaitingReply::Command, window.until_ns));
                flow.history.service_burst = ServiceBurst::Command;
            }
            MessageLabel::Doubtful => flow.replies = Some(ReplyWindow::of(message, self.limits)),
            MessageLabel::NoCommand | MessageLabel::Unlabelled => {
                if let Some(size) = begun {
                    *self.counts.service.entry(size).or_default().followed.entry(length).or_default() += 1;
                }
                self.count_noise(message, flow);
            }
            MessageLabel::ContinuesCommand => {
                self.counts.service.entry(length).or_default().parts += 1;
                if let Some(size) = begun {
                    self.counts.service.entry(size).or_default().continued += 1;
                }
            }
        }
    }

    /// Counts a message outside of every labelled command. One that is unlabelled counts only if it is an answer; else it
    /// may be a command, and what the gateway sends after it is neither a reply nor telemetry.
    fn count_noise(&mut self, message: &LabelledMessage, flow: &mut TrainingFlow) {
        let LabelledMessage { record, size_class, .. } = message;
        let length = record.length;
        let is_answered = |size: u32| self.previous.gateway.get(&size).is_none_or(|size| size.records.is_answered());
        let history = &mut flow.history;
        let request =
            history.find_request(message.sized(), self.limits.answer_within_ns, |request| is_answered(request.size));
        if let Some((index, request)) = request {
            history.remove_request(index);
            let size = self.counts.gateway.entry(request.size).or_default();
            size.records.answered += 1;
            *size.answers.entry(length).or_default() += 1;
        }
        let continues_answer =
            history.service_burst == ServiceBurst::Answer && history.is_continued_by(record, self.limits.gap_ns);
        let is_answer = request.is_some() || continues_answer;
        history.service_burst = if is_answer { ServiceBurst::Answer } else { ServiceBurst::None };
        if is_answer {
            self.counts.service.entry(length).or_default().records.answers += 1;
        } else if *size_class == SizeClass::Full
            && (message.label == MessageLabel::Unlabelled || self.undecided.contains(&length))
        {
            history.service_burst = ServiceBurst::Command;
            flow.replies = Some(ReplyWindow::of(message, self.limits));
            flow.awaiting = None;
        } else if message.label == MessageLabel::NoCommand {
            let size = self.counts.service.entry(length).or_default();
            size.records.alone += 1;
            size.times.entry(message.endpoints).or_default().push(message.arrival.time_ns);
            size.silences.extend(message.arrival.silence_ns);
            if *size_class == SizeClass::Full {
                size.full += 1;
                let until_ns = record.time_ns.saturating_add(self.limits.reply_gap_ns);
                flow.awaiting = Some((AwaitingReply::Noise(length), until_ns));
            }
        }
    }
}

impl ServiceSize {
    fn find_timer(&self, records: &mut ServiceRecords) {
        let milliseconds = |ns: i64| ns.unsigned_abs() / 1_000_000;
        let is_most = |count: usize| count >= periodic::MIN_ARRIVALS && count * 5 >= self.silences.len() * 4;
        let idle = periodic::usual_timer(self.silences.iter().copied()).filter(|(_, count)| is_most(*count));
        // The pair with most messages shows the period. All gateways have the same firmware, but each its own phase.
        let longest = self.times.values().max_by_key(|times| times.len());
        let timers = longest.into_iter().flat_map(|times| periodic::interval_timers(times));
        let count_on = |timer: Timer| self.times.values().map(|times| timer.count_on(times)).sum();
        let interval =
            timers.map(|timer| (timer, count_on(timer))).max_by_key(|(_, count)| *count).filter(|(_, count)| {
                idle.is_none_or(|(_, other)| *count > other) && *count as u64 * 5 >= records.alone.saturating_mul(4)
            });
        let Some((timer, count)) = interval.or(idle) else { return };
        let period = if interval.is_some() { &mut records.every_ms } else { &mut records.after_silence_ms };
        *period = Some(milliseconds(timer.period_ns));
        (records.jitter_ms, records.on_beat) = (milliseconds(timer.late_ns), count as u64);
    }
}

fn most_frequent<T>(mut sizes: Vec<T>, times: impl Fn(&T) -> u64, size: impl Fn(&T) -> u32) -> Vec<T> {
    sizes.sort_by_key(|records| (Reverse(times(records)), size(records)));
    sizes.truncate(MAX_NOISE_SIZES);
    sizes.sort_by_key(size);
    sizes
}

#[derive(Debug)]
pub(crate) struct LabelledMessage {
    /// The message as one record: its length is the size of the message.
    pub(crate) record: Record,
    pub(crate) size_class: SizeClass,
    pub(crate) arrival: Arrival,
    pub(crate) endpoints: EndpointPair,
    pub(crate) label: MessageLabel,
}

impl LabelledMessage {
    pub(crate) fn sized(&self) -> SizedRecord<'_> {
        SizedRecord::new(&self.record, self.size_class)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageLabel {
    StartsCommand,
    ContinuesCommand,
    NoCommand,
    Doubtful,
    /// Nothing: it is from the gateway, before the first label or after the last.
    Unlabelled,
}

pub(crate) struct CommandLabels {
    /// By flow and start: the end, and the label of the next message in the command.
    commands: BTreeMap<(u64, i64), (i64, MessageLabel)>,
    span: [i64; 2],
}

impl CommandLabels {
    pub(crate) fn new(commands: &[Command], doubtful: &[Command], span: [i64; 2]) -> Self {
        let entry = |label| move |command: &Command| ((command.flow, command.time_ns), (command.end_ns, label));
        let doubtful = doubtful.iter().map(entry(MessageLabel::Doubtful));
        let commands = doubtful.chain(commands.iter().map(entry(MessageLabel::StartsCommand))).collect();
        Self { commands, span }
    }

    fn next(&mut self, record: &Record) -> MessageLabel {
        if record.direction == Direction::FromGateway {
            return MessageLabel::Unlabelled;
        }
        let before = self.commands.range_mut((record.flow, i64::MIN)..=(record.flow, record.start_ns)).next_back();
        if let Some((_, (_, next))) = before.filter(|(_, (end_ns, _))| record.start_ns <= *end_ns) {
            let label = *next;
            if label == MessageLabel::StartsCommand {
                *next = MessageLabel::ContinuesCommand;
            }
            return label;
        }
        let [first, last] = self.span;
        if (first..=last).contains(&record.start_ns) { MessageLabel::NoCommand } else { MessageLabel::Unlabelled }
    }
}

#[derive(Debug, Default)]
struct ReassembledFlow<'a> {
    history: FlowHistory,
    reassembler: MessageReassembler,
    last: Option<&'a Record>,
}

/// Reassembles messages and labels them. `full_size` is the size of a record of a direction that the next one
/// continues.
pub(crate) fn label_messages(
    records: &[(Record, SizeClass)],
    mut labels: CommandLabels,
    endpoints: &mut FlowEndpoints,
    full_size: PerDirection<Option<u32>>,
    limits: &TimeLimits,
) -> Vec<LabelledMessage> {
    let mut flows: BTreeMap<u64, ReassembledFlow<'_>> = BTreeMap::new();
    let mut messages = Vec::new();
    let mut add = |record: &Record, message: ReassembledMessage, size_class: SizeClass| {
        let ReassembledMessage { size, arrival } = message;
        let record = Record { length: size, start_ns: arrival.time_ns, ..record.clone() };
        let (endpoints, label) = (endpoints.of(record.flow), labels.next(&record));
        messages.push(LabelledMessage { record, size_class, arrival, endpoints, label });
    };
    for (record, size_class) in records {
        let flow = flows.entry(record.flow).or_default();
        let sized = SizedRecord::new(record, *size_class);
        let added = flow.reassembler.add(sized, &flow.history, *full_size.of(record.direction), limits.gap_ns);
        flow.history.remember(sized, limits.same_write_ns());
        let last = flow.last.replace(record);
        if let (Some(ended), Some(last)) = (added.ended, last) {
            add(last, ended, SizeClass::Full);
        }
        if added.is_last {
            // A message with a full record is not tiny.
            add(record, added.message, if added.is_first { *size_class } else { SizeClass::Full });
        }
    }
    messages
}
