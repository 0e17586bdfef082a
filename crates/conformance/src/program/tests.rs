//! Tests of running programs that end, hang or answer late.

use sizeleak_frame::Hello;

use super::*;
use crate::recorded_stream::encode;

fn shell(script: &str, limit_ms: u64) -> Program {
    let command = ["sh", "-c", script].map(OsString::from).to_vec();
    Program { command, limit: Duration::from_millis(limit_ms) }
}

#[test]
fn output_and_exit_code_are_collected() {
    let run = shell("cat; echo why >&2; exit 4", 10_000).feed(b"frames").unwrap();
    assert_eq!((&*run.stdout, &*run.stderr, run.end), (&b"frames"[..], "why\n", End::Code(4)));
    assert_eq!(shell("kill -9 $$", 10_000).feed(b"").unwrap().end, End::Signal(9));
    assert!(Program { command: vec!["./no-such-program".into()], ..shell("", 1) }.feed(b"").is_err());
}

#[test]
fn hanging_program_is_killed_with_its_children() {
    let run = shell("sleep 1000 & sleep 1000", 50).feed(b"").unwrap();
    assert_eq!(run.end, End::Never);
    // A program that reads nothing does not block its feeder.
    assert_eq!(shell("sleep 1000", 50).feed(&vec![0; 1 << 20]).unwrap().end, End::Never);
}

#[test]
fn awaited_frames_come_or_the_run_goes_on() {
    let hello = Hello { schema: 1, stage: "x".into(), version: "1".into(), upstream: Vec::new() };
    let hello = encode(&[hello.into()]);
    let steps = |frames| vec![Step::Write(hello.clone()), Step::Await(frames), Step::Write(b"b".to_vec())];
    let run = shell("cat", 10_000).run(steps(1), Reader::Present).unwrap();
    assert_eq!(run.stdout, [&*hello, b"b"].concat());
    assert!(run.has_answered && run.end == End::Code(0));
    assert!(!shell("cat", 50).run(steps(2), Reader::Present).unwrap().has_answered);
    let signalled = vec![Step::Send(Signal::TERM)];
    assert_eq!(shell("exec sleep 1000", 10_000).run(signalled, Reader::Gone).unwrap().end, End::Signal(15));
}
