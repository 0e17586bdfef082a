//! Checks that a stage makes the same frames from streams with the same meaning, and passes on unknown frames.

use sizeleak_frame::{Frame, Unknown};

use crate::program::{ProgramStep, StdoutReader};
use crate::recorded_stream::{decode, encode};
use crate::trial::{CheckError, Trial, is_same};
use crate::variation::{self, UNKNOWN};

/// Half of the limit of a value.
const LARGE: usize = 8 << 20;

/// A prime, so that pieces end at every position of a value.
const PIECE: usize = 61;

pub(super) fn pieces(trial: &Trial<'_>) -> Result<(), CheckError> {
    let pieces = ProgramStep::WritePieces(encode(&trial.input.frames), PIECE);
    let output = trial.run(vec![pieces], StdoutReader::Present)?;
    Ok(trial.made_the_same(&output)?)
}

pub(super) fn nulls(trial: &Trial<'_>) -> Result<(), CheckError> {
    made_of(trial, &variation::without_plaintext(&trial.input.frames))?;
    Ok(())
}

/// The frames that the stage makes when it is fed `frames` instead of the whole stream.
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
