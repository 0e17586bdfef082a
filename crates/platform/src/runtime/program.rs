//! A command-line program of a stage: flags, frames on stdin and stdout, everything else on stderr, exit codes.

use std::env;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Instant, SystemTime};

use crate::storage::{OutputFile, RunFiles};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use sizeleak_frame::{Frame, Summary};

use crate::telemetry::log::{self, LogFlags, complain, exit_with_usage, say};
use crate::telemetry::metrics::MetricsServer;
use crate::telemetry::{CaptureFaults, FileProgress, Tally, Telemetry, write_latency_log};

use crate::runtime::{
    Access, ConfigureError, Interrupt, Outcome, Sandbox, StageOptions, StreamInput, StreamOutput, stdin, widen_pipe,
};

/// The heading of flags that measure a run or limit it, in the help of all programs.
pub const MEASURING: &str = "Measuring and limits";

/// The flag that turns the sandbox off.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct SandboxFlags {
    /// Keep the right to open any file and to make any system call
    #[arg(long, hide_short_help = true, help_heading = MEASURING)]
    no_sandbox: bool,
}

impl SandboxFlags {
    pub fn are_on(self) -> bool {
        !self.no_sandbox
    }
}

/// The flags of every stage.
#[derive(Debug, Clone, Default, Args)]
pub struct CommonFlags {
    #[command(flatten)]
    log: LogFlags,
    /// At the end, print a table of the latencies of this stage and all stages before it on stderr
    #[arg(long, hide_short_help = true, help_heading = MEASURING)]
    latency: bool,
    /// Write those latencies to FILE as an HdrHistogram interval log
    #[arg(long, value_name = "FILE", hide_short_help = true, help_heading = MEASURING)]
    latency_log: Option<PathBuf>,
    #[command(flatten)]
    metrics: MetricsFlags,
    #[command(flatten)]
    sandbox: SandboxFlags,
}

impl CommonFlags {
    /// What a stage's program opens while it runs; `None` without a sandbox.
    fn access(&self, options: &impl StageOptions) -> Option<Access> {
        self.sandbox.are_on().then(|| {
            let mut access = options.access();
            if let Some(log) = &self.latency_log {
                access.write_beside(log);
            }
            access
        })
    }
}

/// The flag that turns metrics on.
#[derive(Debug, Clone, Default, Args)]
pub struct MetricsFlags {
    /// Serve metrics for Prometheus over HTTP at ADDR, under /metrics, until the run ends. ADDR is IP:PORT or
    /// localhost:PORT on this machine (loopback); port 0 picks a free port. The URL is printed on stderr
    #[arg(long, value_name = "ADDR", hide_short_help = true, help_heading = MEASURING)]
    metrics: Option<String>,
}

impl MetricsFlags {
    pub fn serve(&self, telemetry: &Telemetry) -> Result<Option<MetricsServer>, ConfigureError> {
        let address = self.metrics.as_deref().map(loopback).transpose()?;
        let start = |address| {
            MetricsServer::start(address, telemetry.clone())
                .map_err(|error| ConfigureError::Input(format!("metrics cannot be served at {address}: {error}")))
        };
        address.map(start).transpose()
    }
}

fn loopback(text: &str) -> Result<SocketAddr, ConfigureError> {
    let local = text.strip_prefix("localhost:").and_then(|port| port.parse().ok());
    let syntax = || format!("`--metrics {text}`: an address is IP:PORT or localhost:PORT, such as 127.0.0.1:9464");
    let address = match local {
        Some(port) => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port),
        None => text.parse().map_err(|_| ConfigureError::Usage(syntax()))?,
    };
    if address.ip().to_canonical().is_loopback() {
        return Ok(address);
    }
    Err(ConfigureError::Usage(format!(
        "`--metrics {address}`: metrics are served on loopback only, because anyone who can reach them can read them: \
         use 127.0.0.1:{}",
        address.port()
    )))
}

/// The meaning of the exit codes of all programs, for help texts.
pub const EXIT_CODES: &str =
    "Exit code: 0 done, 1 bad input or I/O, 2 usage, 3 the input was cut short, 130 stopped by SIGINT.";

pub fn command<O: StageOptions>() -> Command {
    let examples = format!("Examples:\n  {}", O::EXAMPLES.join("\n  "));
    let about = "Frames (MessagePack) come on stdin and go to stdout, messages go to stderr; `sizeleak frames` prints any \
                 stream as text.";
    let command = Command::new(O::NAME).version(env!("CARGO_PKG_VERSION"));
    let command = command.after_long_help(format!("{examples}\n\n{about}\n{EXIT_CODES}")).after_help(examples);
    // Each set of flags sets its own description; the last one counts.
    CommonFlags::augment_args(O::augment_args(command)).about(O::ABOUT).long_about(None)
}

pub fn main<O: StageOptions>() -> ExitCode {
    let matches = command::<O>().try_get_matches().unwrap_or_else(|error| exit_with_usage(O::NAME, error));
    let parsed =
        O::from_arg_matches(&matches).and_then(|options| Ok((options, CommonFlags::from_arg_matches(&matches)?)));
    match parsed {
        Ok((options, flags)) => run(&options, &flags, &run_files::<O>(&matches)),
        Err(error) => exit_with_usage(O::NAME, error),
    }
}

fn run_files<O: StageOptions>(matches: &ArgMatches) -> RunFiles {
    let mut files = RunFiles::new();
    files.reads_stdin();
    files.writes("stdout", Path::new("-"));
    for option in O::PATHS {
        let paths = matches.get_many::<PathBuf>(option).into_iter().flatten();
        paths.for_each(|path| files.reads(&format!("the value of `{option}`"), path));
    }
    if let Some(log) = matches.get_one::<PathBuf>("latency_log") {
        files.writes("`--latency-log`", log);
    }
    files
}

fn run<O: StageOptions>(options: &O, flags: &CommonFlags, files: &RunFiles) -> ExitCode {
    flags.log.install(O::NAME);
    if let Err(conflict) = files.check() {
        complain(O::NAME, &conflict.to_string());
        return ExitCode::from(2);
    }
    let (start, clock) = (SystemTime::now(), Instant::now());
    match run_on_stdio(options, flags) {
        Ok((outcome, report)) => {
            report.faults.print(outcome.cause());
            if !report.notices.is_empty() && !log::is_verbose() {
                say(O::NAME, &format!("notices: {} (-v prints each)", report.notices));
            }
            // Last, where people look first.
            match &outcome {
                Outcome::Done | Outcome::Closed => {}
                Outcome::Interrupted => say(O::NAME, "stopped; everything read until then is processed"),
                Outcome::Cut(cause) | Outcome::Failed(cause) => complain(O::NAME, cause),
            }
            let written = report.summary.as_ref().map_or(Ok(()), |summary| {
                if flags.latency {
                    log::say_latency(O::NAME, summary);
                }
                report.latency_log.map_or(Ok(()), |log| log.save(summary, start, clock))
            });
            if let Err(message) = written {
                complain(O::NAME, &message);
                return ExitCode::from(1);
            }
            ExitCode::from(outcome.exit_code())
        }
        Err(error) => {
            complain(O::NAME, &error.to_string());
            ExitCode::from(error.exit_code())
        }
    }
}

fn run_on_stdio<O: StageOptions>(options: &O, flags: &CommonFlags) -> Result<(Outcome, StageReport), ConfigureError> {
    let system = |error: io::Error| ConfigureError::Input(error.to_string());
    let arguments: Vec<_> = env::args_os().skip(1).collect();
    tracing::debug!(stage = O::NAME, ?arguments, "configured");
    let telemetry = Telemetry::new();
    // Before a stage starts a program, which it ends.
    let interrupt = Interrupt::on_signals().map_err(system)?;
    let mut runnable = options.build()?;
    let stdout = io::stdout();
    if stdout.is_terminal() {
        return Err(ConfigureError::Usage(
            "frames are binary and stdout is a terminal: pipe them to the next stage, or to `sizeleak frames` to read \
             them"
                .into(),
        ));
    }
    let access = flags.access(options);
    let latency_log =
        flags.latency_log.as_deref().map(LatencyLog::create).transpose().map_err(ConfigureError::Input)?;
    // Before any thread starts.
    let sandbox = access.as_ref().map(Sandbox::limit_files);
    let served = flags.metrics.serve(&telemetry)?;
    if let Some(served) = &served {
        runnable.set_meter(telemetry.meter(O::NAME));
        say(O::NAME, &format!("metrics at {}", served.url()));
    }
    // Standard output as a file: the standard library would buffer it by lines.
    let output = File::from(stdout.as_fd().try_clone_to_owned().map_err(system)?);
    widen_pipe(&output);
    let input = stdin().map_err(system)?;
    let metadata = input.metadata().map_err(system)?;
    let is_pipe = !metadata.is_file();
    if !is_pipe {
        telemetry.progress().expect(metadata.len());
    }
    // A source reports its own reading.
    let mut input = StreamInput::new(FileProgress::new(telemetry.progress()).watch(input, 0));
    if !is_pipe {
        input = input.until(interrupt.clone());
    }
    let mut report = StageReport {
        notices: Tally::default(),
        faults: CaptureFaults::default(),
        summary: None,
        latency_log,
        telemetry: served.is_some().then_some(telemetry),
    };
    if let Some(sandbox) = sandbox {
        sandbox.complete(O::NAME);
    }
    let outcome = runnable.run(
        Some(&mut input),
        &mut StreamOutput::new(output),
        &interrupt,
        Some(&mut |frame| report.add(frame)),
    );
    Ok((outcome, report))
}

/// An interval log of latencies: begun before the run, as every output, and written after it.
#[derive(Debug)]
pub struct LatencyLog(OutputFile);

impl LatencyLog {
    pub fn create(path: &Path) -> Result<Self, String> {
        OutputFile::create(path).map(Self).map_err(fault)
    }

    /// Writes the latencies of a summary as a log that starts at `start`; `clock` is the same moment.
    pub fn save(self, summary: &Summary, start: SystemTime, clock: Instant) -> Result<(), String> {
        let mut log = Vec::new();
        write_latency_log(&mut log, summary, start, clock.elapsed()).map_err(fault)?;
        self.0.finish(&log).map_err(fault)
    }
}

fn fault(error: impl Display) -> String {
    format!("the latency log {error}")
}

struct StageReport {
    notices: Tally,
    faults: CaptureFaults,
    summary: Option<Summary>,
    latency_log: Option<LatencyLog>,
    /// Also counts notices, if metrics are served.
    telemetry: Option<Telemetry>,
}

impl StageReport {
    fn add(&mut self, frame: &Frame) {
        match frame {
            Frame::Notice(notice) => {
                self.notices.add(&notice.what, 1);
                self.faults.add(notice);
                if let Some(telemetry) = &self.telemetry {
                    telemetry.count_notice(notice);
                }
                log::notice(notice);
            }
            Frame::Summary(summary) => self.summary = Some(summary.clone()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_addresses_are_accepted() {
        for (text, expected) in [
            ("127.0.0.1:9464", "127.0.0.1:9464"),
            ("localhost:0", "127.0.0.1:0"),
            ("[::1]:80", "[::1]:80"),
            ("127.8.8.8:1", "127.8.8.8:1"),
        ] {
            assert_eq!(loopback(text).unwrap(), expected.parse().unwrap());
        }
        for other in ["0.0.0.0:9464", "[::]:9464", "192.168.1.20:9464", "[::ffff:10.0.0.1]:9464"] {
            assert!(loopback(other).unwrap_err().to_string().contains("on loopback only"), "{other}");
        }
        for wrong in ["9464", "localhost", "localhost:http", "127.0.0.1", "example.org:80", ""] {
            assert!(loopback(wrong).unwrap_err().to_string().contains("an address is IP:PORT"), "{wrong}");
        }
    }
}
