//! Both modes save the same streams, and a run that goes on from one of them has the results of the whole run.

use std::fs;
use std::io::Read;
use std::path::Path;

use support::home::Home;
use support::programs::{STAGES, stderr, stdout, stop};
use support::timeless::with_stages;

const MODES: [&str; 2] = ["threads", "processes"];

/// What a file holds, decompressed.
fn content(path: &Path) -> Vec<u8> {
    let mut content = Vec::new();
    sizeleak::recording::open(Some(path)).unwrap().0.read_to_end(&mut content).unwrap();
    content
}

/// A whole stream without its latencies, and the number of its stages.
fn timeless(stream: &[u8]) -> (Vec<u8>, usize) {
    let (timeless, stages) = with_stages(stream);
    assert!(timeless.len() > 10_000, "{} bytes of {stages} stages", timeless.len());
    (timeless, stages)
}

#[test]
fn both_modes_save_the_same_and_a_run_from_any_saved_stream_equals_the_whole_run() {
    let home = Home::bundled();
    let run = |arguments: &str| stdout(&mut home.sizeleak(&format!("run pipeline.toml --quiet {arguments}")));
    let (whole, frames) = (run("--format ndjson"), timeless(&run("--format frames")));
    for mode in MODES {
        let saves = STAGES.map(|stage| format!(" --set {stage}.save={mode}-{stage}.frames.zst")).concat();
        assert!(run(&format!("--format ndjson --mode {mode}{saves}")) == whole, "saving in {mode} changes something");
    }
    for (stages, stage) in (1..).zip(STAGES) {
        let [threads, processes] =
            MODES.map(|mode| timeless(&content(&home.path(&format!("{mode}-{stage}.frames.zst")))));
        assert!(threads == processes && threads.1 == stages, "{stage}");
        for mode in MODES {
            // No capture is read: this one does not exist.
            let from = format!("--from threads-{stage}.frames.zst --set capture.files=no-such.pcap --mode {mode}");
            assert!(timeless(&run(&format!("{from} --format frames"))) == frames, "{mode} {stage}");
            // Lines say no more than frames do.
            assert!(stage != "pruner" || run(&format!("{from} --format ndjson")) == whole, "{mode}");
        }
    }
}

#[test]
fn interrupted_run_leaves_no_file() {
    let home = Home::bundled();
    let capture = fs::read(home.path("test.pcap")).unwrap();
    let saved = || {
        let names = fs::read_dir(home.folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.contains("frames")).collect::<Vec<_>>()
    };
    for mode in MODES {
        let run = format!("run pipeline.toml - --mode {mode} --format frames --set record-sizer.save=r.frames.zst");
        let output = stop(&mut home.sizeleak(&run), capture[..capture.len() / 2].to_vec(), 1, || {
            assert!(saved()[0].starts_with(".r.frames.zst."), "written under another name");
        });
        assert_eq!(output.status.code(), Some(130), "{mode}: {}", stderr(&output));
        assert!(stderr(&output).contains("r.frames.zst is not written: the run was stopped"), "{}", stderr(&output));
        assert_eq!(saved(), Vec::<String>::new(), "{mode}");
    }
}
