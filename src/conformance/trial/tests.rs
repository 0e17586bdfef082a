//! Tests of running programs that end, hang or answer late.

use sizeleak_frame::Hello;

use super::*;
use crate::conformance::recorded_stream::encode;

fn shell(script: &str, limit_ms: u64) -> TestedProgram {
    let command = ["sh", "-c", script].map(OsString::from).to_vec();
    TestedProgram { command, limit: Duration::from_millis(limit_ms) }
}

#[test]
fn output_and_exit_code_are_collected() {
    let run = shell("cat; echo why >&2; exit 4", 10_000).feed(b"frames").unwrap();
    assert_eq!((&*run.stdout, &*run.stderr, run.code()), (&b"frames"[..], "why\n", Some(4)));
    assert_eq!(run.in_words(), "it exited with 4");
    assert_eq!(shell("kill -9 $$", 10_000).feed(b"").unwrap().in_words(), "signal 9 ended it");
    assert!(TestedProgram { command: vec!["./no-such-program".into()], ..shell("", 1) }.feed(b"").is_err());
}

#[test]
fn hanging_program_is_killed_with_its_children() {
    let run = shell("sleep 1000 & sleep 1000", 50).feed(b"").unwrap();
    assert_eq!((run.end, &*run.in_words()), (None, "it did not end"));
    // A program that reads nothing does not block its feeder.
    assert_eq!(shell("sleep 1000", 50).feed(&vec![0; 1 << 20]).unwrap().end, None);
}

#[test]
fn awaited_frames_arrive_or_the_run_continues() {
    let hello = Hello { schema: 1, stage: "x".into(), version: "1".into(), upstream: Vec::new() };
    let hello = encode(&[hello.into()]);
    let steps =
        |frames| vec![ProgramStep::Write(hello.clone()), ProgramStep::Await(frames), ProgramStep::Write(b"b".to_vec())];
    let run = shell("cat", 10_000).run(steps(1), StdoutReader::Present).unwrap();
    assert_eq!(run.stdout, [&*hello, b"b"].concat());
    assert!(run.has_answered && run.code() == Some(0));
    assert!(!shell("cat", 50).run(steps(2), StdoutReader::Present).unwrap().has_answered);
    let signalled = vec![ProgramStep::Send(Signal::TERM)];
    let signalled = shell("exec sleep 1000", 10_000).run(signalled, StdoutReader::Gone).unwrap();
    assert_eq!(signalled.end.and_then(|end| end.signal()), Some(15));
}

#[test]
fn signals_come_again_until_the_program_ends() {
    let end = |script: &str, limit_ms| {
        let steps = vec![ProgramStep::SendUntilEnd(Signal::INT)];
        let run = shell(script, limit_ms).run(steps, StdoutReader::Present).unwrap();
        (run.has_answered, run.code())
    };
    assert!(end("exec sleep 1000", 10_000).0);
    assert_eq!(end("trap 'trap \"exit 7\" INT' INT; while :; do sleep 0.01; done", 10_000), (true, Some(7)));
    assert_eq!(end("trap '' INT; cat", 500), (false, Some(0)), "it ends with its input");
}
