//! The throughput of the stages, each alone and together, on generated captures: `cargo bench -p sizeleak-support`.
#![allow(missing_docs, clippy::unwrap_used)]

use std::fs::File;
use std::io;
use std::iter;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use sizeleak::pipeline::Pipeline;
use sizeleak::registry;
use sizeleak_frame::{Frame, Record};
use sizeleak_platform::runtime::{Input, InputError, Interrupt, Output, Received, Runnable, channel, run_fused};
use support::traffic::{Connections, GATEWAY, Shape, Traffic};
use tempfile::TempDir;
use toml::{Table, Value};

const SHAPES: [(&str, Shape); 3] =
    [("A, archive", Shape::Mtu), ("B, small packets", Shape::Small), ("C, all the gateway's", Shape::Records)];
const BYTES: u64 = 64 << 20;
const CONNECTIONS: Connections = Connections { flows: 256, at_once: 256 };

/// A capture on disk.
struct CaptureOnDisk {
    name: &'static str,
    file: PathBuf,
    packets: u64,
}

impl CaptureOnDisk {
    fn throughput(&self) -> Throughput {
        Throughput::ElementsAndBytes { elements: self.packets, bytes: self.file.metadata().unwrap().len() }
    }
}

fn captures(folder: &TempDir) -> Vec<CaptureOnDisk> {
    let write = |(name, shape): (&'static str, Shape)| {
        let file = folder.path().join(format!("{shape:?}.pcap"));
        let packets = Traffic::new(shape, 1, CONNECTIONS, 0).write(File::create(&file).unwrap(), BYTES).unwrap();
        CaptureOnDisk { name, file, packets }
    };
    SHAPES.into_iter().map(write).collect()
}

/// Runs a pipeline up to this stage over a capture.
fn run(capture: &Path, last: &str, mut sink: impl FnMut(Frame) + Send) {
    let mut pipeline = Pipeline::standard().until(last).unwrap();
    pipeline.read_captures(&[capture.to_owned()]).unwrap();
    if pipeline.has("flow-filter") {
        pipeline.set("flow-filter", "gateway", vec![GATEWAY.to_string()]).unwrap();
    }
    let mut take = |frame| {
        sink(frame);
        Ok(())
    };
    pipeline.prepare().unwrap().run(&Interrupt::new(), &mut take).unwrap();
}

/// The frames that a pipeline up to this stage makes of a capture.
fn made(capture: &Path, last: &str) -> Vec<Frame> {
    let mut frames = Vec::new();
    run(capture, last, |frame| frames.push(frame));
    frames
}

/// Frames in memory as a stage's input, in parcels like those of a channel.
struct Frames(std::vec::IntoIter<Frame>);

impl Input for Frames {
    fn receive(&mut self, parcel: &mut Vec<Frame>, _: &mut dyn FnMut()) -> Result<Received, InputError> {
        parcel.extend(self.0.by_ref().take(256));
        Ok(if parcel.is_empty() { Received::End } else { Received::Frames { since: Instant::now() } })
    }
}

/// Discards frames.
struct NullOutput;

impl Output for NullOutput {
    fn emit_all(&mut self, frames: &mut Vec<Frame>) -> io::Result<()> {
        frames.clear();
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn waited(&self) -> Duration {
        Duration::ZERO
    }
}

fn stage(name: &str) -> Box<dyn Runnable> {
    match name {
        "flow-filter" => configured(name, "gateway", vec![GATEWAY.to_string()].into()),
        "epsilon-corrector" | "decomposer" | "pruner" => stage_with_model(name),
        _ => (registry::find(name).unwrap().configure)(Table::new()).unwrap().build().unwrap(),
    }
}

/// A stage with the model of the bundled home.
fn stage_with_model(name: &str) -> Box<dyn Runnable> {
    configured(name, "model", Value::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/home/model.toml")))
}

fn configured(name: &str, option: &str, value: Value) -> Box<dyn Runnable> {
    let options = Table::from_iter([(option.to_owned(), value)]);
    (registry::find(name).unwrap().configure)(options).unwrap().build().unwrap()
}

fn together(criterion: &mut Criterion) {
    let folder = TempDir::new().unwrap();
    for capture in captures(&folder) {
        let mut group = criterion.benchmark_group(capture.name);
        group.throughput(capture.throughput());
        for (what, last) in [
            ("capture", "capture"),
            ("capture, flow-filter", "flow-filter"),
            ("capture, flow-filter, record-sizer", "record-sizer"),
            ("the first four stages", "command-segmenter"),
        ] {
            group.bench_function(what, |bencher| bencher.iter(|| run(&capture.file, last, drop)));
        }
        group.finish();
    }
}

fn each(criterion: &mut Criterion) {
    let folder = TempDir::new().unwrap();
    for capture in captures(&folder) {
        let mut group = criterion.benchmark_group(format!("{}, from memory", capture.name));
        group.throughput(capture.throughput());
        for (name, before) in
            [("flow-filter", "capture"), ("record-sizer", "flow-filter"), ("command-segmenter", "record-sizer")]
        {
            let frames = made(&capture.file, before);
            group.bench_function(name, |bencher| {
                let input = || (stage(name), Frames(frames.clone().into_iter()));
                bencher.iter_batched(
                    input,
                    |(stage, mut input)| stage.run(Some(&mut input), &mut NullOutput, &Interrupt::new(), None),
                    BatchSize::LargeInput,
                );
            });
        }
        group.finish();
    }
}

/// The records of the bundled home (1970, with 307 commands), repeated day by day.
fn at_home(days: i64) -> Vec<Frame> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/home/test.pcap");
    let frames = made(&file, "record-sizer");
    let mut all: Vec<Frame> = Vec::new();
    for day in 0..days {
        let later = |ns: i64| ns + day * 24 * 3600 * 1_000_000_000;
        all.extend(frames.iter().filter_map(|frame| match frame {
            Frame::Record(record) => {
                let (start_ns, time_ns) = (later(record.start_ns), later(record.time_ns));
                Some(Frame::Record(Record { start_ns, time_ns, ..record.clone() }))
            }
            Frame::Summary(_) => (day + 1 == days).then(|| frame.clone()),
            other => (day == 0).then(|| other.clone()),
        }));
    }
    all
}

/// Runs each stage on a thread of its own, as a pipeline does.
fn on_threads(stages: Vec<Box<dyn Runnable>>, frames: Frames) {
    thread::scope(|scope| {
        let mut input: Box<dyn Input + Send> = Box::new(frames);
        for stage in stages {
            let (mut output, next) = channel(16);
            let mut before = std::mem::replace(&mut input, Box::new(next));
            scope.spawn(move || stage.run(Some(&mut *before), &mut output, &Interrupt::new(), None));
        }
        take_all(&mut *input);
    });
}

/// Takes frames from a link until it ends.
fn take_all(input: &mut dyn Input) {
    let mut parcel = Vec::new();
    while let Ok(Received::Frames { .. }) = input.receive(&mut parcel, &mut || {}) {
        parcel.clear();
    }
}

/// Records of some traffic, and the segmenter for them.
struct Records {
    name: &'static str,
    frames: Vec<Frame>,
    segmenter: fn(&str) -> Box<dyn Runnable>,
}

fn records(frames: &[Frame]) -> Throughput {
    Throughput::Elements(frames.iter().filter(|frame| matches!(frame, Frame::Record(_))).count() as u64)
}

fn downstream(criterion: &mut Criterion) {
    let folder = TempDir::new().unwrap();
    let capture = &captures(&folder)[2];
    let frames = made(&capture.file, "record-sizer");
    let mut group = criterion.benchmark_group("records downstream");
    group.throughput(records(&frames));
    group.bench_function("hop between two threads", |bencher| {
        bencher.iter_batched(
            || frames.clone(),
            |frames| {
                let (mut output, mut input) = channel(16);
                thread::scope(|scope| {
                    scope.spawn(move || {
                        frames.into_iter().try_for_each(|frame| output.emit_all(&mut vec![frame])).unwrap();
                        output.flush().unwrap();
                    });
                    take_all(&mut input);
                });
            },
            BatchSize::LargeInput,
        );
    });
    let traffic = [
        Records { name: "commands of any size", frames, segmenter: stage },
        Records { name: "a home's", frames: at_home(200), segmenter: stage_with_model },
    ];
    for Records { name, frames, segmenter } in traffic {
        group.throughput(records(&frames));
        for (what, others) in [
            ("command-segmenter", &[][..]),
            ("command-segmenter, epsilon-corrector", &["epsilon-corrector"]),
            ("the last four stages", &["epsilon-corrector", "decomposer", "pruner"]),
        ] {
            group.bench_function(format!("{what}, {name}"), |bencher| {
                let stages =
                    || iter::once(segmenter("command-segmenter")).chain(others.iter().copied().map(stage)).collect();
                bencher.iter_batched(
                    || (stages(), Frames(frames.clone().into_iter())),
                    |(stages, mut input)| {
                        run_fused(stages, Some(&mut input), &mut NullOutput, &Interrupt::new(), &mut |_, _| {});
                    },
                    BatchSize::LargeInput,
                );
            });
        }
        group.bench_function(format!("the last four stages on a thread each, {name}"), |bencher| {
            let behind = ["epsilon-corrector", "decomposer", "pruner"];
            let stages = || iter::once(segmenter("command-segmenter")).chain(behind.map(stage)).collect();
            bencher.iter_batched(
                || (stages(), Frames(frames.clone().into_iter())),
                |(stages, frames)| on_threads(stages, frames),
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).warm_up_time(Duration::from_secs(1));
    targets = together, each, downstream
}
criterion_main!(benches);
