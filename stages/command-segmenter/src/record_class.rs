//! Decides by habits what a record is.

use sizeleak_frame::{Direction, Record};

use crate::flow_history::{FlowHistory, Request, ServiceBurst, SizeClass, SizedRecord};
use crate::options::{SAME_PACKET, TimeLimits};
use crate::traffic_profile::{GatewayLengthStats, LengthRole, ServiceLengthStats, TrafficProfile};

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordClass {
    /// The service begins a command.
    Command,
    /// The service continues its command.
    Continued,
    /// The service answers the gateway.
    Answer,
    /// The service shows that it is there.
    KeepAlive,
    /// The gateway replies, if there is a command.
    Reply,
    /// The gateway tells something of its own.
    Telemetry,
    /// Too little for any of these.
    Tiny,
    /// From the service, and of a size that was never seen and that no actions make up.
    Unexplained,
}

/// Decides about the next record of a flow.
pub(crate) fn decide(
    heard: SizedRecord<'_>,
    exchange: &mut FlowHistory,
    habits: &TrafficProfile,
    times: &TimeLimits,
) -> RecordClass {
    let verdict = match heard.record.direction {
        Direction::FromGateway => of_gateway(heard, exchange, habits, times),
        Direction::ToGateway => of_service(heard, exchange, habits, times),
    };
    match verdict {
        RecordClass::Command => exchange.run = ServiceBurst::Command,
        RecordClass::Answer => exchange.run = ServiceBurst::Answer,
        RecordClass::KeepAlive | RecordClass::Tiny | RecordClass::Unexplained => exchange.run = ServiceBurst::Nothing,
        RecordClass::Continued | RecordClass::Reply | RecordClass::Telemetry => {}
    }
    exchange.remember(heard);
    verdict
}

fn of_gateway(
    heard: SizedRecord<'_>,
    exchange: &mut FlowHistory,
    habits: &TrafficProfile,
    times: &TimeLimits,
) -> RecordClass {
    let Record { length, .. } = *heard.record;
    if !exchange.is_cut(heard.record, times.gap, habits) {
        exchange.ask(heard, length);
    }
    match heard.weight {
        SizeClass::Tiny => RecordClass::Tiny,
        SizeClass::Full if habits.gateway.peek(&length).is_some_and(GatewayLengthStats::is_telemetry) => {
            RecordClass::Telemetry
        }
        SizeClass::Full => RecordClass::Reply,
    }
}

fn of_service(
    heard: SizedRecord<'_>,
    exchange: &mut FlowHistory,
    habits: &TrafficProfile,
    times: &TimeLimits,
) -> RecordClass {
    let record = heard.record;
    if exchange.is_cut(record, times.gap, habits) {
        match exchange.run {
            ServiceBurst::Command => return RecordClass::Continued,
            ServiceBurst::Answer => return RecordClass::Answer,
            ServiceBurst::Nothing => {}
        }
    }
    let kind = habits.service.peek(&record.length);
    // Of a piece of a message the length says nothing.
    let is_piece = habits.is_full(record.direction, record.length);
    let role = kind.filter(|_| !is_piece).map_or(LengthRole::Unknown, ServiceLengthStats::role);
    if let Some(at) = answered(heard, role, exchange, habits, times) {
        exchange.answer(at);
        return if heard.weight == SizeClass::Tiny { RecordClass::Tiny } else { RecordClass::Answer };
    }
    if heard.weight == SizeClass::Tiny {
        let is_last_piece = exchange.run == ServiceBurst::Command && exchange.followed(record, SAME_PACKET).is_some();
        return if is_last_piece { RecordClass::Continued } else { RecordClass::Tiny };
    }
    let is_answer = matches!(role, LengthRole::Answer | LengthRole::AlwaysAnswer);
    match exchange.run {
        _ if habits.is_keep_alive(record.length, exchange.occurrence(record)) => RecordClass::KeepAlive,
        _ if role == LengthRole::AlwaysAnswer => RecordClass::Answer,
        ServiceBurst::Answer if is_answer && exchange.followed(record, times.gap).is_some() => RecordClass::Answer,
        ServiceBurst::Command if exchange.followed(record, times.at_once()).is_some() => RecordClass::Continued,
        _ => RecordClass::Command,
    }
}

/// The place of the gateway's message that a record of the service's answers, if it does.
fn answered(
    heard: SizedRecord<'_>,
    role: LengthRole,
    exchange: &FlowHistory,
    habits: &TrafficProfile,
    times: &TimeLimits,
) -> Option<usize> {
    let length = heard.record.length;
    let kind = |ask: &Request| habits.gateway.peek(&ask.length);
    let is_answered = |ask: &Request| kind(ask).is_none_or(GatewayLengthStats::is_answered);
    let is_partner = |ask: &Request| kind(ask).is_none_or(|kind| kind.can_be_answered_by(length));
    let answer_within = habits.answer_within(times);
    let asked = match role {
        LengthRole::Own => None,
        // What is known to answer may do so late.
        LengthRole::AlwaysAnswer => exchange.asked(heard, times.reply_within, is_answered),
        LengthRole::Answer => exchange.asked(heard, answer_within, is_answered),
        LengthRole::Unknown => exchange.asked(heard, answer_within, |ask| is_answered(ask) && is_partner(ask)),
    };
    asked.map(|(at, _)| at)
}
