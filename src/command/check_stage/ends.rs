//! Checks on streams that end early, hold nothing, or break the contract.

use std::io;

use rmpv::Value;
use sizeleak_frame::{Frame, Hello, SCHEMA, what};

use super::output::Output;
use super::program::{End, Program};
use super::recorded::{Kind, Recorded, encode};
use super::variation;
use super::verdict::{Check, Verdict};

const END: &str = "3. The end of a stream";
const LIMITS: &str = "7. Limits";

static EMPTY: Check =
    Check::must("empty-stream", END, "Make a stream of a stream that holds nothing but hello and summary.");
static NO_INPUT: Check = Check::must(
    "no-input",
    END,
    "Where the input ends before its hello, say your own with no upstream, and exit with 3.",
);
static CUT: Check =
    Check::must("cut", END, "Where the input ends without a summary, write none, say so on stderr, and exit with 3.");
static CUT_KEEPS: Check = Check::must("cut-keeps", END, "Process every whole frame before a cut.");
static CUT_NOTICE: Check =
    Check::should("cut-notice", END, "Tell the next stage of a cut: a notice with `what` = `cut` as the last frame.");
static NEWER: Check = Check::must(
    "newer-schema",
    "8. Versions and what is unknown",
    "Refuse a schema newer than yours in a sentence that names both, and exit with 1.",
);
static SECOND_HELLO: Check = Check::must("second-hello", LIMITS, "Refuse a second hello, and exit with 1.");
static BEHIND: Check = Check::must("behind-the-end", LIMITS, "Refuse frames behind the summary, and exit with 1.");
static GARBAGE: Check =
    Check::must("garbage", LIMITS, "Refuse what is no frame with one clear sentence, and exit with 1.");
static WRONG_TYPE: Check =
    Check::must("wrong-type", LIMITS, "Refuse a field of a wrong type with one clear sentence, and exit with 1.");
static LYING_LENGTH: Check = Check::must(
    "lying-length",
    LIMITS,
    "Refuse a value that claims more than 16 MiB, without waiting for it; exit with 1.",
);
static DEEP: Check =
    Check::must("deep-nesting", LIMITS, "Take or refuse a value nested a million deep, but do not crash.");

/// Deep enough for a parser that recurses to overflow its stack.
const DEPTH: usize = 1_000_000;

pub(super) fn check(program: &Program, input: &Recorded, kind: Kind, verdict: &mut Verdict) -> io::Result<()> {
    check_empty(program, input, verdict)?;
    check_cuts(program, input, kind, verdict)?;
    check_broken(program, input, kind, verdict)
}

fn check_empty(program: &Program, input: &Recorded, verdict: &mut Verdict) -> io::Result<()> {
    let ends = [Frame::from(input.hello.clone()), input.summary.clone().into()];
    let output = Output::of(program.fed(&encode(&ends))?);
    verdict.note(&EMPTY, output.ended_with(0).and_then(|()| output.is_whole()));
    let output = Output::of(program.fed(b"")?);
    let has_hello = || match output.hello() {
        None => Err("it said no hello".to_owned()),
        Some(hello) if !hello.upstream.is_empty() => Err(format!("`upstream` is {:?}", hello.upstream)),
        Some(_) => Ok(()),
    };
    let found = output.ended_with(3).and_then(|()| has_hello()).and_then(|()| output.is_without_summary());
    verdict.note(&NO_INPUT, found);
    Ok(())
}

fn check_cuts(program: &Program, input: &Recorded, kind: Kind, verdict: &mut Verdict) -> io::Result<()> {
    let body = input.frames.get(..input.frames.len().saturating_sub(1)).unwrap_or_default();
    let half = body.get(..body.len() / 2 + 1).unwrap_or_default();
    let between = encode(half);
    // Two thirds of the next value: also in bulk kinds that is inside of one.
    let next = body.get(half.len()).or(input.frames.last());
    let next = next.map_or_else(Vec::new, |next| encode(std::slice::from_ref(next)));
    let inside = [&*between, next.get(..next.len() * 2 / 3).unwrap_or_default()].concat();
    let (mut cut, mut keeps, mut notice) = (Ok(()), Ok(()), Ok(()));
    for (place, stream) in [("between two frames", between), ("inside a frame", inside)] {
        let output = Output::of(program.fed(&stream)?);
        let found = output.is_without_summary().and_then(|()| output.ended_with(3)).and_then(|()| output.said_why());
        cut = cut.and(found.map_err(|fault| format!("cut {place}: {fault}")));
        let kept = output.made(half, kind).map(|_| ());
        keeps = keeps.and(kept.map_err(|fault| format!("cut {place}: {fault}")));
        let told = matches!(output.frames.last(), Some(Frame::Notice(notice)) if notice.what == what::CUT);
        notice = notice.and(if told { Ok(()) } else { Err(format!("cut {place}: nothing was told")) });
    }
    verdict.note(&CUT, cut);
    verdict.note(&CUT_KEEPS, keeps);
    verdict.note(&CUT_NOTICE, notice);
    Ok(())
}

fn check_broken(program: &Program, input: &Recorded, kind: Kind, verdict: &mut Verdict) -> io::Result<()> {
    let hello = Frame::from(input.hello.clone());
    let newer = Hello { schema: SCHEMA + 1, ..input.hello.clone() };
    let body = input.frames.get(..input.frames.len() / 2).unwrap_or_default();
    let then = |values: &[Value]| [encode(body), variation::bytes(values)].concat();
    let whole = encode(&input.frames);
    let mut cases = vec![
        (&SECOND_HELLO, then(&variation::values(std::slice::from_ref(&hello)))),
        (&GARBAGE, [encode(body), b"GET / HTTP/1.1\r\n\r\n".to_vec()].concat()),
        // {"note": binary data of 4 GiB}, and more of it than any value may have.
        (&LYING_LENGTH, [encode(body), b"\x81\xa4note\xc6\xff\xff\xff\xff".to_vec(), vec![0; 20 << 20]].concat()),
    ];
    if let Some(mistyped) = variation::mistyped(&input.frames, kind.name()) {
        cases.push((&WRONG_TYPE, then(&[mistyped])));
    }
    for (check, stream) in cases {
        let output = Output::of(program.fed(&stream)?);
        let kept = output.made(body, kind).map(|_| ());
        verdict.note(
            check,
            is_refused(&output).and(kept.map_err(|fault| format!("the frames before it are processed, too: {fault}"))),
        );
    }
    verdict.note(&NEWER, is_refused(&Output::of(program.fed(&encode(&[newer.into(), input.summary.clone().into()]))?)));
    // What came before is a whole stream, whose summary may have been passed on by then.
    let behind = Output::of(program.fed(&[&*whole, &*whole].concat())?);
    verdict.note(&BEHIND, behind.ended_with(1).and_then(|()| behind.said_why()));
    let deep = [b"\x81\xa4note".to_vec(), vec![0x91; DEPTH], vec![0xc0]].concat();
    let output = Output::of(program.fed(&[encode(body), deep].concat())?);
    verdict.note(&DEEP, is_alive(&output));
    Ok(())
}

fn is_refused(output: &Output) -> Result<(), String> {
    output.ended_with(1)?;
    output.said_why()?;
    output.is_without_summary()
}

fn is_alive(output: &Output) -> Result<(), String> {
    match output.ended.end {
        End::Code(_) => Ok(()),
        end => Err(end.to_string()),
    }
}
