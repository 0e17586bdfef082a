//! `sizeleak survey`: what a capture holds, for somebody who knows nothing of it yet.

mod next_steps;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::anyhow;
use clap::Args;
use sizeleak_frame::{Notice, what};
use sizeleak_platform::runtime::Interrupt;
use sizeleak_platform::storage::RunFiles;
use sizeleak_platform::telemetry::Tally;
use sizeleak_platform::telemetry::log::{self, say};
use sizeleak_survey::{Coverage, SurveyOutcome, SurveyRun};

use super::failure::Failure;
use super::output_option::writes_stdout;
use super::report_format::ReportFormatOption;
use super::text_style::ClockOption;

/// Find gateways in captures, and show what they send and receive
#[derive(Debug, Args)]
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
    #[arg(value_name = "CAPTURE", required_unless_present = "input")]
    captures: Vec<PathBuf>,

    /// Read this capture, as CAPTURE does; can be repeated
    #[arg(short = 'r', long, value_name = "FILE")]
    input: Vec<PathBuf>,

    /// Only this address or network; can be repeated [default: every address]
    #[arg(long, value_name = "IP|CIDR", value_delimiter = ',')]
    gateway: Vec<String>,

    #[command(flatten)]
    format: ReportFormatOption,

    #[command(flatten)]
    clock: ClockOption,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let captures = [&arguments.input[..], &arguments.captures].concat();
    let run = SurveyRun { captures: captures.clone(), recursive: true, gateways: arguments.gateway.clone() };
    let times = arguments.clock.times()?;
    let mut files = RunFiles::new();
    files.extend(run.pipeline()?.files(None));
    writes_stdout(&mut files);
    files.check()?;
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
    let is_named = !arguments.gateway.is_empty();
    let next = |address: &_| {
        let is_due = is_named || table::may_be_gateway(address);
        is_due.then(|| next_steps::lines(address, &captures))
    };
    arguments.format.printed().print(&report, Some("addresses"), || table::table(&report, &times, next))?;
    match coverage {
        Coverage::Whole => Ok(ExitCode::SUCCESS),
        Coverage::UntilDamage(damage) => {
            Err(Failure::damaged(&damage, "the survey covers everything before the damage"))
        }
        Coverage::UntilStopped => {
            Err(Failure::with_code(130, anyhow!("stopped; the survey covers everything read until then")))
        }
    }
}
