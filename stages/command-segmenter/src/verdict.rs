//! Decides by habits what a record is.

use sizeleak_frame::{Direction, Record};

use crate::exchange::{Ask, Exchange, Heard, Run, Weight};
use crate::habit::{GatewayKind, Habits, Role, ServiceKind};
use crate::options::{SAME_PACKET, Times};

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
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
pub(crate) fn decide(heard: Heard<'_>, exchange: &mut Exchange, habits: &Habits, times: &Times) -> Verdict {
    let verdict = match heard.record.direction {
        Direction::FromGateway => of_gateway(heard, exchange, habits, times),
        Direction::ToGateway => of_service(heard, exchange, habits, times),
    };
    match verdict {
        Verdict::Command => exchange.run = Run::Command,
        Verdict::Answer => exchange.run = Run::Answer,
        Verdict::KeepAlive | Verdict::Tiny | Verdict::Unexplained => exchange.run = Run::Nothing,
        Verdict::Continued | Verdict::Reply | Verdict::Telemetry => {}
    }
    exchange.remember(heard);
    verdict
}

fn of_gateway(heard: Heard<'_>, exchange: &mut Exchange, habits: &Habits, times: &Times) -> Verdict {
    let Record { length, .. } = *heard.record;
    if !exchange.is_cut(heard.record, times.gap, habits) {
        exchange.ask(heard, length);
    }
    match heard.weight {
        Weight::Tiny => Verdict::Tiny,
        Weight::Full if habits.gateway.peek(&length).is_some_and(GatewayKind::is_telemetry) => Verdict::Telemetry,
        Weight::Full => Verdict::Reply,
    }
}

fn of_service(heard: Heard<'_>, exchange: &mut Exchange, habits: &Habits, times: &Times) -> Verdict {
    let record = heard.record;
    if exchange.is_cut(record, times.gap, habits) {
        match exchange.run {
            Run::Command => return Verdict::Continued,
            Run::Answer => return Verdict::Answer,
            Run::Nothing => {}
        }
    }
    let kind = habits.service.peek(&record.length);
    // Of a piece of a message the length says nothing.
    let is_piece = habits.is_full(record.direction, record.length);
    let role = kind.filter(|_| !is_piece).map_or(Role::Unknown, ServiceKind::role);
    if let Some(at) = answered(heard, role, exchange, habits, times) {
        exchange.answer(at);
        return if heard.weight == Weight::Tiny { Verdict::Tiny } else { Verdict::Answer };
    }
    if heard.weight == Weight::Tiny {
        let is_last_piece = exchange.run == Run::Command && exchange.followed(record, SAME_PACKET).is_some();
        return if is_last_piece { Verdict::Continued } else { Verdict::Tiny };
    }
    let is_answer = matches!(role, Role::Answer | Role::AlwaysAnswer);
    match exchange.run {
        _ if habits.is_keep_alive(record.length, exchange.occurrence(record)) => Verdict::KeepAlive,
        _ if role == Role::AlwaysAnswer => Verdict::Answer,
        Run::Answer if is_answer && exchange.followed(record, times.gap).is_some() => Verdict::Answer,
        Run::Command if exchange.followed(record, times.at_once()).is_some() => Verdict::Continued,
        _ => Verdict::Command,
    }
}

/// The place of the gateway's message that a record of the service's answers, if it does.
fn answered(heard: Heard<'_>, role: Role, exchange: &Exchange, habits: &Habits, times: &Times) -> Option<usize> {
    let length = heard.record.length;
    let kind = |ask: &Ask| habits.gateway.peek(&ask.length);
    let is_answered = |ask: &Ask| kind(ask).is_none_or(GatewayKind::is_answered);
    let is_partner = |ask: &Ask| kind(ask).is_none_or(|kind| kind.can_be_answered_by(length));
    let answer_within = habits.answer_within(times);
    let asked = match role {
        Role::Own => None,
        // What is known to answer may do so late.
        Role::AlwaysAnswer => exchange.asked(heard, times.reply_within, is_answered),
        Role::Answer => exchange.asked(heard, answer_within, is_answered),
        Role::Unknown => exchange.asked(heard, answer_within, |ask| is_answered(ask) && is_partner(ask)),
    };
    asked.map(|(at, _)| at)
}
