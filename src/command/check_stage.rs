//! `sizeleak check-stage`: feeds a program recorded and hostile streams and says what it breaks of the frame contract.

mod conduct;
mod ends;
mod meaning;
mod output;
mod program;
mod recorded;
mod variants;
mod variation;
mod verdict;
mod whole;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use jiff::SignedDuration;

use super::Failure;
use output::Output;
use program::Program;
use recorded::{Kind, Recorded, encode};
use verdict::Verdict;

/// Check a stage of your own against the contract of docs/frames.md
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sizeleak check-stage -- python3 burst.py 40\n  sizeleak check-stage --kind identification --json -- ./my-pruner model.toml\n  \
                        sizeleak check-stage --kind packets -- flow-filter --gateway 192.168.1.20 --allow-absent\n\n\
                        The stage is run some twenty times, on a stream of a small simulated home (its gateway is \
                        192.168.1.20) or on FILE, on parts of it, and on streams that break the contract. What it breaks \
                        is printed with what to do. Exit code: 0 where it keeps the contract, 1 where it does not, 2 usage."
)]
pub(crate) struct Arguments {
    /// The kind of frame it works on: its place in a pipeline
    #[arg(long, value_enum, default_value_t = Kind::Record)]
    kind: Kind,

    /// Feed it this recorded stream, whole and of its place in a pipeline, such as `record-sizer > FILE` writes
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,

    /// How long it may take to end once it has its input, and to answer while the input pauses
    #[arg(long, value_name = "TIME", default_value = "10s")]
    timeout: SignedDuration,

    /// Print the findings as JSON
    #[arg(long)]
    json: bool,

    /// The program and its arguments
    #[arg(value_name = "COMMAND", last = true, required = true)]
    command: Vec<OsString>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let limit = Duration::try_from(arguments.timeout).ok().filter(|limit| !limit.is_zero());
    let limit = limit.ok_or_else(|| Failure::usage(anyhow::anyhow!("`--timeout` is a time above 0 s")))?;
    let input = match &arguments.input {
        Some(path) => Recorded::read(path)?,
        None => Recorded::made(arguments.kind)?,
    };
    if arguments.kind != Kind::Nothing && input.consumed_by(arguments.kind).0 == 0 {
        let kind = arguments.kind.name();
        return Err(Failure::usage(anyhow::anyhow!("the recorded stream has no frame of kind `{kind}`; see `--kind`")));
    }
    let program = Program { command: arguments.command.clone(), limit };
    let verdict = check(&program, &input, arguments.kind).map_err(|error| cannot_run(&arguments.command, &error))?;
    print(arguments, &verdict)?;
    Ok(if verdict.is_clean() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn cannot_run(command: &[OsString], error: &io::Error) -> Failure {
    let program = command.first().map(|program| program.display().to_string()).unwrap_or_default();
    Failure::usage(anyhow::anyhow!("`{program}` cannot be run: {error}"))
}

/// Makes all checks that apply to a stage of this kind. Where a fault would make others fail for the same reason, those
/// are left for when it is mended.
fn check(program: &Program, input: &Recorded, kind: Kind) -> io::Result<Verdict> {
    let mut verdict = Verdict::default();
    let output = Output::of(program.fed(&encode(&input.frames))?);
    let whole = output.ended_with(0).and_then(|()| output.is_whole());
    let runs = whole.is_ok();
    verdict.note(&whole::WHOLE, whole);
    let made = if runs { whole::check(&output, input, kind, &mut verdict) } else { None };
    let Some(made) = made else { return Ok(verdict.with_more_to_check()) };
    if !variants::is_repeatable(program, input, &output, &mut verdict)? {
        return Ok(verdict.with_more_to_check());
    }
    if kind != Kind::Nothing {
        variants::check(program, input, kind, &made, &mut verdict)?;
        ends::check(program, input, kind, &mut verdict)?;
    }
    conduct::check(program, input, kind, &made, &mut verdict)?;
    Ok(verdict)
}

fn print(arguments: &Arguments, verdict: &Verdict) -> Result<(), Failure> {
    let command: Vec<_> = arguments.command.iter().map(|part| part.to_string_lossy()).collect();
    let text = if arguments.json {
        format!("{:#}\n", verdict.to_json(&command.join(" "), arguments.kind.name()))
    } else {
        verdict.to_string()
    };
    super::documentation::print(text.as_bytes()).map(|_| ())
}

#[cfg(test)]
mod tests {
    /// Every section that a check names is one of the contract's.
    #[test]
    fn sections_are_those_of_the_document() {
        let document = include_str!("../../docs/frames.md");
        let sources = [
            include_str!("check_stage/whole.rs"),
            include_str!("check_stage/variants.rs"),
            include_str!("check_stage/ends.rs"),
            include_str!("check_stage/conduct.rs"),
        ];
        let quoted = sources.into_iter().flat_map(|source| source.split('"').skip(1).step_by(2));
        let sections: Vec<&str> = quoted.filter(|text| text.starts_with(|c: char| c.is_ascii_digit())).collect();
        assert!(sections.len() > 8, "{sections:?}");
        for section in sections {
            assert!(document.contains(&format!("\n## {section}\n")), "{section}");
        }
    }
}
