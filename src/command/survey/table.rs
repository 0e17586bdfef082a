//! A survey as text for people.

use sizeleak_frame::Protocol;
use sizeleak_output::TimeFormat;
use sizeleak_report::document::NONE;
use sizeleak_text::{counted, escaped, width};
use sizeleak_traffic::survey::{
    MessageKind, OtherPort, Reason, Server, SizeBin, SurveyReport, SurveyedAddress, SurveyedConnection,
    SurveyedService, TimesOfSize, Traffic, Verdict, in_words,
};

use crate::command::document::{Document, indented, line, numbers, paragraph, rest, spaced};

/// How many addresses are listed, and how many of them are shown with their services.
const MAX_ADDRESSES: usize = 10;
const MAX_SHOWN: usize = 3;

/// How many services of an address, connections of a service, servers and ports are shown.
const MAX_SERVICES: usize = 4;
const MAX_CONNECTIONS: usize = 3;
const MAX_OTHERS: usize = 5;

/// The columns of sizes, and of the longest bar.
const SIZES: usize = 46;
const BAR: u64 = 22;

pub(super) fn table(
    report: &SurveyReport,
    times: &TimeFormat,
    next: impl Fn(&SurveyedAddress) -> Option<Document>,
) -> Document {
    let likely = report.addresses.iter().filter(|address| may_be_gateway(address)).count();
    let mut parts = vec![conclusion(report, times), addresses(&report.addresses)];
    // At least one, to show what there is; the likely and the possible ones come first.
    for address in report.addresses.iter().take(likely.clamp(1, MAX_SHOWN)) {
        parts.push(of_address(address, times));
        parts.extend(next(address).map(|lines| [line(format!("Next, for {}:", address.address)), lines].concat()));
    }
    parts.extend([servers(&report.servers), omissions(report)]);
    spaced(parts)
}

pub(super) fn may_be_gateway(address: &SurveyedAddress) -> bool {
    matches!(address.verdict, Verdict::Likely | Verdict::Possible)
}

fn conclusion(report: &SurveyReport, times: &TimeFormat) -> Document {
    let span = report.span_ns.map_or_else(String::new, |[first, last]| {
        let heading = times.heading().trim_start_matches("time ");
        format!("{} of traffic from {} {heading} on: ", in_words(last.saturating_sub(first)), seconds(times, first))
    });
    let count = |verdict| report.addresses.iter().filter(|address| address.verdict == verdict).count();
    let found = match (count(Verdict::Likely), count(Verdict::Possible)) {
        _ if report.addresses.is_empty() => {
            let others = report.silent_connections;
            let sized = if report.not_sized.is_empty() {
                "there is no connection with TLS, DTLS or QUIC, and none with messages over TCP"
            } else {
                "no connection could be sized; below is what there is instead"
            };
            let others = match others {
                0 => String::new(),
                others => format!(" ({})", counted(others, "other", "others")),
            };
            format!("{sized}{others}, so nothing can be said about gateways")
        }
        (0, 0) => "no address looks like a gateway. Longer captures tell more: ten minutes or more, of commands too, \
                   where all traffic between the gateway and the internet passes (the router)"
            .to_owned(),
        (0, 1) => "no address clearly looks like a gateway, one may be one".to_owned(),
        (0, possible) => format!("no address clearly looks like a gateway, {possible} may be one"),
        (1, 0) => "one address looks like a gateway, or like a single device with a cloud of its own".to_owned(),
        (1, possible) => format!("one address looks like a gateway, {possible} more may be one"),
        (likely, possible) => {
            let more = if possible > 0 { format!(", {possible} more may be one") } else { String::new() };
            format!(
                "{likely} addresses look like gateways, or like devices with a cloud of their own{more}: their services \
                 tell which is yours"
            )
        }
    };
    paragraph(format!("{span}{found}."), 0)
}

fn addresses(addresses: &[SurveyedAddress]) -> Document {
    if addresses.is_empty() {
        return Document::new();
    }
    let row = |address: &SurveyedAddress| {
        let messages = address.services.iter().map(|service| messages(&service.traffic)).sum::<u64>();
        [
            address.address.to_string(),
            verdict(address.verdict).0.to_owned(),
            address.score.to_string(),
            messages.to_string(),
            address.services.len().to_string(),
        ]
    };
    let header = ["address", "gateway?", "score", "messages", "services"];
    let table = numbers(header, addresses.iter().take(MAX_ADDRESSES).map(row));
    let more = rest(addresses.len(), MAX_ADDRESSES, |more| format!("… {more} more (`--format json` has all)"));
    [table, more].concat()
}

/// In a word, and in a sentence.
fn verdict(verdict: Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Likely => ("likely", "looks like a gateway"),
        Verdict::Possible => ("possible", "may be a gateway"),
        Verdict::Unclear => ("unclear", "has too little traffic to tell"),
        Verdict::Unlikely => ("unlikely", "does not look like a gateway"),
    }
}

fn of_address(address: &SurveyedAddress, times: &TimeFormat) -> Document {
    let (_, is) = verdict(address.verdict);
    let reasons = address.reasons.iter().map(|Reason { points, text }| paragraph(format!("{points:>+5}  {text}"), 7));
    let services = address.services.iter().take(MAX_SERVICES);
    let title = line(format!("{} {is}: {} of 100 points", address.address, address.score));
    let mut parts = vec![title.into_iter().chain(reasons.flatten()).collect()];
    parts.extend(services.map(|service| of_service(service, times)));
    parts.push(rest(address.services.len(), MAX_SERVICES, |more| {
        format!(
            "  … {} with as many messages or fewer (`--format json` has all)",
            counted(more, "more service", "more services")
        )
    }));
    parts.push(other_ports(&address.other_ports));
    spaced(parts)
}

fn other_ports(ports: &[OtherPort]) -> Document {
    let named = ports.iter().take(MAX_OTHERS).map(|other| {
        let (transport, port) = (other.transport.to_uppercase(), other.port);
        format!("{transport} port {port} ({})", counted(other.connections, "connection", "connections"))
    });
    let named = named.collect::<Vec<_>>().join(", ");
    let more = if ports.len() > MAX_OTHERS { ", …" } else { "" };
    let text = format!("  without messages that could be sized: {named}{more}");
    if ports.is_empty() { Document::new() } else { paragraph(text, 2) }
}

fn of_service(service: &SurveyedService, times: &TimeFormat) -> Document {
    let ends = service.ends.iter().take(2).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let ends = match service.ends.len().checked_sub(2) {
        Some(more @ 1..) => format!("{ends} and {more} more"),
        _ => ends,
    };
    let name = service.server_name.as_deref().map_or_else(String::new, |name| format!("{}, ", escaped(name)));
    let text = paragraph(format!("  {name}{ends}: {}", carried(service)), 4);
    let traffic = &service.traffic;
    if messages(traffic) == 0 {
        return text;
    }
    let shown = service.connections.iter().take(MAX_CONNECTIONS);
    let connections = numbers(
        [&format!("began{}", times.heading().trim_start_matches("time")), "open for", "to it", "from it", "handshake"],
        shown.map(|connection| connection_row(connection, times)),
    );
    let more = rest(service.connections.len(), MAX_CONNECTIONS, |more| {
        format!("    … {} with as many messages or fewer", counted(more, "more connection", "more connections"))
    });
    let (kinds, histogram) = (indented(kinds(&traffic.kinds), 4), indented(histogram(&traffic.histogram), 4));
    spaced([[text, indented(connections, 4), more].concat(), kinds, histogram])
}

fn carried(service: &SurveyedService) -> String {
    let joined = service.joined_mid_stream;
    let mid_stream = match (joined, service.connections.len()) {
        (0, _) => String::new(),
        (_, 1) => "; no handshake seen at its beginning".to_owned(),
        (joined, all) => format!("; no handshake seen at the beginning of {joined} of {all} connections"),
    };
    let by_segments = if service.sized_by_segments > 0 { "; no payload captured: sized by segments" } else { "" };
    let known = |texts: &[String]| texts.iter().map(|text| escaped(text).into_owned()).collect::<Vec<_>>().join(", ");
    match service.protocol.as_deref() {
        Some(protocol) if Protocol::has_tls_handshake(protocol) => {
            let versions = known(&service.tls_versions);
            let version = match (protocol, versions.is_empty()) {
                ("quic", true) => "QUIC".to_owned(),
                ("quic", false) => format!("QUIC, {versions}"),
                ("tls", true) => "TLS, version unknown".to_owned(),
                (_, true) => "DTLS, version unknown".to_owned(),
                (_, false) => versions,
            };
            let suites = known(&service.cipher_suites);
            let suite = if suites.is_empty() { "suite unknown".to_owned() } else { suites };
            let opened = if service.opened_by_service > 0 { "; the other side opens it" } else { "" };
            format!("{version}, {suite}{opened}{mid_stream}{by_segments}")
        }
        Some("matter") => "Matter, sizes exact".to_owned(),
        Some("wireguard") => "a tunnel of WireGuard: padded packets of all that is in it".to_owned(),
        Some("esp") => "a tunnel of IPsec: packets of all that is in it".to_owned(),
        Some("tcp") => "no TLS, no QUIC; bursts of TCP segments stand for messages".to_owned(),
        Some(name) => format!("{}, by its framing over TCP", escaped(name)),
        None => "no TLS, no QUIC".to_owned(),
    }
}

fn connection_row(connection: &SurveyedConnection, times: &TimeFormat) -> [String; 5] {
    let [first, open] = connection.span_ns.map_or_else(
        || [NONE.to_owned(), NONE.to_owned()],
        |[first, last]| [seconds(times, first), in_words(last.saturating_sub(first))],
    );
    let handshake = match connection.joined_mid_stream {
        Some(false) => "seen",
        Some(true) if connection.cipher_suite.is_some() => "only later",
        Some(true) => "not seen",
        None => NONE,
    };
    let Traffic { to_gateway, from_gateway, .. } = connection.traffic;
    [first, open, to_gateway.to_string(), from_gateway.to_string(), handshake.to_owned()]
}

/// The messages by what they look like, with their most frequent sizes.
fn kinds(kinds: &[MessageKind]) -> Document {
    let row = |kind: &MessageKind| {
        let way = if kind.direction == "to_gateway" { "to it" } else { "from it" };
        line(format!("{way:<7}  {:<11}  {:>6}  {}", kind.kind, kind.count, sizes(&kind.sizes, kind.other_sizes)))
    };
    let header = line("what they look like   count  sizes in bytes on the wire (how often)");
    std::iter::once(header).chain(kinds.iter().map(row)).flatten().collect()
}

/// Sizes as far as they fit into a line, the most frequent first.
fn sizes(sizes: &[TimesOfSize], others: u64) -> String {
    let mut text = String::new();
    let (mut shown, mut rest) = (0, others.saturating_add(sizes.iter().map(|size| size.times).sum::<u64>()));
    for TimesOfSize { size, times } in sizes {
        let comma = if text.is_empty() { "" } else { ", " };
        let more = format!("{comma}{size} ({times})");
        let left = rest - times;
        let tail = if left > 0 { format!(", … ({left})").len() } else { 0 };
        if width(&text) + more.len() + tail > SIZES && shown > 0 {
            break;
        }
        text += &more;
        rest = left;
        shown += 1;
    }
    if rest > 0 { format!("{text}, … ({rest})") } else { text }
}

fn histogram(bins: &[SizeBin]) -> Document {
    let most = bins.iter().map(|bin| bin.to_gateway.max(bin.from_gateway)).max().unwrap_or_default().max(1);
    // A bar for whatever is there at all.
    let bar = |count: u64| "#".repeat(count.saturating_mul(BAR).div_ceil(most) as usize);
    let row = |bin: &SizeBin| {
        let range = bin.to.map_or_else(|| format!("from {}", bin.from), |to| format!("{}–{to}", bin.from));
        let (to, from) = (bin.to_gateway, bin.from_gateway);
        let blank = " ".repeat(11_usize.saturating_sub(width(&range)));
        let bars = format!("{blank}{range}  {to:>6} {:<22}  {from:>6} {}", bar(to), bar(from));
        line(bars.trim_end())
    };
    let header = line("      bytes   to it                         from it");
    std::iter::once(header).chain(bins.iter().map(row)).flatten().collect()
}

fn servers(servers: &[Server]) -> Document {
    if servers.is_empty() {
        return Document::new();
    }
    let named = servers.iter().take(MAX_OTHERS).map(|server| {
        let messages = counted(server.messages, "message", "messages");
        let clients = counted(server.clients, "address", "addresses");
        format!("{} ({messages}, from {clients})", server.address)
    });
    let more = if servers.len() > MAX_OTHERS { ", …" } else { "" };
    let named = named.collect::<Vec<_>>().join(", ");
    let advice = "if one of them is the gateway, name it with `--gateway`";
    let text = format!("Only others opened connections to: {named}{more}; {advice}.");
    paragraph(text, 0)
}

fn omissions(report: &SurveyReport) -> Document {
    let left_out = (report.left_out > 0).then(|| {
        let few = counted(report.left_out, "connection or address", "connections or addresses");
        format!("{few} with few messages left out: there were too many.")
    });
    let suppressed = (report.suppressed_notices > 0).then(|| {
        "Some connections that carry no TLS may be shown as TLS here: there were too many to remember all.".to_owned()
    });
    let not_sized = report.not_sized.iter().map(|sentence| format!("{sentence}."));
    let sentences: Vec<String> = left_out.into_iter().chain(suppressed).chain(not_sized).collect();
    if sentences.is_empty() { Document::new() } else { paragraph(sentences.join(" "), 0) }
}

fn messages(traffic: &Traffic) -> u64 {
    traffic.to_gateway.saturating_add(traffic.from_gateway)
}

fn seconds(times: &TimeFormat, time_ns: i64) -> String {
    times.strftime(time_ns, "%Y-%m-%d %H:%M:%S")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::document::{COLUMNS, as_text};

    #[test]
    fn sizes_that_do_not_fit_are_counted() {
        let all: Vec<TimesOfSize> = (0..30).map(|size| TimesOfSize { size: 100 + size, times: 2 }).collect();
        let line = sizes(&all, 7);
        assert!(width(&line) <= SIZES && line.starts_with("100 (2), 101 (2)"), "{line}");
        let shown = line.matches("(2)").count() as u64;
        assert!(line.ends_with(&format!("… ({})", 60 + 7 - 2 * shown)), "{line}");
        assert_eq!(sizes(&all[..2], 0), "100 (2), 101 (2)");
    }

    #[test]
    fn every_range_with_messages_has_a_bar() {
        let bin = |from, to_gateway, from_gateway| SizeBin { from, to: Some(2 * from - 1), to_gateway, from_gateway };
        let text = as_text(&histogram(&[bin(64, 10_000, 1), bin(128, 0, 5000)]), COLUMNS);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1].matches('#').count(), 23, "{text}");
        assert_eq!(lines[2].matches('#').count(), 11, "{text}");
        assert!(lines.iter().all(|line| width(line) <= COLUMNS - 4), "{text}");
    }
}
