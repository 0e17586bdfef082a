//! How much an address looks like a gateway, and why.
//!
//! A gateway keeps a connection to a service outside, on which small messages go both ways, few of them, some by a
//! timer; the service begins exchanges, and the gateway replies. A computer or a phone talks to many services and moves
//! large amounts. The points are a judgement, not a measurement: they order addresses, and the reasons are printed
//! beside them.

use std::net::IpAddr;

use sizeleak_command_segmenter::RecordRole;
use sizeleak_frame::Protocol;
use sizeleak_packet::is_private;
use sizeleak_text::{escaped, shortened};

use crate::survey::connection::{AddressTally, MANY_CLIENTS};
use crate::survey::report::{Reason, Verdict};
use crate::survey::services::Service;

const MAX_NAME_COLUMNS: usize = 60;

const SECOND_NS: i64 = 1_000_000_000;

/// A connection that is open for as long as this is one that is kept.
const LONG_NS: i64 = 600 * SECOND_NS;

/// Shorter connections show neither that they are kept nor a rate.
const SHORT_NS: i64 = 60 * SECOND_NS;

const SMALL: u64 = 2048;

/// With fewer messages than this in each direction, their sizes are no reason.
const FEW_MESSAGES: u64 = 10;

/// With fewer messages than this on all connections to a service, there is no reason at all.
const MIN_MESSAGES: u64 = 20;

/// The number of messages from which on an address shows what it is.
const MANY_MESSAGES: u64 = 200;

const MAX_A_MINUTE: f64 = 120.0;

const MIN_PERIODIC: u64 = 3;

/// The fewest messages that look like commands and count: fewer may do so by chance.
const MIN_COMMANDS: u64 = 5;

/// Gateways have no more services than this.
const FEW_SERVICES: usize = 5;

/// Computers and phones have more than this.
const MANY_SERVICES: usize = 20;

/// The score from which on an address is likely to be a gateway, and that from which on it may be one.
const LIKELY: u32 = 70;
const POSSIBLE: u32 = 40;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Judgement {
    pub(crate) score: u32,
    pub(crate) verdict: Verdict,
    pub(crate) reasons: Vec<Reason>,
}

/// Judges an address by what was counted of it and by its services; `span_ns` is how long the capture is.
pub(crate) fn judge(address: IpAddr, tally: &AddressTally, services: &[Service<'_>], span_ns: i64) -> Judgement {
    let sum = |reasons: &[Reason]| reasons.iter().map(|reason| reason.points).sum::<i32>();
    let of_services = services.iter().map(|service| of_service(service, span_ns));
    // The first of several with as many points has the most messages.
    let best = of_services.reduce(|best, other| if sum(&other) > sum(&best) { other } else { best });
    let of_address = is_private(address).then(|| reason(15, "its address is of a private network"));
    let reasons = [of_address.as_slice(), &best.unwrap_or_default(), &of_all_traffic(tally)].concat();
    let score = sum(&reasons).clamp(0, 100).unsigned_abs();
    let is_enough = |service: &Service<'_>| {
        service.messages.count() >= MIN_MESSAGES && duration_ns(service) >= SHORT_NS && service.protocol.is_some()
    };
    let verdict = match score {
        // Many short connections that show nothing of a gateway show that there is none.
        ..POSSIBLE if tally.messages >= MANY_MESSAGES => Verdict::Unlikely,
        _ if !services.iter().any(is_enough) => Verdict::Unclear,
        LIKELY.. => Verdict::Likely,
        POSSIBLE.. => Verdict::Possible,
        _ => Verdict::Unlikely,
    };
    Judgement { score, verdict, reasons }
}

fn of_service(service: &Service<'_>, span_ns: i64) -> Vec<Reason> {
    let name = shortened(&escaped(&service.name()), MAX_NAME_COLUMNS).into_owned();
    let messages = &service.messages;
    let [to, from] = messages.sizes.both();
    let duration_ns = duration_ns(service);
    let mut reasons = Vec::new();
    if service.connections.iter().any(|(_, connection)| !is_private(connection.service.ip())) {
        reasons.extend(kept_connection(&name, duration_ns, span_ns));
    }
    if to.count >= FEW_MESSAGES && from.count >= FEW_MESSAGES {
        let small = to.below(SMALL).saturating_add(from.below(SMALL));
        if small.saturating_mul(10) >= messages.count().saturating_mul(9) {
            reasons.push(reason(15, &format!("messages with {name} are small both ways (most below {SMALL} bytes)")));
        }
    }
    let minutes = covered_ns(service) as f64 / (60.0 * SECOND_NS as f64);
    if minutes >= 1.0 && messages.count() >= FEW_MESSAGES {
        let rate = messages.count() as f64 / minutes;
        if rate <= MAX_A_MINUTE {
            reasons.push(reason(10, &format!("there are few messages: {rate:.1} a minute")));
        }
    }
    let periodic = messages.of_role(RecordRole::Periodic);
    let small = messages.of_role(RecordRole::Small);
    if periodic.saturating_add(small) >= MIN_PERIODIC {
        let text = match (periodic, small) {
            (0, small) => format!("{small} messages are as small as keep-alives"),
            (periodic, 0) => format!("{periodic} messages come by a timer"),
            _ => format!("{periodic} messages come by a timer, {small} others are as small as keep-alives"),
        };
        reasons.push(reason(10, &text));
    }
    if service.protocol == Some(Protocol::Tcp.name()) {
        reasons.push(reason(-15, "without TLS, many programs of computers and phones look like this, too"));
    }
    let (commands, replied) = (messages.unprompted.to_gateway.sizes.count, messages.unprompted.to_gateway.replied);
    if commands >= MIN_COMMANDS {
        let points = if replied.saturating_mul(2) >= commands { 20 } else { 10 };
        let text = format!("the service sent {commands} messages unprompted, {replied} of which were replied to");
        reasons.push(reason(points, &text));
    }
    reasons
}

fn kept_connection(name: &str, duration_ns: i64, span_ns: i64) -> Option<Reason> {
    let open = in_words(duration_ns);
    if duration_ns >= LONG_NS {
        return Some(reason(25, &format!("a connection to {name} outside was open for {open}")));
    }
    let is_most = duration_ns.saturating_mul(5) >= span_ns.saturating_mul(4);
    (duration_ns >= SHORT_NS && is_most)
        .then(|| reason(15, &format!("a connection to {name} outside was open for {open}, most of the capture")))
}

fn of_all_traffic(tally: &AddressTally) -> Vec<Reason> {
    let mut reasons = Vec::new();
    match tally.services.len() {
        0 => {}
        services if services > MANY_SERVICES => {
            let text = format!("it talks to {services} services or more, as computers and phones do");
            reasons.push(reason(-25, &text));
        }
        1 => reasons.push(reason(5, "it talks to 1 service")),
        services if services <= FEW_SERVICES => {
            reasons.push(reason(5, &format!("it talks to {services} services")));
        }
        _ => {}
    }
    if tally.messages >= MIN_MESSAGES && tally.large.saturating_mul(5) >= tally.messages {
        let percent = tally.large as f64 / tally.messages as f64 * 100.0;
        reasons.push(reason(-20, &format!("{percent:.0} % of all its messages are parts of large transfers")));
    }
    let outside = tally.clients.iter().filter(|client| !is_private(**client)).count();
    if outside >= MANY_CLIENTS {
        reasons.push(reason(-40, &format!("it is a server: {outside} addresses outside or more connect to it")));
    }
    reasons
}

fn reason(points: i32, text: &str) -> Reason {
    Reason { points, text: text.to_owned() }
}

fn duration_ns(service: &Service<'_>) -> i64 {
    service.connections.iter().map(|(_, connection)| connection.duration_ns()).max().unwrap_or_default()
}

fn covered_ns(service: &Service<'_>) -> i64 {
    let spans = || service.connections.iter().filter_map(|(_, connection)| connection.span_ns);
    let (first, last) = (spans().map(|[first, _]| first).min(), spans().map(|[_, last]| last).max());
    first.zip(last).map_or(0, |(first, last)| last.saturating_sub(first))
}

/// A duration in nanoseconds, in its two greatest units: `2 h 31 min`.
pub fn in_words(duration_ns: i64) -> String {
    let seconds = duration_ns.max(0) / 1_000_000_000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |greater: i64, unit: &str, lesser: i64, lesser_unit: &str| match lesser {
        0 => format!("{greater} {unit}"),
        _ => format!("{greater} {unit} {lesser} {lesser_unit}"),
    };
    match seconds {
        0 => "under 1 s".to_owned(),
        1..60 => format!("{seconds} s"),
        60..3600 => two(minutes, "min", seconds % 60, "s"),
        3600..86_400 => two(hours, "h", minutes % 60, "min"),
        _ => two(days, "d", hours % 24, "h"),
    }
}

#[cfg(test)]
mod tests;
