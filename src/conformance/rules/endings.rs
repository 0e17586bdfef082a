//! Checks on streams that are empty, end early, or break the contract, and of how a stage interacts with other programs:
//! paused input, closed output, signals.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rmpv::Value;
use rustix::process::Signal;
use sizeleak_frame::{Frame, Hello, SCHEMA, what};

use crate::conformance::recorded_stream::encode;
use crate::conformance::trial::{CheckError, ProgramStep, StageOutput, StdoutReader, Trial, passed_on};
use crate::conformance::variation;

/// Deep enough to overflow the stack of a recursive parser.
const DEPTH: usize = 1_000_000;

pub(super) fn empty_stream(trial: &Trial<'_>) -> Result<(), CheckError> {
    let ends = [Frame::from(trial.input.hello.clone()), trial.input.summary.clone().into()];
    let output = trial.feed(&encode(&ends))?;
    output.ended_with(0)?;
    Ok(output.is_readable()?)
}

pub(super) fn no_input(trial: &Trial<'_>) -> Result<(), CheckError> {
    let output = trial.feed(b"")?;
    output.ended_with(3)?;
    match output.hello() {
        None => return Err("it sent no hello".to_owned().into()),
        Some(hello) if !hello.upstream.is_empty() => {
            return Err(format!("`upstream` is {:?}", hello.upstream).into());
        }
        Some(_) => {}
    }
    Ok(output.is_without_summary()?)
}

pub(super) fn cut(trial: &Trial<'_>) -> Result<(), CheckError> {
    each_cut(trial, |_, output| {
        output.is_without_summary()?;
        output.ended_with(3)?;
        output.explains_itself()
    })
}

pub(super) fn cut_keeps(trial: &Trial<'_>) -> Result<(), CheckError> {
    each_cut(trial, |trial, output| trial.processed(output, first_half(trial)))
}

pub(super) fn cut_notice(trial: &Trial<'_>) -> Result<(), CheckError> {
    each_cut(trial, |_, output| match output.frames.last() {
        Some(Frame::Notice(notice)) if notice.what == what::CUT => Ok(()),
        _ => Err("there is no notice".to_owned()),
    })
}

/// Checks the outputs for the first half of the stream, cut between two frames and inside a frame.
fn each_cut(
    trial: &Trial<'_>,
    check: impl Fn(&Trial<'_>, &StageOutput) -> Result<(), String>,
) -> Result<(), CheckError> {
    let half = first_half(trial);
    let between = encode(half);
    // A cut after two thirds of the next value is inside a frame, also for batches.
    let next = trial.input.frames.get(half.len()).or(trial.input.frames.last());
    let next = next.map_or_else(Vec::new, |next| encode(std::slice::from_ref(next)));
    let inside = [&*between, next.get(..next.len() * 2 / 3).unwrap_or_default()].concat();
    for (position, stream) in [("between two frames", between), ("inside a frame", inside)] {
        let output = trial.feed(&stream)?;
        check(trial, &output).map_err(|fault| format!("cut {position}: {fault}"))?;
    }
    Ok(())
}

/// More than half of the frames, without the summary.
fn first_half<'a>(trial: &Trial<'a>) -> &'a [Frame] {
    let body = trial.input.frames.split_last().map_or(&[][..], |(_, body)| body);
    body.get(..body.len() / 2 + 1).unwrap_or_default()
}

pub(super) fn second_hello(trial: &Trial<'_>) -> Result<(), CheckError> {
    let hello = Frame::from(trial.input.hello.clone());
    rejects_after_frames(trial, &encode(&[hello]))
}

pub(super) fn garbage(trial: &Trial<'_>) -> Result<(), CheckError> {
    rejects_after_frames(trial, b"GET / HTTP/1.1\r\n\r\n")
}

pub(super) fn lying_length(trial: &Trial<'_>) -> Result<(), CheckError> {
    // {"note": binary data of 4 GiB}, and more of it than any value may have.
    rejects_after_frames(trial, &[b"\x81\xa4note\xc6\xff\xff\xff\xff".to_vec(), vec![0; 20 << 20]].concat())
}

pub(super) fn wrong_type(trial: &Trial<'_>) -> Result<(), CheckError> {
    let mistyped = variation::mistyped(&trial.input.frames, trial.kind.name());
    let mistyped: Value = mistyped.ok_or(CheckError::NotApplicable)?;
    rejects_after_frames(trial, &variation::bytes(&[mistyped]))
}

/// The first half of the input.
fn body<'a>(trial: &Trial<'a>) -> &'a [Frame] {
    let frames = &trial.input.frames;
    frames.get(..frames.len() / 2).unwrap_or_default()
}

/// Checks that the stage processes the frames before invalid bytes and then rejects these.
fn rejects_after_frames(trial: &Trial<'_>, invalid: &[u8]) -> Result<(), CheckError> {
    let output = trial.feed(&[&*encode(body(trial)), invalid].concat())?;
    is_rejection(&output)?;
    let processed = trial.processed(&output, body(trial));
    Ok(processed.map_err(|fault| format!("the frames before it must be processed, too: {fault}"))?)
}

pub(super) fn newer_schema(trial: &Trial<'_>) -> Result<(), CheckError> {
    let newer = Hello { schema: SCHEMA + 1, ..trial.input.hello.clone() };
    let output = trial.feed(&encode(&[newer.into(), trial.input.summary.clone().into()]))?;
    Ok(is_rejection(&output)?)
}

pub(super) fn behind_the_end(trial: &Trial<'_>) -> Result<(), CheckError> {
    // The first copy is a complete stream, so its summary may have been passed on.
    let whole = encode(&trial.input.frames);
    let output = trial.feed(&[&*whole, &*whole].concat())?;
    output.ended_with(1)?;
    Ok(output.explains_itself()?)
}

pub(super) fn deep_nesting(trial: &Trial<'_>) -> Result<(), CheckError> {
    let deep = [b"\x81\xa4note".to_vec(), vec![0x91; DEPTH], vec![0xc0]].concat();
    let output = trial.feed(&[encode(body(trial)), deep].concat())?;
    output.ended.code().map(drop).ok_or_else(|| output.ended.in_words().into())
}

fn is_rejection(output: &StageOutput) -> Result<(), String> {
    output.ended_with(1)?;
    output.explains_itself()?;
    output.is_without_summary()
}

pub(super) fn closed_stdout(trial: &Trial<'_>) -> Result<(), CheckError> {
    let output = trial.run(vec![ProgramStep::Write(encode(&trial.input.frames))], StdoutReader::Gone)?;
    let is_quiet_end = |end: ExitStatus| end.code() == Some(0) || end.signal() == Some(Signal::PIPE.as_raw());
    match output.ended.stderr.trim().lines().next_back() {
        _ if !output.ended.end.is_some_and(is_quiet_end) => Err(output.ended.in_words().into()),
        Some(last) => Err(format!("it said: {last}").into()),
        None => Ok(()),
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
    if output.ended.code() != Some(130) {
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
    output.ended.end.map(drop).ok_or_else(|| output.ended.in_words().into())
}

pub(super) fn second_signal(trial: &Trial<'_>) -> Result<(), CheckError> {
    let (first, _) = halves(trial);
    for (signal, name) in [(Signal::INT, "SIGINT"), (Signal::TERM, "SIGTERM")] {
        let output = trial.run(paused(first, 1, [ProgramStep::SendUntilEnd(signal)]), StdoutReader::Present)?;
        if !output.ended.has_answered {
            return Err(format!("while its input paused, no {name} ended it").into());
        }
    }
    Ok(())
}

fn halves<'a>(trial: &Trial<'a>) -> (&'a [Frame], &'a [Frame]) {
    trial.input.frames.split_at(trial.input.frames.len() / 2)
}

/// Feeds frames, waits until `due` frames have come out, and continues with `then`.
fn paused<const N: usize>(first: &[Frame], due: usize, then: [ProgramStep; N]) -> Vec<ProgramStep> {
    [ProgramStep::Write(encode(first)), ProgramStep::Await(due)].into_iter().chain(then).collect()
}
