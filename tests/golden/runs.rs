//! Runs the programs of a folder in every mode, and takes digests of their output.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sizeleak_frame::{Frame, FrameReader, FrameWriter};

use crate::inputs::{Capture, GATEWAY, Inputs, Stream};
use crate::processors;
use crate::programs::{feed, pipe, stdout, write};

const MODEL: &str = "examples/home/model.toml";

const STAGES: [&str; 7] =
    ["capture", "flow-filter", "record-sizer", "command-segmenter", "epsilon-corrector", "decomposer", "pruner"];

/// The digest of a run's output.
pub(crate) struct Digest {
    pub(crate) name: String,
    pub(crate) digest: String,
}

impl Digest {
    fn of(name: impl Into<String>, bytes: &[u8]) -> Self {
        let digest = blake3::hash(bytes).to_hex()[..32].to_owned();
        Self { name: name.into(), digest }
    }
}

/// The digests of everything.
pub(crate) fn all(programs: &Path, inputs: &Inputs) -> Vec<Digest> {
    let programs = Programs { folder: &programs.canonicalize().unwrap(), inputs: inputs.folder.path() };
    let mut digests = Vec::new();
    for capture in &inputs.captures {
        programs.capture(capture, inputs.folder.path(), &mut digests);
    }
    for file in &inputs.files {
        let name = format!("capture_reader/{}", file.file_name().unwrap().to_str().unwrap());
        digests.push(programs.damaged(name, "capture", std::slice::from_ref(file), Vec::new()).0);
    }
    for Stream { name, bytes, stages } in &inputs.streams {
        let mut bytes = bytes.clone();
        for stage in stages {
            let (digest, output) = programs.damaged(format!("{name}: {stage}"), stage, &[], bytes);
            digests.push(digest);
            bytes = output;
        }
    }
    for file in &inputs.saved {
        programs.saved(file, &mut digests);
    }
    programs.documents(inputs.folder.path(), &mut digests);
    digests
}

/// The programs of a folder.
struct Programs<'a> {
    folder: &'a Path,
    /// Where they run.
    inputs: &'a Path,
}

/// How many processors a program may run on.
#[derive(Debug, Clone, Copy)]
enum Processors {
    One,
    All,
}

impl Programs<'_> {
    /// A program with arguments, split at spaces, pinned to one processor if so asked.
    fn with(&self, arguments: &str, processors: Processors) -> Command {
        let mut words = arguments.split_whitespace();
        let program = self.folder.join(words.next().unwrap());
        let mut command = match processors {
            Processors::All => Command::new(program),
            Processors::One => {
                let mut command = Command::new("taskset");
                command.args(["-c", &processors::first(1)]).arg(program);
                command
            }
        };
        command.args(words).current_dir(self.inputs);
        command
    }

    /// A capture through threads, processes and a Unix pipe, on one processor and on all: the same digest each time.
    fn capture(&self, capture: &Capture, folder: &Path, digests: &mut Vec<Digest>) {
        let stages = if capture.has_model { 7 } else { 4 };
        let pipeline = STAGES[..stages].iter().map(|stage| format!("[[stage]]\nrun = \"{stage}\"\n"));
        write(folder, "stages.toml", pipeline.collect::<String>());
        let model = if capture.has_model { format!("--model {MODEL}") } else { String::new() };
        let mut all: Vec<(String, Vec<u8>)> = Vec::new();
        for processors in [Processors::One, Processors::All] {
            for mode in ["threads", "processes"] {
                let arguments = format!(
                    "sizeleak run stages.toml --gateway {GATEWAY} {model} --quiet --format frames --mode {mode} --input"
                );
                let mut command = self.with(&arguments, processors);
                let output = command.args(&capture.files).output().unwrap();
                all.push((format!("{mode}, {processors:?}"), up_to_summary(&output.stdout)));
            }
            let mut commands: Vec<Command> =
                (0..stages).map(|at| self.with(&stage(at, capture.has_model), processors)).collect();
            commands[0].args(&capture.files);
            let last = pipe(commands).pop().unwrap();
            all.push((format!("Unix pipe, {processors:?}"), up_to_summary(&last.stdout)));
        }
        for (way, frames) in &all {
            assert!(*frames == all[0].1, "{}: {way} and {} differ", capture.name, all[0].0);
        }
        digests.push(Digest::of(&capture.name, &all[0].1));
        self.stage_by_stage(capture, stages, digests);
    }

    /// The output of each stage, batches included.
    fn stage_by_stage(&self, capture: &Capture, stages: usize, digests: &mut Vec<Digest>) {
        let mut command = self.with(&stage(0, false), Processors::All);
        let mut bytes = command.args(&capture.files).output().unwrap().stdout;
        for (at, name) in STAGES.iter().enumerate().take(stages) {
            if at > 0 {
                bytes = feed(self.with(&stage(at, capture.has_model), Processors::All), bytes).stdout;
            }
            digests.push(Digest::of(format!("{}: {name}", capture.name), &timeless(&bytes)));
        }
    }

    /// One stage over arbitrary input: its frames and its exit code.
    fn damaged(&self, name: String, stage: &str, files: &[PathBuf], bytes: Vec<u8>) -> (Digest, Vec<u8>) {
        let mut command = self.with(stage, Processors::All);
        command.args(files);
        let output = feed(command, bytes);
        let mut frames = timeless(&output.stdout);
        frames.extend(format!("{:?}", output.status.code()).bytes());
        (Digest::of(name, &frames), output.stdout)
    }

    /// A saved stream, continued by each algorithm of the segmenter and by the bundled model.
    fn saved(&self, file: &Path, digests: &mut Vec<Digest>) {
        if !file.to_string_lossy().ends_with(".frames.zst") {
            return;
        }
        let name = file.file_name().unwrap().to_str().unwrap();
        let file = file.canonicalize().unwrap();
        for algorithm in ["gap", "record", "adaptive", "learned"] {
            for mode in ["threads", "processes"] {
                let arguments = format!(
                    "sizeleak run pipeline.toml --from {} --model {MODEL} --set command-segmenter.algorithm={algorithm} \
                     --quiet --format frames --mode {mode}",
                    file.display()
                );
                let output = self.with(&arguments, Processors::All).output().unwrap();
                digests.push(Digest::of(format!("{name}: {algorithm}, {mode}"), &timeless(&output.stdout)));
            }
        }
    }

    /// The machine-readable output of the subcommands.
    fn documents(&self, folder: &Path, digests: &mut Vec<Digest>) {
        let home = "examples/home";
        let labelled =
            |set: &str| format!("--capture {home}/{set}.pcap --labels {home}/{set}.csv --gateway {GATEWAY} --quiet");
        let mut run = |name: &str, arguments: String| {
            let bytes = stdout(&mut self.with(&arguments, Processors::All));
            digests.push(Digest::of(name, &bytes));
        };
        let inventory = format!("--inventory {home}/inventory.toml");
        run("learn", format!("sizeleak learn {} {inventory} -o -", labelled("learn")));
        run("learn by the paper", format!("sizeleak learn {} {inventory} --method paper -o -", labelled("learn")));
        run("evaluate", format!("sizeleak evaluate --model {MODEL} {} --json", labelled("test")));
        for format in ["ndjson", "csv", "parquet", "zeek"] {
            run(format, format!("sizeleak run pipeline.toml --quiet --format {format} --kind identification"));
        }
        let simulated = folder.join("simulated");
        let scenario = "--scenario examples/scenarios/mqtt-tls13.toml --seed 7";
        run("simulate", format!("sizeleak simulate {scenario} -o {}", simulated.display()));
        let mut files: Vec<_> = fs::read_dir(&simulated).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        for file in files {
            let name = format!("simulate: {}", file.file_name().unwrap().to_str().unwrap());
            digests.push(Digest::of(name, &fs::read(file).unwrap()));
        }
        fs::remove_dir_all(simulated).unwrap();
    }
}

/// The command line of a stage.
fn stage(at: usize, has_model: bool) -> String {
    let arguments = match at {
        1 => format!(" --gateway {GATEWAY}"),
        3.. if has_model => format!(" --model {MODEL}"),
        _ => String::new(),
    };
    format!("{} --quiet{arguments}", STAGES[at])
}

/// A stream without its summary.
fn up_to_summary(stream: &[u8]) -> Vec<u8> {
    rewritten(stream, |frame| !matches!(frame, Frame::Summary(_)))
}

/// A stream, as far as it can be read, without the latencies in its summary.
fn timeless(stream: &[u8]) -> Vec<u8> {
    rewritten(stream, |frame| {
        if let Frame::Summary(summary) = frame {
            for row in &mut summary.stages {
                row.latency.clear();
                row.queue.clear();
            }
        }
        true
    })
}

fn rewritten(stream: &[u8], mut keep: impl FnMut(&mut Frame) -> bool) -> Vec<u8> {
    let mut reader = FrameReader::new(stream);
    let mut writer = FrameWriter::new(Vec::new());
    while let Ok(Some(mut frame)) = reader.next_frame() {
        if keep(&mut frame) {
            writer.write(&frame).unwrap();
        }
    }
    writer.flush().unwrap();
    writer.output().clone()
}
