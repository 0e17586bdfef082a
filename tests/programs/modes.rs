//! Threads, processes and a plain Unix pipe give the same bytes, with foreign programs as stages, too; a slow reader stalls
//! all stages.

use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use support::home::Home;
use support::programs::{example, pipe, program, root, seven, sizeleak, stderr, stdout, write};
use support::streams::summary_of;
use support::timeless::timeless;

const MODES: [&str; 2] = ["threads", "processes"];

#[test]
fn threads_processes_a_unix_pipe_and_any_queue_give_the_same_bytes() {
    let home = Home::bundled();
    let file = home.text_of("pipeline.toml");
    let run = |pipeline: &str, mode: &str| {
        stdout(&mut home.sizeleak(&format!("run {pipeline} --format frames --quiet --mode {mode}")))
    };
    let threads = timeless(&run("pipeline.toml", "threads"));
    for mode in MODES {
        let stream = run("pipeline.toml", mode);
        assert!(timeless(&stream) == threads, "{mode}");
        let stages = summary_of(&stream).stages;
        assert!(stages.len() == 7 && stages.iter().all(|row| !row.latency.is_empty()), "{mode}: {stages:?}");
    }
    for depth in [1, 16, 4096] {
        write(home.folder(), "queue.toml", file.replace("queue-depth = 16", &format!("queue-depth = {depth}")));
        assert!(timeless(&run("queue.toml", "threads")) == threads, "{depth}");
    }
    let piped = pipe(seven(&example("test.pcap")));
    for output in &piped {
        assert!(output.status.success(), "{}", stderr(output));
    }
    assert!(timeless(&piped[6].stdout) == threads, "a Unix pipe");
}

#[test]
fn foreign_stages_work_in_both_modes_and_at_any_place() {
    const CAT: &str = "[[stage]]\nname = \"mine\"\ncommand = [\"sh\", \"-c\", \"exec cat\"]\n";
    const READ: &str = "[[stage]]\nrun = \"capture\"\nfiles = [\"test.pcap\"]\n";
    const FILTER: &str = "[[stage]]\nrun = \"flow-filter\"\ngateway = [\"192.168.1.20\"]\n";
    const SIZE: &str = "[[stage]]\nrun = \"record-sizer\"\n[[stage]]\nrun = \"command-segmenter\"\n";
    let home = Home::bundled();
    let run = |stages: &[&str], mode: &str| {
        write(home.folder(), "p.toml", stages.concat());
        timeless(&stdout(&mut home.sizeleak(&format!("run p.toml --format frames --quiet --mode {mode}"))))
    };
    let plain = run(&[READ, FILTER, SIZE], "threads");
    for mode in MODES {
        assert!(run(&[READ, FILTER, CAT, SIZE], mode) == plain, "{mode}");
        assert!(run(&[READ, FILTER, CAT, CAT, SIZE], mode) == plain, "{mode}");
    }
    let capture = program("capture");
    let first = format!("[[stage]]\ncommand = [{:?}, \"--quiet\", \"test.pcap\"]\n", capture.get_program());
    assert!(run(&[&first, FILTER, CAT], "threads").len() > 10_000, "first and last");
}

/// Back-pressure: a sink that does not read stalls the whole pipeline, and memory stops growing.
#[test]
fn slow_reader_stops_the_pipeline() {
    let folder = tempfile::tempdir().unwrap();
    let fifty: Vec<String> = (0..50).map(|_| root().join(example("test.pcap")).display().to_string()).collect();
    let text = format!("[[stage]]\nrun = \"capture\"\nfiles = {fifty:?}\n");
    let file = write(folder.path(), "p.toml", text);
    let mut command = sizeleak(&format!("run {} --format frames --quiet", file.display()));
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut last = 0;
    // It is stalled once its memory no longer grows; it has not ended then, since there is more to read.
    let peak = loop {
        thread::sleep(Duration::from_millis(200));
        let peak = peak_kib(child.id());
        if peak == last && peak > 0 || Instant::now() > deadline {
            break peak;
        }
        last = peak;
    };
    assert!(child.try_wait().unwrap().is_none(), "it ended although its output was not read");
    assert!(peak < 64 << 10, "{peak} KiB");
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stdout.len() > 10 << 20, "{} bytes", output.stdout.len());
}

fn peak_kib(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
