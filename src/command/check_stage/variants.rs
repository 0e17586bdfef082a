//! Checks that a stage makes the same of streams that mean the same, and passes on what it does not know.

use std::io;

use sizeleak_frame::{Frame, Unknown};

use super::output::{Output, is_same, made_the_same, read};
use super::program::{Program, Reader, Step};
use super::recorded::{Kind, Recorded, encode};
use super::variation::{self, UNKNOWN};
use super::verdict::{Check, Verdict};

const VERSIONS: &str = "8. Versions and what is unknown";
/// Half of what a value may have.
const LARGE: usize = 8 << 20;
/// A prime, so that pieces end at every place of a value.
const PIECE: usize = 61;

static UNKNOWN_KINDS: Check =
    Check::must("unknown-kinds", VERSIONS, "Pass on kinds you do not know, unchanged, in their place.");
static UNKNOWN_FIELDS: Check = Check::must(
    "unknown-fields",
    VERSIONS,
    "Ignore fields, and entries behind the last one of a row, that you do not know.",
);
static ENCODINGS: Check = Check::must(
    "encodings",
    "1. Streams",
    "Take any encoding MessagePack allows: wide integers, fields in any order, null fields left out.",
);
static NULLS: Check = Check::must("nulls", "1. Streams", "Take null for a field that may be null.");
static LARGE_VALUES: Check = Check::must("large-values", "7. Limits", "Take values of up to 16 MiB.");
static PIECES: Check = Check::must("pieces", "1. Streams", "Take values that arrive in pieces.");
static REPEATABLE: Check = Check::must(
    "repeatable",
    "6. Latencies",
    "Make the same of the same: no clock, no chance, no order of a hash table.",
);

/// Runs the stage again on the same. Gives whether it made the same of it: without that, no other run can be compared.
pub(super) fn is_repeatable(
    program: &Program,
    input: &Recorded,
    first: &Output,
    verdict: &mut Verdict,
) -> io::Result<bool> {
    let again = Output::of(program.fed(&encode(&input.frames))?);
    let repeated = is_repeated(first, &again);
    let is_repeatable = repeated.is_ok();
    verdict.note(&REPEATABLE, repeated);
    Ok(is_repeatable)
}

/// Runs the variants; `made` is what the stage made of the stream as it is.
pub(super) fn check(
    program: &Program,
    input: &Recorded,
    kind: Kind,
    made: &[Frame],
    verdict: &mut Verdict,
) -> io::Result<()> {
    let same = |output: &Output| made_the_same(made, output, input, kind);
    let pieces = program.run(vec![Step::WritePieces(encode(&input.frames), PIECE)], Reader::Attentive)?;
    verdict.note(&PIECES, same(&Output::of(pieces)));
    let nulled = Recorded { frames: variation::with_nulls(&input.frames), ..input.clone() };
    let with_nulls = Output::of(program.fed(&encode(&nulled.frames))?);
    let made_of_nulls = with_nulls.ended_with(0).and_then(|()| with_nulls.made(&nulled.frames, kind));
    verdict.note(&NULLS, made_of_nulls.as_ref().map(|_| ()).map_err(Clone::clone));
    let reencoded = Output::of(program.fed(&variation::reencoded(&input.frames))?);
    let left_out = Output::of(program.fed(&variation::reencoded(&nulled.frames))?);
    // Where nulls themselves are refused, that was said already.
    let of_nulls = made_of_nulls.map_or(Ok(()), |made| made_the_same(&made, &left_out, &nulled, kind));
    verdict.note(&ENCODINGS, same(&reencoded).and(of_nulls.map_err(|fault| format!("nulls left out: {fault}"))));
    let extended = variation::bytes(&variation::with_unknown_fields(&input.frames));
    verdict.note(&UNKNOWN_FIELDS, same(&Output::of(program.fed(&extended)?)));
    let enriched = variation::with_unknown_kinds(&input.frames);
    verdict.note(&UNKNOWN_KINDS, passes_on(program, &variation::bytes(&enriched), kind)?);
    let mut values = variation::values(&input.frames);
    values.insert(1.min(values.len()), variation::large_unknown(LARGE));
    verdict.note(&LARGE_VALUES, passes_on(program, &variation::bytes(&values), kind)?);
    Ok(())
}

/// Checks that a stream with frames of unknown kinds comes through, and says which of them do not.
fn passes_on(program: &Program, stream: &[u8], kind: Kind) -> io::Result<Result<(), String>> {
    let (input, _) = read(stream);
    let output = Output::of(program.fed(stream)?);
    if let Err(fault) = output.ended_with(0) {
        return Ok(Err(fault));
    }
    let unknown = |frames: &[Frame]| -> Vec<Frame> {
        frames
            .iter()
            .filter(|frame| matches!(frame, Frame::Unknown(Unknown { kind, .. }) if kind == UNKNOWN))
            .cloned()
            .collect()
    };
    let (sent, came) = (unknown(&input), unknown(&output.frames));
    if sent.len() != came.len() {
        return Ok(Err(format!("{} such frames went in, {} came out", sent.len(), came.len())));
    }
    if !sent.iter().zip(&came).all(|(sent, came)| is_same(sent, came)) {
        return Ok(Err("their content changed".into()));
    }
    Ok(output.made(&input, kind).map(|_| ()))
}

/// Checks that two runs wrote the same but for the latencies of the stage's own row.
fn is_repeated(first: &Output, second: &Output) -> Result<(), String> {
    let timeless = |output: &Output| -> Vec<Frame> {
        let mut frames = output.frames.clone();
        if let Some(Frame::Summary(summary)) = frames.last_mut()
            && let Some(own) = summary.stages.last_mut()
        {
            own.latency.clear();
            own.queue.clear();
        }
        frames
    };
    let (first, second) = (timeless(first), timeless(second));
    match first.iter().zip(&second).position(|(one, other)| !is_same(one, other)) {
        Some(at) => {
            Err(format!("frame {} (`{}`) differs in a second run", at + 1, first.get(at).map_or("", Frame::kind)))
        }
        None if first.len() != second.len() => {
            Err(format!("a second run wrote {} frames, not {}", second.len(), first.len()))
        }
        None => Ok(()),
    }
}
