//! `sizeleak survey`: what a capture holds, for somebody who knows nothing of it yet.

mod table;

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use clap::Args;
use sizeleak_frame::{Notice, Protocol, what};
use sizeleak_learning::MIN_COMMANDS;
use sizeleak_platform::runtime::Interrupt;
use sizeleak_platform::telemetry::Tally;
use sizeleak_platform::telemetry::log::{self, say};
use sizeleak_text::{escaped, width};
use sizeleak_traffic::survey::{Coverage, MessageKind, SurveyOutcome, SurveyRun, SurveyedAddress, SurveyedService};

use super::failure::{damaged, with_code};
use super::report_format::ReportFormatOption;
use super::session::Session;
use super::shared_options::ClockOption;
use crate::command::document::{COLUMNS, Document, line, paragraph, quoted};

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
        let is_due = is_named || table::may_be_gateway(address);
        is_due.then(|| next_steps(address, captures))
    };
    arguments.format.printed().write(&report, Some("addresses"), || table::table(&report, &times, next))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_commands_are_said_to_be_too_few() {
        assert!(labels(7).contains("capture more") && !labels(50).contains("capture more"));
    }
}
