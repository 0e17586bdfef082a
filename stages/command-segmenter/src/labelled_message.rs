//! Messages of a labelled capture, reassembled, each with what the labels say about it.

use std::collections::BTreeMap;

use sizeleak_frame::{Command, Direction, Record};

use crate::endpoints::{EndpointPair, FlowEndpoints};
use crate::flow_history::{FlowHistory, SizeClass, SizedRecord};
use crate::message::{MessagePart, MessageReassembler, ReassembledMessage};
use crate::options::TimeLimits;
use crate::periodic::Arrival;

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
    /// The message as one record with its size.
    pub(crate) fn sized(&self) -> SizedRecord<'_> {
        SizedRecord::new(&self.record, self.size_class)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageLabel {
    StartsCommand,
    ContinuesCommand,
    NoCommand,
    /// It may be a command.
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
    full_size: impl Fn(Direction) -> Option<u32>,
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
        let added = flow.reassembler.add(sized, &flow.history, full_size(record.direction), limits.gap_ns);
        flow.history.remember(sized, limits.same_write_ns());
        let last = flow.last.replace(record);
        if let (Some(ended), Some(last)) = (added.ended, last) {
            add(last, ended, SizeClass::Full);
        }
        match added.part {
            MessagePart::Whole => add(record, added.message, *size_class),
            // A message with a full record is not tiny.
            MessagePart::Last => add(record, added.message, SizeClass::Full),
            MessagePart::First | MessagePart::Middle => {}
        }
    }
    messages
}
