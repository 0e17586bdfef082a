//! Learns habits from records as they come, before anything is decided about them.

use sizeleak_frame::{Direction, Record};

use crate::flow_history::{FlowHistory, ServiceBurst, SizeClass, SizedRecord};
use crate::options::TimeLimits;
use crate::traffic_profile::{GatewayLengthStats, TrafficProfile};

/// Learns from the next record of a flow.
pub(crate) fn learn(
    heard: SizedRecord<'_>,
    exchange: &mut FlowHistory,
    habits: &mut TrafficProfile,
    times: &TimeLimits,
) {
    let record = heard.record;
    if let Some(length) = exchange.followed(record, times.at_once()).filter(|length| record.length <= *length) {
        habits.learn_followed(record.direction, length);
    }
    if !exchange.is_cut(record, times.gap, habits) {
        match record.direction {
            Direction::FromGateway => learn_gateway(heard, exchange, habits, times),
            Direction::ToGateway => learn_service(heard, exchange, habits, times),
        }
    }
    exchange.remember(heard);
}

fn learn_gateway(heard: SizedRecord<'_>, exchange: &mut FlowHistory, habits: &mut TrafficProfile, times: &TimeLimits) {
    let Record { start_ns, time_ns, length, .. } = *heard.record;
    let kind = habits.gateway.get_or_default(length);
    kind.learn();
    if exchange.command_ns.is_some_and(|command_ns| start_ns.saturating_sub(command_ns) <= times.reply_gap) {
        kind.learn_after_command();
        exchange.command_ns = Some(time_ns);
    }
    exchange.ask(heard, heard.record.length);
}

fn learn_service(heard: SizedRecord<'_>, exchange: &mut FlowHistory, habits: &mut TrafficProfile, times: &TimeLimits) {
    let record = heard.record;
    if let Some(delay_ns) = exchange.delay(record).filter(|delay_ns| *delay_ns <= times.reply_gap) {
        habits.learn_delay(record.length, delay_ns, times);
    }
    let answer_within = habits.answer_within(times);
    let is_answered = |length: &u32| habits.gateway.peek(length).is_none_or(GatewayLengthStats::is_answered);
    let asked = exchange.asked(heard, answer_within, |ask| is_answered(&ask.length)).is_some();
    let continues = exchange.run == ServiceBurst::Answer && exchange.followed(record, times.gap).is_some();
    if asked || continues {
        habits.service.get_or_default(record.length).learn_asked();
        exchange.run = ServiceBurst::Answer;
    } else {
        habits.learn_own(record.length, exchange.occurrence(record));
        exchange.run = ServiceBurst::Command;
        if heard.weight == SizeClass::Full {
            exchange.command_ns = Some(record.time_ns);
        }
    }
    // Whether messages of a length are answered must be learned from all, also from those that seemed not to be.
    if let Some((at, ask)) = exchange.asked(heard, answer_within, |_| true) {
        habits.gateway.get_or_default(ask.length).learn_answered(record.length);
        exchange.answer(at);
    }
}
