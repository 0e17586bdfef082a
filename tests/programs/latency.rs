//! Latencies at the end of a run and of a Unix pipe: as a table of all stages, and as a log that another implementation
//! of `HdrHistogram` reads.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use sizeleak_frame::Summary;
use sizeleak_platform::telemetry::{Latency, LatencyTable};
use support::programs::{GATEWAY, STAGES, example, pipe, root, seven, sizeleak, stderr, stdout};
use support::streams::summary_of;

/// The summary at the end of a stream.
fn summary(stream: &[u8]) -> Summary {
    let summary = summary_of(stream);
    assert_eq!(summary.stages.iter().map(|row| row.stage.as_str()).collect::<Vec<_>>(), STAGES);
    summary
}

#[test]
fn last_stage_of_a_unix_pipe_prints_all_latencies() {
    let mut commands = seven(&example("test.pcap"));
    commands[6].arg("--latency");
    let piped = pipe(commands);
    let table = LatencyTable(&summary(&piped[6].stdout)).to_string();
    assert_eq!(stderr(&piped[6]), format!("{table}\n"));
    assert_eq!(table.lines().count(), 8);
}

fn run(mode: &str) -> Command {
    let (capture, model) = (example("test.pcap"), example("model.toml"));
    sizeleak(&format!("run pipeline.toml {capture} --gateway {GATEWAY} --model {model} --format frames --mode {mode}"))
}

#[test]
fn run_prints_the_latencies_in_both_modes() {
    for mode in ["threads", "processes"] {
        let output = run(mode).arg("--latency").output().unwrap();
        let table = LatencyTable(&summary(&output.stdout)).to_string();
        assert!(stderr(&output).ends_with(&format!("\n{table}\n")), "{mode}: {}", stderr(&output));
    }
}

/// What the other implementation finds in a log.
fn read_log(log: &Path) -> Vec<Value> {
    let mut python = Command::new("python3");
    python.arg(root().join("tests/programs/latency/read_log.py")).arg(log);
    let lines = String::from_utf8(stdout(&mut python)).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Checks a log against the summary of the same stream.
fn assert_agree(log: &Path, summary: &Summary) {
    let mut intervals = read_log(log).into_iter();
    for row in &summary.stages {
        for (kind, bytes, frames) in [("service", &row.latency, row.frames_in), ("queue", &row.queue, row.frames_in)] {
            let interval = intervals.next().unwrap();
            let latency = Latency::from_bytes(bytes).unwrap();
            let histogram = latency.histogram();
            let (name, stage) = (format!("{}.{kind}", row.stage), row.stage.as_str());
            assert_eq!(interval["tag"], *name);
            assert_eq!(interval["count"], histogram.len(), "{name}");
            for (key, quantile) in [("p50", 0.5), ("p99", 0.99), ("max", 1.0)] {
                let own = if histogram.is_empty() { 0 } else { histogram.value_at_quantile(quantile) };
                assert_eq!(interval[key], own, "{name} {key}");
            }
            // A stage that reads frames also records the end of its input; a source waits for no frames.
            let wanted = match (stage, kind) {
                ("capture", "queue") => 0,
                ("capture", _) | (_, "queue") => frames,
                _ => frames + 1,
            };
            assert_eq!(histogram.len(), wanted, "{name}");
        }
    }
    assert_eq!(intervals.next(), None);
}

#[test]
#[ignore = "second tier: needs python3 with hdrhistogram"]
fn another_implementation_reads_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("latency.hlog");
    for mode in ["threads", "processes"] {
        assert_agree(&log, &summary(&stdout(run(mode).arg("--quiet").arg("--latency-log").arg(&log))));
    }
    let mut commands = seven(&example("test.pcap"));
    commands[6].arg("--latency-log").arg(&log);
    assert_agree(&log, &summary(&pipe(commands)[6].stdout));
}
