//! Checks of how a stage interacts with other programs: paused input, closed output, signals.

use rustix::process::Signal;
use sizeleak_frame::Frame;

use crate::program::{ProgramEnd, ProgramStep, StdoutReader};
use crate::recorded_stream::encode;
use crate::trial::{CheckError, Trial, passed_on};

const SIGPIPE: i32 = 13;

pub(super) fn closed_stdout(trial: &Trial<'_>) -> Result<(), CheckError> {
    let output = trial.run(vec![ProgramStep::Write(encode(&trial.input.frames))], StdoutReader::Gone)?;
    let message = output.ended.stderr.trim();
    match output.ended.end {
        ProgramEnd::Code(0) | ProgramEnd::Signal(SIGPIPE) if message.is_empty() => Ok(()),
        ProgramEnd::Code(0) | ProgramEnd::Signal(SIGPIPE) => {
            Err(format!("it said: {}", message.lines().next_back().unwrap_or_default()).into())
        }
        end => Err(end.to_string().into()),
    }
}

pub(super) fn prompt(trial: &Trial<'_>) -> Result<(), CheckError> {
    let (first, rest) = halves(trial);
    // The hello, and all frames to pass on.
    let due = 1 + passed_on(first, trial.kind).count();
    let output = trial.run(paused(first, due, [ProgramStep::Write(encode(rest))]), StdoutReader::Present)?;
    if !output.ended.has_answered {
        return Err(
            format!("the input paused, and the hello and frames to pass on, {due} in all, did not come out").into()
        );
    }
    Ok(trial.made_the_same(&output)?)
}

pub(super) fn sigint(trial: &Trial<'_>) -> Result<(), CheckError> {
    let (first, rest) = halves(trial);
    let steps = [ProgramStep::Send(Signal::INT), ProgramStep::Write(encode(rest))];
    let output = trial.run(paused(first, 1, steps), StdoutReader::Present)?;
    if output.ended.end != ProgramEnd::Code(130) {
        return Ok(trial.made_the_same(&output)?);
    }
    match output.summary() {
        Some(_) => Ok(()),
        None => Err("it ended with 130, but without a summary".to_owned().into()),
    }
}

pub(super) fn sigterm(trial: &Trial<'_>) -> Result<(), CheckError> {
    let (first, _) = halves(trial);
    let output = trial.run(paused(first, 1, [ProgramStep::Send(Signal::TERM)]), StdoutReader::Present)?;
    match output.ended.end {
        ProgramEnd::Never => Err(ProgramEnd::Never.to_string().into()),
        _ => Ok(()),
    }
}

fn halves<'a>(trial: &Trial<'a>) -> (&'a [Frame], &'a [Frame]) {
    trial.input.frames.split_at(trial.input.frames.len() / 2)
}

/// Feeds frames, waits until `due` frames have come out, and continues with `then`.
fn paused<const N: usize>(first: &[Frame], due: usize, then: [ProgramStep; N]) -> Vec<ProgramStep> {
    [ProgramStep::Write(encode(first)), ProgramStep::Await(due)].into_iter().chain(then).collect()
}
