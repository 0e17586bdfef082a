//! How much a second the stages take, each alone and together, of captures made for it: `cargo bench`.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "archive/conversation.rs"]
mod conversation;
#[path = "archive/traffic.rs"]
mod traffic;
#[path = "archive/wire.rs"]
mod wire;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use sizeleak::pipeline::Pipeline;
use sizeleak::registry;
use sizeleak_frame::{Frame, Record};
use sizeleak_stage::{Emit, Input, InputError, Interrupt, Output, Received, Runnable, Silent, channel, run_attached};
use tempfile::TempDir;
use toml::{Table, Value};
use traffic::{GATEWAY, Shape, Traffic};

const SHAPES: [(&str, Shape); 3] =
    [("A, archive", Shape::Mtu), ("B, small packets", Shape::Small), ("C, all the gateway's", Shape::Records)];
const BYTES: u64 = 64 << 20;
const FLOWS: u32 = 256;

/// A capture on disk.
struct Captured {
    name: &'static str,
    file: PathBuf,
    packets: u64,
}

impl Captured {
    fn throughput(&self) -> Throughput {
        Throughput::ElementsAndBytes { elements: self.packets, bytes: self.file.metadata().unwrap().len() }
    }
}

fn captures(folder: &TempDir) -> Vec<Captured> {
    let write = |(name, shape): (&'static str, Shape)| {
        let file = folder.path().join(format!("{shape:?}.pcap"));
        let packets = Traffic::new(shape, 1, FLOWS, 0).write(File::create(&file).unwrap(), BYTES).unwrap();
        Captured { name, file, packets }
    };
    SHAPES.into_iter().map(write).collect()
}

/// Runs a pipeline up to this stage over a capture.
fn run(capture: &Path, last: &str, mut sink: impl FnMut(Frame)) {
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

/// What a pipeline up to this stage makes of a capture.
fn made(capture: &Path, last: &str) -> Vec<Frame> {
    let mut frames = Vec::new();
    run(capture, last, |frame| frames.push(frame));
    frames
}

/// Frames in memory as a stage's input, in parcels as a channel brings them.
struct Frames(std::vec::IntoIter<Frame>);

impl Input for Frames {
    fn receive(&mut self, parcel: &mut Vec<Frame>, _: &mut dyn FnMut()) -> Result<Received, InputError> {
        parcel.extend(self.0.by_ref().take(256));
        Ok(if parcel.is_empty() { Received::End } else { Received::Frames { since: Instant::now() } })
    }
}

/// Takes frames and forgets them.
struct Nowhere;

impl Emit for Nowhere {
    fn emit(&mut self, _: Frame) -> Result<(), sizeleak_stage::Closed> {
        Ok(())
    }
}

impl Output for Nowhere {
    fn flush(&mut self) -> Result<(), sizeleak_stage::Closed> {
        Ok(())
    }

    fn waited(&self) -> Duration {
        Duration::ZERO
    }
}

fn stage(name: &str) -> Box<dyn Runnable> {
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/home/model.toml");
    let mut options = Table::new();
    match name {
        "flow-filter" => _ = options.insert("gateway".into(), vec![GATEWAY.to_string()].into()),
        "epsilon-corrector" | "decomposer" | "pruner" => _ = options.insert("model".into(), Value::from(model)),
        _ => {}
    }
    registry::find(name).unwrap().configure(options).unwrap().build().unwrap()
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
                    |(stage, mut input)| stage.run(Some(&mut input), &mut Nowhere, &Interrupt::new(), &mut Silent),
                    BatchSize::LargeInput,
                );
            });
        }
        group.finish();
    }
}

fn downstream(criterion: &mut Criterion) {
    let folder = TempDir::new().unwrap();
    let capture = &captures(&folder)[2];
    let frames = made(&capture.file, "record-sizer");
    let records = frames.iter().filter(|frame| matches!(frame, Frame::Record(Record { .. }))).count();
    let mut group = criterion.benchmark_group("records downstream");
    group.throughput(Throughput::Elements(records as u64));
    group.bench_function("hop between two threads", |bencher| {
        bencher.iter_batched(
            || frames.clone(),
            |frames| {
                let (mut output, mut input) = channel(16);
                std::thread::scope(|scope| {
                    scope.spawn(move || {
                        frames.into_iter().try_for_each(|frame| output.emit(frame)).unwrap();
                        output.flush().unwrap();
                    });
                    let mut parcel = Vec::new();
                    while let Ok(Received::Frames { .. }) = input.receive(&mut parcel, &mut || {}) {
                        parcel.clear();
                    }
                });
            },
            BatchSize::LargeInput,
        );
    });
    group.bench_function("the last four stages", |bencher| {
        let names = ["epsilon-corrector", "decomposer", "pruner"];
        bencher.iter_batched(
            || (stage("command-segmenter"), names.map(stage).into(), Frames(frames.clone().into_iter())),
            |(first, others, mut input)| {
                run_attached(first, others, Some(&mut input), &mut Nowhere, &Interrupt::new(), &mut |_, _| {});
            },
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).warm_up_time(Duration::from_secs(1));
    targets = together, each, downstream
}
criterion_main!(benches);
