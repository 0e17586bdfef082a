//! Checks on how a stage behaves among other programs: pauses, readers that go away, signals.

use std::io;

use rustix::process::Signal;
use sizeleak_frame::Frame;

use super::output::{Output, made_the_same, passed_on};
use super::program::{End, Program, Reader, Step};
use super::recorded::{Kind, Recorded, encode};
use super::verdict::{Check, Verdict};

const PROGRAMS: &str = "9. Programs";
const SIGPIPE: i32 = 13;

static PROMPT: Check =
    Check::must("prompt", "1. Streams", "Hand on what has gathered before you wait for input: flush your output.");
static CLOSED: Check =
    Check::must("closed-stdout", PROGRAMS, "End quietly, soon and well, when nobody reads stdout any more.");
static SIGINT: Check =
    Check::must("sigint", PROGRAMS, "Do not die of SIGINT: go on until your input ends, and end with its summary.");
static SIGTERM: Check = Check::must("sigterm", PROGRAMS, "End on SIGTERM, at the latest when your input ends.");

pub(super) fn check(
    program: &Program,
    input: &Recorded,
    kind: Kind,
    made: &[Frame],
    verdict: &mut Verdict,
) -> io::Result<()> {
    let stream = encode(&input.frames);
    let closed = Output::of(program.run(vec![Step::Write(stream)], Reader::Gone)?);
    verdict.note(&CLOSED, is_quiet(&closed));
    if kind == Kind::Nothing {
        return Ok(());
    }
    let (first, rest) = input.frames.split_at(input.frames.len() / 2);
    let resumed =
        Output::of(program.run(paused(first, due(first, kind), [Step::Write(encode(rest))]), Reader::Attentive)?);
    let came = if resumed.ended.answered { Ok(()) } else { Err(missing(first, kind)) };
    verdict.note(&PROMPT, came.and_then(|()| made_the_same(made, &resumed, input, kind)));

    let steps = [Step::Send(Signal::INT), Step::Write(encode(rest))];
    let interrupted = Output::of(program.run(paused(first, 1, steps), Reader::Attentive)?);
    verdict.note(&SIGINT, goes_on(&interrupted, made, input, kind));
    let stopped = program.run(paused(first, 1, [Step::Send(Signal::TERM)]), Reader::Attentive)?;
    verdict.note(&SIGTERM, if stopped.end == End::Never { Err(stopped.end.to_string()) } else { Ok(()) });
    Ok(())
}

/// How many frames have to come out while the input pauses: the hello, and all that are passed on.
fn due(first: &[Frame], kind: Kind) -> usize {
    1 + passed_on(first, kind).count()
}

/// Feeds frames, waits until so many have come out, and does what follows.
fn paused<const N: usize>(first: &[Frame], due: usize, then: [Step; N]) -> Vec<Step> {
    [Step::Write(encode(first)), Step::Await(due)].into_iter().chain(then).collect()
}

fn missing(first: &[Frame], kind: Kind) -> String {
    let due = due(first, kind);
    format!("the input paused, and the hello and frames to pass on, {due} in all, did not come out")
}

fn is_quiet(output: &Output) -> Result<(), String> {
    let said = output.ended.stderr.trim();
    match output.ended.end {
        End::Code(0) | End::Signal(SIGPIPE) if said.is_empty() => Ok(()),
        End::Code(0) | End::Signal(SIGPIPE) => {
            Err(format!("it said: {}", said.lines().next_back().unwrap_or_default()))
        }
        end => Err(end.to_string()),
    }
}

fn goes_on(output: &Output, made: &[Frame], input: &Recorded, kind: Kind) -> Result<(), String> {
    if output.ended.end != End::Code(130) {
        return made_the_same(made, output, input, kind);
    }
    output.summary().map_or_else(|| Err("it ended with 130, but without a summary".into()), |_| Ok(()))
}
