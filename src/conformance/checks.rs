//! The checks of the rules: of the output for a whole stream, and that a stage makes the same frames from streams with the same
//! meaning; on streams that are empty, end early, or break the contract; and of how a stage interacts with other programs:
//! paused input, closed output, signals.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rmpv::Value;
use rustix::process::Signal;
use sizeleak_frame::{Frame, Hello, SCHEMA, StageSummary, Unknown, what};

use super::recorded_stream::{ConsumedKind, decode, encode};
use super::semantics::{are_meaningful, is_word};
use super::trial::{CheckError, ProgramStep, StageOutput, StdoutReader, Trial, is_same, passed_on};
use super::variation::{self, UNKNOWN};

pub(super) fn whole(trial: &Trial<'_>) -> Result<(), CheckError> {
    trial.output.ended_with(0)?;
    Ok(trial.output.is_readable()?)
}

pub(super) fn hello(trial: &Trial<'_>) -> Result<(), CheckError> {
    let hello = trial.output.hello().ok_or_else(|| "there is none".to_owned())?;
    let upstream = trial.input.hello.upstream.iter().chain([&trial.input.hello.stage]);
    let expected: Vec<String> =
        if trial.kind == ConsumedKind::Nothing { Vec::new() } else { upstream.cloned().collect() };
    let fault = if hello.schema != SCHEMA {
        format!("`schema` is {}, not {SCHEMA}", hello.schema)
    } else if hello.stage.is_empty() {
        "`stage` is empty".to_owned()
    } else if hello.upstream != expected {
        format!("`upstream` is {:?}, not {expected:?}", hello.upstream)
    } else {
        return Ok(());
    };
    Err(fault.into())
}

pub(super) fn counts(trial: &Trial<'_>) -> Result<(), CheckError> {
    let row = own_row(trial).map_err(|_| CheckError::NotApplicable)?;
    let out: u64 = trial.made()?.iter().map(Frame::rows).sum();
    // The input of a first stage is not frames, and unknown here.
    if trial.kind == ConsumedKind::Nothing {
        return Ok(is_count(row, "frames_out", row.frames_out, out)?);
    }
    let (rows, bytes) = trial.input.consumed(trial.kind);
    let read = frames_read_and_passed_on(row.frames_in.saturating_sub(rows), trial);
    is_count(row, "frames_in", row.frames_in, rows + read)?;
    is_count(row, "bytes_in", row.bytes_in, bytes)?;
    Ok(is_count(row, "frames_out", row.frames_out, out + read)?)
}

pub(super) fn counters(trial: &Trial<'_>) -> Result<(), CheckError> {
    let row = own_row(trial).map_err(|_| CheckError::NotApplicable)?;
    match row.counters.keys().find(|name| !is_word(name)) {
        None => Ok(()),
        Some(name) => Err(format!("one is named `{name}`").into()),
    }
}

pub(super) fn meaning(trial: &Trial<'_>) -> Result<(), CheckError> {
    let name = trial.output.hello().map_or("", |hello| hello.stage.as_str());
    Ok(are_meaningful(trial.made()?, &trial.output.frames, name)?)
}

/// Checks that a second run writes the same, except for the latencies of the stage's own row.
pub(super) fn repeatable(trial: &Trial<'_>) -> Result<(), CheckError> {
    let second = trial.feed(&encode(&trial.input.frames))?;
    let without_latencies = |output: &StageOutput| -> Vec<Frame> {
        let mut frames = output.frames.clone();
        if let Some(Frame::Summary(summary)) = frames.last_mut()
            && let Some(own) = summary.stages.last_mut()
        {
            own.latency.clear();
            own.queue.clear();
        }
        frames
    };
    let (first, second) = (without_latencies(&trial.output), without_latencies(&second));
    match first.iter().zip(&second).zip(1..).find(|((one, other), _)| !is_same(one, other)) {
        Some(((frame, _), number)) => {
            Err(format!("frame {number} (`{}`) differs in a second run", frame.kind()).into())
        }
        None if first.len() != second.len() => {
            Err(format!("a second run wrote {} frames, not {}", second.len(), first.len()).into())
        }
        None => Ok(()),
    }
}

/// The stage's own row of the summary, after those of the stages before it.
pub(super) fn own_row<'a>(trial: &'a Trial<'_>) -> Result<&'a StageSummary, String> {
    let summary = trial.output.summary().ok_or("there is none")?;
    let (own, before) = summary.stages.split_last().ok_or("it has no row")?;
    let name = trial.output.hello().map_or("", |hello| hello.stage.as_str());
    if own.stage != name {
        return Err(format!("its last row is that of `{}`, not of `{name}`", own.stage));
    }
    let expected = &trial.input.summary.stages;
    if before.len() != expected.len() {
        return Err(format!("{} rows of the stages before became {}", expected.len(), before.len()));
    }
    let changed = before.iter().zip(expected).find(|(now, then)| now != then);
    changed.map_or(Ok(own), |(row, _)| Err(format!("the row of `{}` changed", row.stage)))
}

fn is_count(row: &StageSummary, field: &str, counted: u64, correct: u64) -> Result<(), String> {
    if counted == correct {
        return Ok(());
    }
    Err(format!("`{field}` of `{}` is {counted}, but {correct} is correct", row.stage))
}

/// A stage may also read frames that it passes on, as `epsilon-corrector` reads `session`, and count them. Returns
/// `surplus` if whole kinds of such frames add up to it, else 0.
fn frames_read_and_passed_on(surplus: u64, trial: &Trial<'_>) -> u64 {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for frame in passed_on(&trial.input.frames, trial.kind).filter(|frame| frame.traffic_bytes() == 0) {
        *counts.entry(frame.kind()).or_default() += 1;
    }
    let add = |sums: BTreeSet<u64>, count: &u64| sums.iter().flat_map(|sum| [*sum, sum + count]).collect();
    let sums: BTreeSet<u64> = counts.values().fold([0].into(), add);
    if sums.contains(&surplus) { surplus } else { 0 }
}

/// Half of the limit of a value.
const LARGE: usize = 8 << 20;

/// A prime, so that pieces end at every position of a value.
const PIECE: usize = 61;

pub(super) fn pieces(trial: &Trial<'_>) -> Result<(), CheckError> {
    let pieces = encode(&trial.input.frames).chunks(PIECE).map(|piece| ProgramStep::Write(piece.to_vec())).collect();
    let output = trial.run(pieces, StdoutReader::Present)?;
    Ok(trial.made_the_same(&output)?)
}

pub(super) fn nulls(trial: &Trial<'_>) -> Result<(), CheckError> {
    made_of(trial, &variation::without_plaintext(&trial.input.frames))?;
    Ok(())
}

fn made_of(trial: &Trial<'_>, frames: &[Frame]) -> Result<Vec<Frame>, CheckError> {
    let output = trial.feed(&encode(frames))?;
    output.ended_with(0)?;
    Ok(output.made(frames, trial.kind)?)
}

pub(super) fn encodings(trial: &Trial<'_>) -> Result<(), CheckError> {
    let reencoded = trial.feed(&variation::reencoded(&trial.input.frames))?;
    trial.made_the_same(&reencoded)?;
    let frames = variation::without_plaintext(&trial.input.frames);
    // If nulls themselves are rejected, another rule says so.
    let Ok(made) = made_of(trial, &frames) else { return Ok(()) };
    let output = trial.feed(&variation::reencoded(&frames))?;
    let same = output.made_the_same(&made, &frames, trial.kind);
    Ok(same.map_err(|fault| format!("nulls left out: {fault}"))?)
}

pub(super) fn unknown_fields(trial: &Trial<'_>) -> Result<(), CheckError> {
    let output = trial.feed(&variation::bytes(&variation::with_unknown_fields(&trial.input.frames)))?;
    Ok(trial.made_the_same(&output)?)
}

pub(super) fn unknown_kinds(trial: &Trial<'_>) -> Result<(), CheckError> {
    passes_on(trial, &variation::bytes(&variation::with_unknown_kinds(&trial.input.frames)))
}

pub(super) fn large_values(trial: &Trial<'_>) -> Result<(), CheckError> {
    let mut values = variation::values(&trial.input.frames);
    values.insert(1.min(values.len()), variation::large_unknown(LARGE));
    passes_on(trial, &variation::bytes(&values))
}

fn passes_on(trial: &Trial<'_>, stream: &[u8]) -> Result<(), CheckError> {
    let (input, _) = decode(stream);
    let output = trial.feed(stream)?;
    output.ended_with(0)?;
    let unknown = |frames: &[Frame]| -> Vec<Frame> {
        let is_unknown = |frame: &&Frame| matches!(frame, Frame::Unknown(Unknown { kind, .. }) if kind == UNKNOWN);
        frames.iter().filter(is_unknown).cloned().collect()
    };
    let (sent, received) = (unknown(&input), unknown(&output.frames));
    if sent.len() != received.len() {
        return Err(format!("{} such frames went in, {} came out", sent.len(), received.len()).into());
    }
    if !sent.iter().zip(&received).all(|(sent, received)| is_same(sent, received)) {
        return Err("their content changed".to_owned().into());
    }
    Ok(trial.processed(&output, &input)?)
}

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

fn paused<const N: usize>(first: &[Frame], due: usize, then: [ProgramStep; N]) -> Vec<ProgramStep> {
    [ProgramStep::Write(encode(first)), ProgramStep::Await(due)].into_iter().chain(then).collect()
}
