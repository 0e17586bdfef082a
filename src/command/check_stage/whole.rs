//! Checks on what a stage makes of a whole stream.

use std::collections::{BTreeMap, BTreeSet};

use sizeleak_frame::{Frame, SCHEMA, StageSummary};

use super::meaning::{are_batches_in_limits, are_of_the_traffic, are_possible, is_word};
use super::output::{Output, passed_on};
use super::recorded::{Kind, Recorded};
use super::verdict::{Check, Verdict};

const STREAMS: &str = "1. Streams";
const KINDS: &str = "2. Kinds";

pub(super) static WHOLE: Check =
    Check::must("whole", "9. Programs", "Write a whole stream of frames to stdout, nothing else, and exit with 0.");
static HELLO: Check =
    Check::must("hello", STREAMS, "Say hello first: schema 1, your name, and the stages before you as `upstream`.");
static PASSING_ON: Check =
    Check::must("passing-on", STREAMS, "Pass on every frame of a kind you do not work on, in its place, unchanged.");
static SUMMARY: Check =
    Check::must("summary", STREAMS, "End with the summary you read, its rows as they were, and one of your own.");
static COUNTS: Check =
    Check::must("counts", KINDS, "Count in your row what you consumed and what you made, not what you passed on.");
static COUNTERS: Check = Check::should("counters", "5. Counters", "Name your counters in lower case with underscores.");
static MEANING: Check =
    Check::must("meaning", KINDS, "Make frames that mean what section 2 says: units, order, sums, flows.");
static TIMES: Check = Check::must("times", STREAMS, "Take times from the frames, in nanoseconds; ask no clock.");
static BATCHES: Check = Check::must("batches", "7. Limits", "Send a batch at 256 rows, or once its rows carry 64 KiB.");

/// Checks all that one run over a whole stream shows. Gives the frames that the stage made; `None` where they cannot be told
/// from those it should have passed on.
pub(super) fn check(output: &Output, input: &Recorded, kind: Kind, verdict: &mut Verdict) -> Option<Vec<Frame>> {
    verdict.note(&HELLO, is_hello(output, input, kind));
    let made = output.made(&input.frames, kind);
    if kind != Kind::Nothing {
        verdict.note(&PASSING_ON, made.as_ref().map(|_| ()).map_err(Clone::clone));
    }
    let row = own_row(output, input);
    verdict.note(&SUMMARY, row.as_ref().map(|_| ()).map_err(Clone::clone));
    let made = made.ok()?;
    if let Ok(row) = row {
        verdict.note(&COUNTS, is_counted(row, &made, input, kind));
        verdict.note(&COUNTERS, are_named(row));
    }
    let name = output.hello().map_or("", |hello| hello.stage.as_str());
    verdict.note(&MEANING, are_possible(&made, &output.frames, name));
    verdict.note(&TIMES, are_of_the_traffic(&made, &input.frames));
    verdict.note(&BATCHES, are_batches_in_limits(&made));
    Some(made)
}

fn is_hello(output: &Output, input: &Recorded, kind: Kind) -> Result<(), String> {
    let hello = output.hello().ok_or("there is none")?;
    let before = input.hello.upstream.iter().chain([&input.hello.stage]);
    let expected: Vec<String> = if kind == Kind::Nothing { Vec::new() } else { before.cloned().collect() };
    if hello.schema != SCHEMA {
        return Err(format!("`schema` is {}, not {SCHEMA}", hello.schema));
    }
    if hello.stage.is_empty() {
        return Err("`stage` is empty".into());
    }
    if hello.upstream != expected {
        return Err(format!("`upstream` is {:?}, not {expected:?}", hello.upstream));
    }
    Ok(())
}

/// The stage's own row of the summary, behind those of the stages before it.
fn own_row<'a>(output: &'a Output, input: &Recorded) -> Result<&'a StageSummary, String> {
    let summary = output.summary().ok_or("there is none")?;
    let (own, before) = summary.stages.split_last().ok_or("it has no row")?;
    let name = output.hello().map_or("", |hello| hello.stage.as_str());
    if own.stage != name {
        return Err(format!("its last row is that of `{}`, not of `{name}`", own.stage));
    }
    if before.len() != input.summary.stages.len() {
        return Err(format!("{} rows of the stages before became {}", input.summary.stages.len(), before.len()));
    }
    let changed = before.iter().zip(&input.summary.stages).find(|(now, then)| now != then);
    changed.map_or(Ok(own), |(row, _)| Err(format!("the row of `{}` changed", row.stage)))
}

fn is_counted(row: &StageSummary, made: &[Frame], input: &Recorded, kind: Kind) -> Result<(), String> {
    let out: u64 = made.iter().map(Frame::rows).sum();
    // What a program at the head reads is not frames, and not seen from here.
    if kind == Kind::Nothing {
        return is(row, "frames_out", row.frames_out, out);
    }
    let (rows, bytes) = input.consumed_by(kind);
    let again = looked_at(row.frames_in.saturating_sub(rows), input, kind);
    is(row, "frames_in", row.frames_in, rows + again)?;
    is(row, "bytes_in", row.bytes_in, bytes)?;
    is(row, "frames_out", row.frames_out, out + again)
}

fn is(row: &StageSummary, field: &str, counted: u64, there: u64) -> Result<(), String> {
    if counted == there {
        Ok(())
    } else {
        Err(format!("`{field}` of `{}` is {counted}, but {there} is right", row.stage))
    }
}

/// A stage may also work on frames it writes again as they were, as `epsilon-corrector` does on `session`. So many of those that
/// stand for no traffic explain a count: `surplus`, where whole kinds of them add up to it, or none.
fn looked_at(surplus: u64, input: &Recorded, kind: Kind) -> u64 {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for frame in passed_on(&input.frames, kind).filter(|frame| frame.traffic_bytes() == 0) {
        *counts.entry(frame.kind()).or_default() += 1;
    }
    let add = |sums: BTreeSet<u64>, count: &u64| sums.iter().flat_map(|sum| [*sum, sum + count]).collect();
    let sums: BTreeSet<u64> = counts.values().fold([0].into(), add);
    if sums.contains(&surplus) { surplus } else { 0 }
}

fn are_named(row: &StageSummary) -> Result<(), String> {
    let odd = row.counters.keys().find(|name| !is_word(name));
    odd.map_or(Ok(()), |name| Err(format!("one is named `{name}`")))
}
