//! `sizeleak survey`: what a capture holds, for somebody who knows nothing of it yet, as text for people.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use clap::Args;
use sizeleak_frame::{Notice, Protocol, what};
use sizeleak_learning::MIN_COMMANDS;
use sizeleak_output::TimeFormat;
use sizeleak_platform::runtime::Interrupt;
use sizeleak_platform::telemetry::Tally;
use sizeleak_platform::telemetry::log::{self, say};
use sizeleak_report::document::NONE;
use sizeleak_text::{counted, escaped, width};
use sizeleak_traffic::survey::{
    Coverage, MessageKind, OtherPort, Reason, Server, SizeBin, SurveyOutcome, SurveyReport, SurveyRun, SurveyedAddress,
    SurveyedConnection, SurveyedService, TimesOfSize, Traffic, Verdict, in_words,
};

use super::document::{COLUMNS, Document, indented, line, numbers, paragraph, quoted, rest, spaced};
use super::failure::{damaged, with_code};
use super::output_option::ReportFormatOption;
use super::session::Session;
use super::shared_options::ClockOption;

/// Find gateways in captures, and show what they send and receive
#[derive(Debug, Args)]
#[command(mut_arg("format", |format| format.help("The format: text, json, csv or markdown [default: text]")))]
#[command(after_long_help = "Examples:\n  \
    sizeleak survey home.pcap\n  \
    sizeleak survey captures --format json\n  \
    sizeleak survey monday.pcap.gz tuesday.pcap.gz --gateway 192.168.1.20\n  \
    tcpdump -U -w - | sizeleak survey -\n\n\
    The side that opens a connection counts as its gateway; where the beginning was not captured, the side with the \
    higher port. `--gateway` says it instead. The score is a judgement by the reasons printed with it, no measurement, \
    and a single device with a connection of its own to a cloud looks like a gateway.\n\n\
    What messages look like is the opinion of command-segmenter's algorithm `adaptive`, which has no model: commands are \
    what the service sends unprompted; reports what the gateway sends unprompted; replies follow one of these; answers \
    follow other messages; polls and keep-alives come by a timer; small ones have fewer bytes than `min-size`. Sizes are \
    lengths on the wire. Connections without TLS are sized by bursts of their segments (`plain-tcp`).")]
pub(crate) struct Arguments {
    /// The captures (pcap or pcapng, also compressed; `-` is stdin)
    #[arg(value_name = "CAPTURE", required = true)]
    captures: Vec<PathBuf>,

    /// Only this address or network; can be repeated [default: every address]
    #[arg(long, value_name = "IP|CIDR", value_delimiter = ',')]
    gateway: Vec<String>,

    #[command(flatten)]
    format: ReportFormatOption,

    #[command(flatten)]
    clock: ClockOption,
}

pub(crate) fn run(arguments: &Arguments, session: &mut Session) -> Result<()> {
    let Arguments { captures, gateway, .. } = arguments;
    let run = SurveyRun { captures: captures.clone(), recursive: true, gateways: gateway.clone() };
    let times = arguments.clock.times()?;
    session.check(&run.pipeline()?)?;
    let interrupt = Interrupt::on_signals()?;
    let mut notices = Tally::default();
    let is_verbose = log::is_verbose();
    let outcome = run.survey(&interrupt, &mut |notice: &Notice| {
        if is_verbose {
            log::notice(notice);
        } else if ![what::NOT_TLS, what::CUT, what::FAILED].contains(&&*notice.what) {
            // The survey says itself which connections carry no TLS, and its error how it ended.
            notices.add(&notice.what, 1);
        }
    });
    if outcome.is_ok() && !notices.is_empty() {
        say("sizeleak", &format!("notices: {notices} (-v prints each)"));
    }
    let SurveyOutcome { report, coverage } = outcome?;
    let is_named = !gateway.is_empty();
    let next = |address: &_| {
        let is_due = is_named || may_be_gateway(address);
        is_due.then(|| next_steps(address, captures))
    };
    arguments.format.printed().write(&report, Some("addresses"), || table(&report, &times, next))?;
    match coverage {
        Coverage::Whole => Ok(()),
        Coverage::UntilDamage(damage) => Err(damaged(&damage, "the survey covers everything before the damage")),
        Coverage::UntilStopped => Err(with_code(130, anyhow!("stopped; the survey covers everything read until then"))),
    }
}

const SAVED: &str = "capture.pcap";

fn next_steps(address: &SurveyedAddress, captures: &[PathBuf]) -> Document {
    let gateway = address.address;
    let commands = address.services.iter().map(commands_of).sum::<u64>();
    let Some(main) = address.services.iter().max_by_key(|service| commands_of(service)).filter(|_| commands > 0) else {
        return paragraph(nothing_found(address), 2);
    };
    let plain = main.protocol.as_deref() == Some(Protocol::Tcp.name());
    let mut lines = [paragraph(found(address, main, commands), 2), paragraph(labels(commands), 2)].concat();
    let others = address.services.iter().filter(|service| commands_of(service) > 0).count() > 1;
    let mut options = format!("--gateway {gateway}");
    if plain {
        options += " --set record-sizer.plain-tcp=true";
    }
    if others {
        let text = format!("  To leave out its other services, add {} to both.", service_option(main));
        lines.extend(paragraph(text, 2));
    }
    let inputs =
        captures.iter().map(|capture| quoted(&kept(capture).display().to_string())).collect::<Vec<_>>().join(" ");
    if captures.iter().any(|capture| capture.as_os_str() == "-") {
        lines.extend(line(format!("  Save what came by stdin to a file first, here {SAVED}.")));
    }
    lines.extend(command_line(&format!("sizeleak run {inputs}"), &format!("{options} --kind command")));
    let learn = format!("sizeleak learn {inputs} --labels labels.csv");
    lines.extend(command_line(&learn, &format!("{options} -o model.toml")));
    lines
}

fn command_line(command: &str, options: &str) -> Document {
    let command = format!("    {command}");
    let is_short = width(&command) + 1 + width(options) <= COLUMNS;
    if is_short {
        return line(format!("{command} {options}"));
    }
    [line(format!("{command} \\")), line(format!("      {options}"))].concat()
}

fn commands_of(service: &SurveyedService) -> u64 {
    kind_of(service, "commands").map_or(0, |kind| kind.count)
}

fn kind_of<'a>(service: &'a SurveyedService, name: &str) -> Option<&'a MessageKind> {
    service.traffic.kinds.iter().find(|kind| kind.kind == name)
}

fn found(address: &SurveyedAddress, main: &SurveyedService, commands: u64) -> String {
    let of_main = commands_of(main);
    let replied = kind_of(main, "commands").and_then(|kind| kind.replied).unwrap_or_default();
    let named = name(main);
    let verb = if commands == 1 { "message to it looks like a command" } else { "messages to it look like commands" };
    let from = if of_main == commands { format!("from {named}") } else { format!("{of_main} of them from {named}") };
    let doubt =
        if replied * 2 < of_main { ". The gateway replies to few of them, so they may be something else" } else { "" };
    let sized = match address.services.iter().find(|service| is_unsized(service)) {
        Some(service) => format!(". What {} sends cannot be sized", name(service)),
        None => String::new(),
    };
    format!("  {commands} {verb}, {from}{doubt}{sized}. The first line below lists them, with their times.")
}

fn labels(commands: u64) -> String {
    let enough = if commands >= MIN_COMMANDS as u64 {
        format!("of at least {MIN_COMMANDS} of them")
    } else {
        format!("and capture more, until there are {MIN_COMMANDS} commands or more (`learn` warns below that)")
    };
    format!(
        "  Write down what you commanded when, {enough}, in labels.csv: a column `time` and one for each action \
         (`sizeleak init` writes a template). Each action is needed alone, on one device and on two. Without labels, \
         leave out `--labels`: actions are called action-1 and so on."
    )
}

fn nothing_found(address: &SurveyedAddress) -> String {
    let reports = address.services.iter().filter_map(|service| kind_of(service, "reports")).map(|kind| kind.count);
    let reports: u64 = reports.sum();
    let advice = if address.services.iter().all(is_unsized) {
        "its services use protocols whose messages cannot be sized".to_owned()
    } else if reports > 0 {
        format!(
            "but it sends {reports} reports: if those are what you look for, add \
             `--set command-segmenter.direction=from` to `run` and `learn`"
        )
    } else {
        "command devices while you capture, or check with `--gateway` whether this is the right side".to_owned()
    };
    format!("  no message to it looks like a command; {advice}.")
}

fn is_unsized(service: &SurveyedService) -> bool {
    service.protocol.is_none()
}

fn service_option(service: &SurveyedService) -> String {
    let addresses: std::collections::BTreeSet<String> =
        service.ends.iter().map(|end| format!("\"{}\"", end.ip())).collect();
    let addresses = addresses.into_iter().collect::<Vec<_>>().join(",");
    format!("`--set 'flow-filter.service=[{addresses}]'` ({})", name(service))
}

fn name(service: &SurveyedService) -> String {
    match (&service.server_name, service.ends.first()) {
        (Some(name), _) => escaped(name).into_owned(),
        (None, Some(end)) => end.to_string(),
        (None, None) => String::new(),
    }
}

fn kept(capture: &Path) -> &Path {
    if capture.as_os_str() == "-" { Path::new(SAVED) } else { capture }
}

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

fn table(report: &SurveyReport, times: &TimeFormat, next: impl Fn(&SurveyedAddress) -> Option<Document>) -> Document {
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

fn may_be_gateway(address: &SurveyedAddress) -> bool {
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
    fn too_few_commands_are_said_to_be_too_few() {
        assert!(labels(7).contains("capture more") && !labels(50).contains("capture more"));
    }

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
