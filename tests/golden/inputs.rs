//! What the programs are run on: captures, frame streams, and the folder they lie in.

use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::Command;

use sizeleak_frame::{Frame, FrameWriter, Hello, SCHEMA, Summary};

use crate::programs::{example, root};
use crate::targets;
use crate::traffic::{Connections, Shape, Traffic};

/// A capture that goes through the pipeline.
pub(crate) struct Capture {
    pub(crate) name: String,
    pub(crate) files: Vec<PathBuf>,
    /// Whether the bundled model fits it; else the first four stages are run.
    pub(crate) has_model: bool,
}

/// A frame stream, and the stages that read it one after the other, with their arguments.
pub(crate) struct Stream {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) stages: Vec<&'static str>,
}

pub(crate) struct Inputs {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) captures: Vec<Capture>,
    /// Files that `capture` alone reads, whole or damaged.
    pub(crate) files: Vec<PathBuf>,
    pub(crate) streams: Vec<Stream>,
    /// Streams of real gateways that a run continues from.
    pub(crate) saved: Vec<PathBuf>,
}

impl Inputs {
    /// Writes the inputs into a temporary folder: generated captures of about `bytes` bytes, and the streams in
    /// `saved`. The programs run in it with relative paths, because messages contain paths.
    pub(crate) fn write(bytes: u64, saved: Option<&Path>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        copy_into(folder.path());
        let captures = captures(folder.path(), bytes);
        let mut streams: Vec<Stream> = Vec::new();
        for (name, bytes) in corpus("packet_parser") {
            let packets = Frame::from(targets::packets(&bytes));
            streams.push(Stream {
                name,
                bytes: stream("capture", [packets]),
                stages: vec![FILTER_ALL, "record-sizer"],
            });
        }
        for (name, bytes) in corpus("record_finder") {
            let frames = targets::flows().map(Frame::from).into_iter().chain([targets::segments(&bytes).into()]);
            let stages = vec!["record-sizer", "record-sizer --max-flow-bytes 4096 --max-bytes 8192"];
            for sizer in stages {
                let (name, bytes) = (format!("{name}, {sizer}"), stream("flow-filter", frames.clone()));
                streams.push(Stream { name, bytes, stages: vec![sizer, "command-segmenter"] });
            }
        }
        for (name, bytes) in corpus("frame_decoder") {
            for stage in [FILTER_ALL, "record-sizer", "command-segmenter", CORRECTOR, DECOMPOSER, PRUNER] {
                let name = format!("{name}, {}", stage.split(' ').next().unwrap());
                streams.push(Stream { name, bytes: bytes.clone(), stages: vec![stage] });
            }
        }
        let files =
            corpus_files("capture_reader").iter().map(|file| file.strip_prefix(root()).unwrap().into()).collect();
        let saved = saved.map_or_else(Vec::new, files_in);
        Self { folder, captures, files, streams, saved }
    }
}

const FILTER_ALL: &str = "flow-filter --gateway 0.0.0.0/0 --gateway ::/0 --allow-absent";
const CORRECTOR: &str = "epsilon-corrector --model examples/home/model.toml";
const DECOMPOSER: &str = "decomposer --model examples/home/model.toml";
const PRUNER: &str = "pruner --model examples/home/model.toml";

fn copy_into(folder: &Path) {
    let copy = |names: [&str; 2], to: &Path| {
        let mut copy = Command::new("cp");
        copy.arg("-R").args(names.map(|name| root().join(name))).arg(to);
        assert!(copy.status().unwrap().success());
    };
    copy(["examples", "pipeline.toml"], folder);
    fs::create_dir(folder.join("fuzz")).unwrap();
    copy(["fuzz/corpus", "fuzz/README.md"], &folder.join("fuzz"));
}

fn captures(folder: &Path, bytes: u64) -> Vec<Capture> {
    let connections = Connections { flows: 256, at_once: 256 };
    let write = |name: &str, shape, seed, begins| {
        let file = folder.join(format!("{name}.pcap"));
        Traffic::new(shape, seed, connections, begins).write(File::create(&file).unwrap(), bytes).unwrap();
        file
    };
    let [a, b, c] = [("A", Shape::Mtu), ("B", Shape::Small), ("C", Shape::Records)]
        .map(|(name, shape)| write(name, shape, 1, 1_767_600_000));
    let overlapping = write("overlapping", Shape::Mtu, 2, 1_767_600_000);
    let later = write("later", Shape::Records, 3, 1_767_800_000);
    let compressed = folder.join("compressed.pcap.zst");
    zstd::stream::copy_encode(File::open(&later).unwrap(), File::create(&compressed).unwrap(), 1).unwrap();
    let damaged = folder.join("damaged.pcap");
    let whole = fs::read(&a).unwrap();
    fs::write(&damaged, &whole[..whole.len() - 1]).unwrap();
    let home = |name| folder.join(example(name));
    let capture = |name: &str, files: &[&PathBuf], has_model| Capture {
        name: name.to_owned(),
        files: files.iter().map(|file| file.strip_prefix(folder).unwrap().into()).collect(),
        has_model,
    };
    vec![
        capture("home", &[&home("test.pcap")], true),
        capture("home, both captures", &[&home("test.pcap"), &home("learn.pcap")], true),
        capture("A", &[&a], false),
        capture("B", &[&b], false),
        capture("C", &[&c], false),
        capture("overlapping captures", &[&a, &overlapping, &c], false),
        capture("captures that follow each other", &[&b, &compressed], false),
        capture("damaged capture among others", &[&damaged, &later], false),
    ]
}

/// A whole stream of these frames, as this stage would write it.
fn stream(stage: &str, frames: impl IntoIterator<Item = Frame>) -> Vec<u8> {
    let hello = Hello { schema: SCHEMA, stage: stage.to_owned(), version: "0".to_owned(), upstream: Vec::new() };
    let mut writer = FrameWriter::new(Vec::new());
    writer.write(&Frame::from(hello)).unwrap();
    frames.into_iter().for_each(|frame| writer.write(&frame).unwrap());
    writer.write(&Frame::from(Summary::default())).unwrap();
    writer.flush().unwrap();
    writer.output().clone()
}

fn corpus_files(target: &str) -> Vec<PathBuf> {
    files_in(&root().join("fuzz/corpus").join(target))
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let name = |file: &PathBuf| format!("{target}/{}", file.file_name().unwrap().to_str().unwrap());
    corpus_files(target).iter().map(|file| (name(file), fs::read(file).unwrap())).collect()
}

/// The gateway of the bundled home, of the generated captures and, with the others, of the saved streams.
pub(crate) const GATEWAY: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 168, 1, 20));
