//! `sizeleak check-stage`: checks that a program keeps the frame contract.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;

use super::document::line;
use super::failure::{silent, usage};
use super::output_option::ReportFormatOption;
use super::shared_options::duration;
use crate::conformance::{ConformanceReport, ConsumedKind, RecordedStream, TestedProgram, check};

/// Check a stage of your own against the contract of docs/frames.md
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sizeleak check-stage -- python3 burst.py 40\n  \
    sizeleak check-stage --kind identification --format json -- ./my-pruner model.toml\n  \
    sizeleak check-stage --kind packets -- flow-filter --gateway 192.168.1.20 --allow-absent\n\n\
    The stage is run about thirty times: on a stream of a small simulated home (its gateway is 192.168.1.20) or on \
    FILE, on parts of that stream, and on streams that break the contract. Every broken rule is printed with what to \
    do. Exit code: 0 if the stage keeps the contract, 1 if it does not, 2 usage.")]
pub(crate) struct Arguments {
    /// The kind of frame that the stage consumes: its place in a pipeline
    #[arg(long, default_value = "record", value_enum)]
    kind: ConsumedKind,

    /// Feed it this recorded stream, complete and from its place in a pipeline, such as `record-sizer > FILE` writes
    #[arg(short = 'r', long, value_name = "FILE")]
    input: Option<PathBuf>,

    /// How long it may take to end after its input, and to answer while its input pauses
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = limit)]
    timeout: Duration,

    #[command(flatten)]
    format: ReportFormatOption,

    /// The program and its arguments
    #[arg(value_name = "COMMAND", last = true, required = true)]
    command: Vec<OsString>,
}

fn limit(text: &str) -> Result<Duration, String> {
    let limit = duration(text)?;
    if limit.is_zero() { Err("it must be above 0 s".to_owned()) } else { Ok(limit) }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { kind, ref command, timeout, .. } = *arguments;
    let input = match &arguments.input {
        Some(path) => RecordedStream::read(path)?,
        None => RecordedStream::simulated(kind)?,
    };
    if kind != ConsumedKind::Nothing && input.consumed(kind).0 == 0 {
        let kind = kind.name();
        return Err(usage!("the recorded stream has no frame of kind `{kind}`; see `--kind`"));
    }
    let program = TestedProgram { command: command.clone(), limit: timeout };
    let report = check(&program, &input, kind).map_err(|error| {
        let program = command.first().map(|program| program.display().to_string()).unwrap_or_default();
        usage!("`{program}` cannot be run: {error}")
    })?;
    arguments.print(&report)?;
    if report.is_clean() { Ok(()) } else { Err(silent(1)) }
}

impl Arguments {
    fn print(&self, report: &ConformanceReport) -> Result<()> {
        let command: Vec<_> = self.command.iter().map(|part| part.to_string_lossy()).collect();
        let json = report.to_json(&command.join(" "), self.kind.name());
        self.format.printed().write(&json, Some("checks"), || report.to_string().lines().flat_map(line).collect())
    }
}
