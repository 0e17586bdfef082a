//! Checks of the behaviour among other programs: pauses, readers that go away, signals.

use rustix::process::Signal;
use sizeleak_frame::Frame;

use crate::program::{End, Reader, Step};
use crate::recorded_stream::encode;
use crate::stage_output::passed_on;
use crate::trial::{CheckError, Trial};

const SIGPIPE: i32 = 13;

pub(super) fn closed_stdout(trial: &Trial<'_>) -> Result<(), CheckError> {
    let output = trial.run(vec![Step::Write(encode(&trial.input.frames))], Reader::Gone)?;
    let message = output.ended.stderr.trim();
    match output.ended.end {
        End::Code(0) | End::Signal(SIGPIPE) if message.is_empty() => Ok(()),
        End::Code(0) | End::Signal(SIGPIPE) => {
            Err(format!("it said: {}", message.lines().next_back().unwrap_or_default()).into())
        }
        end => Err(end.to_string().into()),
    }
}

pub(super) fn prompt(trial: &Trial<'_>) -> Result<(), CheckError> {
    let (first, rest) = halves(trial);
    // The hello, and all frames to pass on.
    let due = 1 + passed_on(first, trial.kind).count();
    let output = trial.run(paused(first, due, [Step::Write(encode(rest))]), Reader::Present)?;
    if !output.ended.has_answered {
        return Err(
            format!("the input paused, and the hello and frames to pass on, {due} in all, did not come out").into()
        );
    }
    Ok(trial.made_the_same(&output)?)
}

pub(super) fn sigint(trial: &Trial<'_>) -> Result<(), CheckError> {
    let (first, rest) = halves(trial);
    let steps = [Step::Send(Signal::INT), Step::Write(encode(rest))];
    let output = trial.run(paused(first, 1, steps), Reader::Present)?;
    if output.ended.end != End::Code(130) {
        return Ok(trial.made_the_same(&output)?);
    }
    match output.summary() {
        Some(_) => Ok(()),
        None => Err("it ended with 130, but without a summary".to_owned().into()),
    }
}

pub(super) fn sigterm(trial: &Trial<'_>) -> Result<(), CheckError> {
    let (first, _) = halves(trial);
    let output = trial.run(paused(first, 1, [Step::Send(Signal::TERM)]), Reader::Present)?;
    match output.ended.end {
        End::Never => Err(End::Never.to_string().into()),
        _ => Ok(()),
    }
}

fn halves<'a>(trial: &Trial<'a>) -> (&'a [Frame], &'a [Frame]) {
    trial.input.frames.split_at(trial.input.frames.len() / 2)
}

/// Feeds frames, waits until `due` frames have come out, and continues with `then`.
fn paused<const N: usize>(first: &[Frame], due: usize, then: [Step; N]) -> Vec<Step> {
    [Step::Write(encode(first)), Step::Await(due)].into_iter().chain(then).collect()
}
