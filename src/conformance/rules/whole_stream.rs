//! Checks of the output for a whole stream, and that a stage makes the same frames from streams with the same meaning, and
//! passes on unknown frames.

use std::collections::{BTreeMap, BTreeSet};

use sizeleak_frame::{Frame, SCHEMA, StageSummary, Unknown};

use crate::conformance::recorded_stream::{ConsumedKind, decode, encode};
use crate::conformance::semantics::{are_meaningful, is_word};
use crate::conformance::trial::{CheckError, ProgramStep, StageOutput, StdoutReader, Trial, is_same, passed_on};
use crate::conformance::variation::{self, UNKNOWN};

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
