//! A node passes on frames of other kinds, sends `hello` and `summary`, and distinguishes cut streams from whole ones.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::thread;
use std::time::Duration;

use sizeleak_frame::{Command, Frame, Hello, Notice, SCHEMA, StageSummary, Summary, Unknown, what};
use sizeleak_platform::runtime::{
    Emit, Input, Interrupt, Node, Outcome, Output, Runnable, Source, SourceCounts, SourceEmit, SourceNode, Stage,
    StageError, StreamInput, StreamOutput, channel,
};
use sizeleak_platform::telemetry::{FrameCounts, Latency, Telemetry};
use support::streams::{frames_of, stream_of};

/// Doubles every command, and holds the last one back until input ends.
#[derive(Default)]
struct Doubler(Option<Command>);

impl Stage for Doubler {
    const NAME: &'static str = "doubler";
    type Input = Command;

    fn process(&mut self, command: Command, out: &mut dyn Emit) -> Result<(), StageError> {
        if command.size == 1_000_000 {
            return Err(StageError::failed("an impossible size"));
        }
        if let Some(held) = self.0.replace(command) {
            out.emit(held.clone().into())?;
            out.emit(held.into())?;
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut dyn Emit) -> Result<(), StageError> {
        Ok(self.0.take().map_or(Ok(()), |held| out.emit(held.into()))?)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("held", u64::from(self.0.is_some()))]
    }
}

fn command(size: u64) -> Command {
    Command { time_ns: 1, end_ns: 2, flow: 3, size, records: 1, ..Command::default() }
}

fn hello() -> Frame {
    Frame::from(Hello { schema: SCHEMA, stage: "first".into(), version: "x".into(), upstream: vec![] })
}

fn summary() -> Frame {
    let row = StageSummary { stage: "first".into(), counters: BTreeMap::new(), ..StageSummary::default() };
    Frame::Summary(Summary { stages: vec![row] })
}

fn unknown() -> Frame {
    Frame::Unknown(Unknown { kind: "new".into(), value: vec![0x81, 0xa3, b'n', b'e', b'w', 0xc0] })
}

fn run(input: &[u8]) -> (Outcome, Vec<Frame>) {
    let mut output = Vec::new();
    let outcome = Box::new(Node::new(Doubler::default())).run(
        Some(&mut StreamInput::new(input)),
        &mut StreamOutput::new(&mut output),
        &Interrupt::new(),
        None,
    );
    (outcome, frames_of(&output))
}

#[test]
fn node_publishes_its_counters_on_the_meter() {
    let telemetry = Telemetry::new();
    let meter = telemetry.meter("doubler");
    let input = stream_of(&[hello(), command(5).into(), command(7).into(), summary()]);
    let mut node: Box<dyn Runnable> = Box::new(Node::new(Doubler::default()));
    node.set_meter(meter.clone());
    let mut output = StreamOutput::new(Vec::new());
    let outcome = node.run(Some(&mut StreamInput::new(&input[..])), &mut output, &Interrupt::new(), None);
    assert_eq!(outcome, Outcome::Done);
    // Two of the first command, one of the second, which was held back.
    let figures = meter.figures();
    assert_eq!(figures.counts, FrameCounts { frames_in: 2, frames_out: 3, bytes_in: 12 });
    // One of the service times is that of the end.
    assert_eq!([&figures.service, &figures.queue].map(|times| times.histogram().len()), [3, 2]);
}

#[test]
fn whole_stream_passes_through_with_hello_and_summary() {
    let input = stream_of(&[hello(), command(5).into(), unknown(), command(7).into(), summary()]);
    let (outcome, output) = run(&input);
    assert_eq!(outcome, Outcome::Done);
    let kinds: Vec<&str> = output.iter().map(Frame::kind).collect();
    assert_eq!(kinds, ["hello", "new", "command", "command", "command", "summary"]);
    let Frame::Hello(hello) = &output[0] else { panic!() };
    assert_eq!((hello.stage.as_str(), &hello.upstream[..]), ("doubler", &["first".to_owned()][..]));
    let Frame::Summary(summary) = &output[5] else { panic!() };
    let own = &summary.stages[1];
    assert_eq!((own.frames_in, own.frames_out, own.bytes_in), (2, 3, 12));
    assert_eq!(own.counters.get("held"), Some(&0));
    assert_eq!(Latency::from_bytes(&own.latency).unwrap().histogram().len(), 3, "two commands and the end");
    assert_eq!(Latency::from_bytes(&own.queue).unwrap().histogram().len(), 2);
}

#[test]
fn cut_stream_ends_without_a_summary() {
    let (outcome, output) = run(&stream_of(&[hello(), command(5).into()]));
    assert!(
        matches!(&outcome, Outcome::Cut(cause) if cause.contains("`first` ended without its summary")),
        "{outcome:?}"
    );
    let kinds: Vec<&str> = output.iter().map(Frame::kind).collect();
    assert_eq!(kinds, ["hello", "command", "notice"]);

    let next = run(&stream_of(&output)).0;
    assert!(
        matches!(&next, Outcome::Cut(cause) if cause.contains("`doubler`: the frame stream from `first`")),
        "{next:?}"
    );
}

/// A stage that died at once must not look like an invalid stream two stages later.
#[test]
fn empty_input_is_a_cut_stream() {
    let (outcome, output) = run(b"");
    assert!(matches!(&outcome, Outcome::Cut(cause) if cause.contains("is empty")), "{outcome:?}");
    assert_eq!(output.iter().map(Frame::kind).collect::<Vec<_>>(), ["hello", "notice"]);
    let next = run(&stream_of(&output)).0;
    assert!(matches!(&next, Outcome::Cut(cause) if cause.contains("`doubler`: the frame stream is empty")), "{next:?}");
}

#[test]
fn invalid_stream_fails_after_the_whole_frames() {
    let input = [stream_of(&[hello(), command(5).into()]), vec![0xc1]].concat();
    let (outcome, output) = run(&input);
    assert!(matches!(&outcome, Outcome::Failed(cause) if cause.contains("0xc1")), "{outcome:?}");
    assert!(output.contains(&command(5).into()));
}

/// Fails at the end unless it received a command.
#[derive(Default)]
struct RequiresCommand(u64);

impl Stage for RequiresCommand {
    const NAME: &'static str = "wanting";
    type Input = Command;

    fn process(&mut self, _: Command, _: &mut dyn Emit) -> Result<(), StageError> {
        self.0 += 1;
        Ok(())
    }

    fn finish(&mut self, _: &mut dyn Emit) -> Result<(), StageError> {
        if self.0 == 0 { Err(StageError::failed("there was no command")) } else { Ok(()) }
    }
}

#[test]
fn failure_of_finish_counts_only_for_a_whole_stream() {
    let run = |input: &[u8]| {
        Box::new(Node::new(RequiresCommand::default())).run(
            Some(&mut StreamInput::new(input)),
            &mut StreamOutput::new(&mut Vec::new()),
            &Interrupt::new(),
            None,
        )
    };
    assert_eq!(run(&stream_of(&[hello(), summary()])), Outcome::Failed("there was no command".into()));
    assert!(matches!(run(&stream_of(&[hello()])), Outcome::Cut(cause) if cause.contains("`first` ended")));
}

#[test]
fn failing_stage_sends_a_notice() {
    let (outcome, output) = run(&stream_of(&[hello(), command(1_000_000).into(), summary()]));
    assert_eq!(outcome, Outcome::Failed("an impossible size".into()));
    let Some(Frame::Notice(notice)) = output.last() else { panic!("{output:?}") };
    assert_eq!(notice.what, what::FAILED);
}

struct Counter(u64);

impl Source for Counter {
    const NAME: &'static str = "counter";

    fn run(&mut self, out: &mut dyn SourceEmit, interrupt: &Interrupt) -> Result<(), StageError> {
        while self.0 > 0 && !interrupt.is_set() {
            self.0 -= 1;
            out.emit(command(self.0).into())?;
        }
        Ok(())
    }

    fn counts(&self) -> SourceCounts {
        SourceCounts::default()
    }
}

#[test]
fn threads_and_streams_carry_the_same_frames() {
    let interrupt = Interrupt::new();
    let (mut first, mut between) = channel(2);
    let (mut second, mut last) = channel(2);
    let mut threaded = Vec::new();
    thread::scope(|scope| {
        let interrupt = &interrupt;
        let head = move || {
            let outcome = Box::new(SourceNode::new(Counter(5000))).run(None, &mut first, interrupt, None);
            drop(first);
            outcome
        };
        scope.spawn(head);
        scope.spawn(move || {
            let node = Box::new(Node::new(Doubler::default()));
            let outcome = node.run(Some(&mut between), &mut second, interrupt, None);
            drop(second);
            outcome
        });
        while matches!(last.receive(&mut threaded, &mut || {}), Ok(sizeleak_platform::runtime::Received::Frames { .. }))
        {
        }
    });
    let mut stream = Vec::new();
    let source = Box::new(SourceNode::new(Counter(5000)));
    source.run(None, &mut StreamOutput::new(&mut stream), &interrupt, None);
    let (_, mut streamed) = run(&stream);
    // The summaries differ in their measured times.
    assert_eq!((threaded.pop().unwrap().kind(), streamed.pop().unwrap().kind()), ("summary", "summary"));
    assert_eq!(threaded.len(), 10_000);
    assert!(threaded == streamed);
}

#[test]
fn closed_output_ends_the_source() {
    let (mut output, input) = channel(1);
    drop(input);
    let outcome = Box::new(SourceNode::new(Counter(u64::MAX))).run(None, &mut output, &Interrupt::new(), None);
    assert_eq!(outcome, Outcome::Closed);
    let sent = output.emit_all(&mut vec![notice().into()]).and_then(|()| output.flush());
    assert_eq!(sent.unwrap_err().kind(), ErrorKind::BrokenPipe);
}

fn notice() -> Notice {
    Notice { time_ns: None, stage: "x".into(), flow: None, what: "y".into(), bytes: None, detail: None }
}

#[test]
fn write_error_fails_the_node() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let outcome =
        Box::new(SourceNode::new(Counter(3))).run(None, &mut StreamOutput::new(full), &Interrupt::new(), None);
    assert!(matches!(&outcome, Outcome::Failed(cause) if cause.contains("cannot be written")), "{outcome:?}");
}

#[test]
fn interrupted_source_sends_a_summary() {
    let interrupt = Interrupt::new();
    interrupt.set();
    let mut output = Vec::new();
    let outcome =
        Box::new(SourceNode::new(Counter(9))).run(None, &mut StreamOutput::new(&mut output), &interrupt, None);
    assert_eq!(outcome, Outcome::Interrupted);
    assert_eq!(frames_of(&output).last().map(Frame::kind), Some("summary"));
}

/// The time that the delayed output takes for a frame.
const SLOW: Duration = Duration::from_millis(5);

/// An output that delays every frame.
struct DelayedOutput;

impl Output for DelayedOutput {
    fn emit_all(&mut self, frames: &mut Vec<Frame>) -> io::Result<()> {
        frames.clear();
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        thread::sleep(SLOW);
        Ok(())
    }

    fn waited(&self) -> Duration {
        Duration::ZERO
    }
}

#[test]
fn time_of_later_stages_is_not_service_time_of_earlier_ones() {
    let mut delayed = DelayedOutput;
    let mut attached = Box::new(Node::new(Doubler::default())).fuse(&mut delayed).unwrap();
    attached.flush().unwrap();
    assert!(attached.waited() >= SLOW);
}
